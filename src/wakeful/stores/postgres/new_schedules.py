"""Inserting new definitions, in PostgreSQL."""

from collections.abc import Sequence

from wakeful.ports.database import texts_of
from wakeful.ports.store import NewSchedule
from wakeful.stores.postgres.connection import Session
from wakeful.stores.postgres.rows import arrays

_TEXTS = texts_of(NewSchedule)

# Insert new schedules and return their ids; an existing slug is skipped. In slug order: two nodes that write the same
# ones wait for each other and do not deadlock.
ADD = """
INSERT INTO schedules (slug, definition, version, is_zoned, created_at, updated_at)
SELECT slug, definition, 1, is_zoned, created_at, created_at
FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[]) AS new (slug, definition, is_zoned, created_at)
ON CONFLICT (slug) WHERE deleted_at IS NULL DO NOTHING
RETURNING slug, schedule_id
"""


def add_schedules(session: Session, rows: Sequence[NewSchedule]) -> list[int | None]:
    """See `ports.store.Schedules.add_many`."""
    if not rows:
        return []
    first: dict[str, NewSchedule] = {}
    for row in rows:
        first.setdefault(row.slug, row)  # of two with the same slug in a batch the first wins
    given = session.change_returning(ADD, *arrays(sorted(first.values()), NewSchedule, _TEXTS))
    fresh: dict[str, int] = dict(given)
    return [fresh.pop(row.slug, None) for row in rows]
