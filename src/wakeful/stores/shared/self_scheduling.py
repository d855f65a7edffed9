"""Agents' schedules: who owns them, and proposals that wait for a person."""

from collections.abc import Iterable, Sequence

from wakeful.core.self_scheduling.proposals import Ownership, Proposal
from wakeful.core.time.instants import Instant
from wakeful.stores.shared.database import Database, Table

_OWNERSHIPS = Table("ownerships", Ownership, key=("schedule_id",))
_PROPOSALS = Table(
    "proposals", Proposal, key=("proposal_id",), fixed=("owner", "slug", "kind", "definition", "asked_at")
)

# The ownerships of these schedules.
BY_IDS = f"SELECT {_OWNERSHIPS.columns} FROM ownerships WHERE schedule_id IN :schedule_ids"

# An agent's ownerships whose schedules exist.
OF_OWNER = f"""
SELECT {_OWNERSHIPS.columns} FROM ownerships JOIN schedules ON schedules.schedule_id = ownerships.schedule_id
WHERE ownerships.owner = :owner AND schedules.deleted_at IS NULL ORDER BY ownerships.schedule_id
"""

# The schedules an agent made, including removed ones.
MADE = f"SELECT {_OWNERSHIPS.columns} FROM ownerships WHERE owner = :owner AND created_at > :since ORDER BY schedule_id"

# One proposal, locked.
GET = f"SELECT {_PROPOSALS.columns} FROM proposals WHERE proposal_id = :proposal_id FOR UPDATE"

# Proposals that wait for a person.
PENDING = f"""
SELECT {_PROPOSALS.columns} FROM proposals WHERE status = 'pending' AND expires_at > :now ORDER BY slug, proposal_id
"""
PENDING_OF = f"""
SELECT {_PROPOSALS.columns} FROM proposals
WHERE status = 'pending' AND expires_at > :now AND owner = :owner ORDER BY slug, proposal_id
"""

# The proposals of one slug, newest first.
OF_SLUG = f"""
SELECT {_PROPOSALS.columns} FROM proposals WHERE slug = :slug ORDER BY asked_at DESC, proposal_id LIMIT :limit
"""

# An agent's rejected proposals, newest first.
REJECTED = f"""
SELECT {_PROPOSALS.columns} FROM proposals
WHERE owner = :owner AND status = 'rejected' AND decided_at > :since ORDER BY decided_at DESC, proposal_id
"""

# How many proposals an agent made.
ASKED = "SELECT count(*) FROM proposals WHERE owner = :owner AND asked_at > :since"
WAKES_PENDING = """
SELECT count(*) FROM proposals
WHERE owner = :owner AND kind = 'wake' AND status = 'pending' AND asked_at > :since
"""

# Delete proposals that were decided, or expired, long ago.
PRUNE = "DELETE FROM proposals WHERE asked_at < :before"


class SharedOwnerships:
    """See `ports.self_scheduling.Ownerships`."""

    __slots__ = ("_db",)

    def __init__(self, db: Database) -> None:
        self._db = db

    def lock(self, owner: str) -> None:
        self._db.lock_name(f"agent:{owner}")

    def add(self, row: Ownership) -> None:
        self._db.upsert(_OWNERSHIPS, [row])

    def by_ids(self, schedule_ids: Iterable[int]) -> dict[int, Ownership]:
        rows = map(Ownership._make, self._db.rows(BY_IDS, schedule_ids=schedule_ids))
        return {row.schedule_id: row for row in rows}

    def of_owner(self, owner: str) -> list[Ownership]:
        return list(map(Ownership._make, self._db.rows(OF_OWNER, owner=owner)))

    def made_since(self, owner: str, since: Instant) -> list[Ownership]:
        return list(map(Ownership._make, self._db.rows(MADE, owner=owner, since=since)))


class SharedProposals:
    """See `ports.self_scheduling.Proposals`."""

    __slots__ = ("_db",)

    def __init__(self, db: Database) -> None:
        self._db = db

    def add(self, row: Proposal) -> None:
        self._db.insert(_PROPOSALS, [row])

    def get(self, proposal_id: str) -> Proposal | None:
        return next(map(Proposal._make, self._db.rows(GET, proposal_id=proposal_id)), None)

    def pending(self, *, now: Instant, owner: str | None = None) -> list[Proposal]:
        sql = PENDING if owner is None else PENDING_OF
        return list(map(Proposal._make, self._db.rows(sql, now=now, owner=owner)))

    def of_slug(self, slug: str, *, limit: int) -> list[Proposal]:
        return list(map(Proposal._make, self._db.rows(OF_SLUG, slug=slug, limit=limit)))

    def rejected(self, owner: str, *, since: Instant) -> list[Proposal]:
        return list(map(Proposal._make, self._db.rows(REJECTED, owner=owner, since=since)))

    def asked_since(self, owner: str, since: Instant) -> int:
        ((count,),) = self._db.rows(ASKED, owner=owner, since=since)
        return int(count)

    def wakes_pending(self, owner: str, *, since: Instant) -> int:
        ((count,),) = self._db.rows(WAKES_PENDING, owner=owner, since=since)
        return int(count)

    def save(self, rows: Sequence[Proposal]) -> None:
        self._db.update(_PROPOSALS, rows)

    def prune(self, *, before: Instant) -> int:
        return self._db.change(PRUNE, before=before)
