"""Definitions, in SQLite."""

from collections.abc import Iterable, Sequence
from sqlite3 import Connection

from wakeful.ports.store import NewSchedule, Schedule
from wakeful.stores.sqlite.rows import columns_of, ids, plain, texts, update_of

_COLUMNS = columns_of(Schedule, "schedules")

# Insert one new schedule and return its id; an existing slug is skipped.
ADD = """
INSERT INTO schedules (slug, definition, version, is_zoned, created_at, updated_at) VALUES (?, ?, 1, ?, ?, ?)
ON CONFLICT (slug) WHERE deleted_at IS NULL DO NOTHING
"""

# Insert many new schedules with ids chosen beforehand.
ADD_MANY = """
INSERT INTO schedules (schedule_id, slug, definition, version, is_zoned, created_at, updated_at)
VALUES (?, ?, ?, 1, ?, ?, ?)
"""

# The last assigned id. Rows are never deleted, so it only grows.
LAST_ID = "SELECT coalesce(max(schedule_id), 0) FROM schedules"

# Which of these slugs are taken.
TAKEN = """
SELECT slug FROM schedules INDEXED BY schedules_slug
WHERE deleted_at IS NULL AND slug IN (SELECT value FROM json_each(?))
"""

# The existing schedules with these slugs.
BY_SLUGS = f"""
SELECT {_COLUMNS} FROM schedules INDEXED BY schedules_slug
WHERE deleted_at IS NULL AND slug IN (SELECT value FROM json_each(?))
"""

# Schedules by id, including deleted ones.
BY_IDS = f"SELECT {_COLUMNS} FROM json_each(?) AS wanted CROSS JOIN schedules ON schedule_id = wanted.value"

# Update a definition, or mark it deleted.
SAVE = update_of("schedules", Schedule, key=("schedule_id",), fixed=("created_at",))

# Existing schedules in slug order.
PAGE = f"""
SELECT {_COLUMNS} FROM schedules INDEXED BY schedules_slug
WHERE deleted_at IS NULL AND slug > ? ORDER BY slug LIMIT ?
"""

# Existing schedules whose slug contains this text, in slug order.
PAGE_CONTAINING = f"""
SELECT {_COLUMNS} FROM schedules INDEXED BY schedules_slug
WHERE deleted_at IS NULL AND slug > ? AND instr(slug, ?) > 0 ORDER BY slug LIMIT ?
"""

# Existing schedules that depend on a zone, in id order. A scan, needed only when the zone data has changed.
ZONED = f"""
SELECT {_COLUMNS} FROM schedules
WHERE schedule_id > ? AND is_zoned = 1 AND deleted_at IS NULL ORDER BY schedule_id LIMIT ?
"""

# Existing schedules that are halted or failing, in slug order.
AMISS = f"""
SELECT {_COLUMNS} FROM cadences INDEXED BY cadences_troubled CROSS JOIN schedules USING (schedule_id)
WHERE (cadences.state IN ('paused', 'disabled', 'invalid') OR cadences.trouble = 2)
  AND deleted_at IS NULL AND slug > ? ORDER BY slug LIMIT ?
"""

# Deleted schedules of one slug, newest first.
REMOVED_BY_SLUG = f"""
SELECT {_COLUMNS} FROM schedules INDEXED BY schedules_removed
WHERE deleted_at IS NOT NULL AND slug = ? ORDER BY schedule_id DESC LIMIT ?
"""

# Existing schedules that mention the kind that waits for a reset, in id order.
AFTER_RESET = f"""
SELECT {_COLUMNS} FROM schedules INDEXED BY schedules_after_reset
WHERE deleted_at IS NULL AND instr(definition, '"afterReset"') > 0 AND schedule_id > ? ORDER BY schedule_id LIMIT ?
"""

# Existing schedules that name a quota slot, in id order.
NAMING_SLOT = f"""
SELECT {_COLUMNS} FROM schedules INDEXED BY schedules_naming_slot
WHERE deleted_at IS NULL AND instr(definition, '"slot":"') > 0 AND schedule_id > ? ORDER BY schedule_id LIMIT ?
"""

# The number of existing schedules.
COUNT = "SELECT count(*) FROM schedules INDEXED BY schedules_slug WHERE deleted_at IS NULL"

# From this many on, it is faster to look up the taken slugs first and insert the rest in one statement.
BULK_MIN = 4


class SqliteSchedules:
    """See `ports.store.Schedules`."""

    __slots__ = ("_connection",)

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add_many(self, rows: Sequence[NewSchedule]) -> list[int | None]:
        if len(rows) < BULK_MIN:
            return [self._add(row) for row in rows]
        (last_id,) = self._connection.execute(LAST_ID).fetchone()
        taken = {slug for (slug,) in self._connection.execute(TAKEN, (texts({row.slug for row in rows}),))}
        fates: list[int | None] = []
        fresh: list[tuple[int | str, ...]] = []
        for row in rows:
            if row.slug in taken:
                fates.append(None)
                continue
            taken.add(row.slug)
            last_id += 1
            fates.append(last_id)
            fresh.append((last_id, *row, row.created_at))
        self._connection.executemany(ADD_MANY, fresh)
        return fates

    def _add(self, row: NewSchedule) -> int | None:
        added = self._connection.execute(ADD, (*row, row.created_at))
        return added.lastrowid if added.rowcount else None

    def by_slugs(self, slugs: Sequence[str]) -> dict[str, Schedule]:
        rows = map(Schedule._make, self._connection.execute(BY_SLUGS, (texts(set(slugs)),)))
        return {row.slug: row for row in rows}

    def by_ids(self, schedule_ids: Iterable[int]) -> dict[int, Schedule]:
        rows = map(Schedule._make, self._connection.execute(BY_IDS, (ids(schedule_ids),)))
        return {row.schedule_id: row for row in rows}

    def save_many(self, rows: Sequence[Schedule]) -> None:
        self._connection.executemany(SAVE, plain(rows))

    def page(self, *, after: str | None, limit: int, contains: str | None = None) -> list[Schedule]:
        after = "" if after is None else after
        if contains:
            found = self._connection.execute(PAGE_CONTAINING, (after, contains, limit))
        else:
            found = self._connection.execute(PAGE, (after, limit))
        return list(map(Schedule._make, found))

    def amiss(self, *, after: str | None, limit: int) -> list[Schedule]:
        found = self._connection.execute(AMISS, ("" if after is None else after, limit))
        return list(map(Schedule._make, found))

    def zoned(self, *, after_id: int, limit: int) -> list[Schedule]:
        return list(map(Schedule._make, self._connection.execute(ZONED, (after_id, limit))))

    def removed_by_slug(self, slug: str, *, limit: int) -> list[Schedule]:
        return list(map(Schedule._make, self._connection.execute(REMOVED_BY_SLUG, (slug, limit))))

    def after_reset(self, *, after_id: int, limit: int) -> list[Schedule]:
        return list(map(Schedule._make, self._connection.execute(AFTER_RESET, (after_id, limit))))

    def naming_slot(self, *, after_id: int, limit: int) -> list[Schedule]:
        return list(map(Schedule._make, self._connection.execute(NAMING_SLOT, (after_id, limit))))

    def count(self) -> int:
        (count,) = self._connection.execute(COUNT).fetchone()
        return int(count)
