"""Agents' proposals: waiting for a person, or decided."""

from wakeful.core.self_scheduling.proposals import Proposal
from wakeful.core.time.instants import Instant
from wakeful.ports.database import Value, columns_of
from wakeful.ports.table import Rows

_COLUMNS = columns_of(Proposal, "proposals")

# Proposals that wait for a person.
PENDING = f"""
SELECT {_COLUMNS} FROM proposals WHERE status = 'pending' AND expires_at > :now ORDER BY slug, proposal_id
"""
PENDING_OF = f"""
SELECT {_COLUMNS} FROM proposals
WHERE status = 'pending' AND expires_at > :now AND owner = :owner ORDER BY slug, proposal_id
"""

# The proposals of one slug, newest first.
OF_SLUG = f"""
SELECT {_COLUMNS} FROM proposals WHERE slug = :slug ORDER BY asked_at DESC, proposal_id LIMIT :limit
"""

# An agent's rejected proposals, newest first.
REJECTED = f"""
SELECT {_COLUMNS} FROM proposals
WHERE owner = :owner AND status = 'rejected' AND decided_at > :since ORDER BY decided_at DESC, proposal_id
"""

# How many proposals an agent made.
ASKED = "SELECT count(*) FROM proposals WHERE owner = :owner AND asked_at > :since"
WAKES_PENDING = """
SELECT count(*) FROM proposals
WHERE owner = :owner AND kind = 'wake' AND status = 'pending' AND asked_at > :since
"""

# Delete proposals that were decided, or expired, long ago.
FORGET = "DELETE FROM proposals WHERE asked_at < :before"


class AgentProposals(Rows[Proposal]):
    """Proposals by their id."""

    row, table, key = Proposal, "proposals", "proposal_id"
    fixed = ("owner", "slug", "kind", "definition", "asked_at")

    def get(self, key: Value) -> Proposal | None:
        """A proposal by its id; locked in a write transaction."""
        return next(iter(self.lock([key]).values()), None)

    def pending(self, *, now: Instant, owner: str | None = None) -> list[Proposal]:
        """Proposals that wait for a decision, in slug order."""
        sql = PENDING if owner is None else PENDING_OF
        return self._made(self._db.rows(sql, now=now, owner=owner))

    def of_slug(self, slug: str, *, limit: int) -> list[Proposal]:
        """Proposals for one slug, newest first."""
        return self._made(self._db.rows(OF_SLUG, slug=slug, limit=limit))

    def rejected(self, owner: str, *, since: Instant) -> list[Proposal]:
        """An agent's proposals rejected since `since`, newest first."""
        return self._made(self._db.rows(REJECTED, owner=owner, since=since))

    def asked_since(self, owner: str, since: Instant) -> int:
        """How many proposals an agent made since `since`."""
        ((count,),) = self._db.rows(ASKED, owner=owner, since=since)
        return int(count)

    def wakes_pending(self, owner: str, *, since: Instant) -> int:
        """How many of an agent's `wake_me` requests since `since` wait for a person."""
        ((count,),) = self._db.rows(WAKES_PENDING, owner=owner, since=since)
        return int(count)

    def forget(self, *, before: Instant) -> int:
        """Delete proposals made before `before`, which were decided or have expired; returns how many."""
        return self._db.change(FORGET, before=before)
