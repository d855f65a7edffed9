"""Inserting new definitions, in SQLite."""

from collections.abc import Sequence
from sqlite3 import Connection

from wakeful.ports.store import NewSchedule
from wakeful.stores.sqlite.rows import ManyRows, texts

# Insert one new schedule and return its id; an existing slug is skipped.
ADD = """
INSERT INTO schedules (slug, definition, version, is_zoned, created_at, updated_at) VALUES (?, ?, 1, ?, ?, ?)
ON CONFLICT (slug) WHERE deleted_at IS NULL DO NOTHING
"""

# Insert many new schedules with ids chosen beforehand.
_ADD_INTO = "INSERT INTO schedules (schedule_id, slug, definition, version, is_zoned, created_at, updated_at) VALUES "
_ADD_ROW = "(?, ?, ?, 1, ?, ?, ?)"
ADD_MANY = ManyRows(single=_ADD_INTO + _ADD_ROW, together=_ADD_INTO + "{rows}", row=_ADD_ROW)

# The last assigned id. Rows are never deleted, so it only grows.
LAST_ID = "SELECT coalesce(max(schedule_id), 0) FROM schedules"

# Which of these slugs are taken.
TAKEN = """
SELECT slug FROM schedules INDEXED BY schedules_slug
WHERE deleted_at IS NULL AND slug IN (SELECT value FROM json_each(?))
"""

# From this many on, it is faster to look up the taken slugs first and insert the rest in one statement.
BULK_MIN = 4


def add_schedules(connection: Connection, rows: Sequence[NewSchedule]) -> list[int | None]:
    """See `ports.store.Schedules.add_many`."""
    if len(rows) < BULK_MIN:
        return [_add(connection, row) for row in rows]
    (last_id,) = connection.execute(LAST_ID).fetchone()
    taken = {slug for (slug,) in connection.execute(TAKEN, (texts({row.slug for row in rows}),))}
    given: list[int | None] = []
    for row in rows:
        if row.slug in taken:
            given.append(None)
            continue
        taken.add(row.slug)
        last_id += 1
        given.append(last_id)
    ADD_MANY.write(
        connection, ((key, *row, row.created_at) for key, row in zip(given, rows, strict=True) if key is not None)
    )
    return given


def _add(connection: Connection, row: NewSchedule) -> int | None:
    added = connection.execute(ADD, (*row, row.created_at))
    return added.lastrowid if added.rowcount else None
