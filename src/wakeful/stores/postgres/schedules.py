"""Definitions, in PostgreSQL."""

from collections.abc import Iterable, Sequence
from typing import Final

from wakeful.ports.store import NewSchedule, Schedule
from wakeful.stores.postgres.connection import Session
from wakeful.stores.postgres.rows import arrays, columns_of, ids, int_array, text_array, texts, update_of

_COLUMNS = columns_of(Schedule, "schedules")
_TEXTS: Final = frozenset({"slug", "definition"})

# Insert new schedules and return their ids; an existing slug is skipped. In slug order: two nodes that write the same
# ones wait for each other and do not deadlock.
ADD = """
INSERT INTO schedules (slug, definition, version, is_zoned, created_at, updated_at)
SELECT slug, definition, 1, is_zoned, created_at, created_at
FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[]) AS new (slug, definition, is_zoned, created_at)
ON CONFLICT (slug) WHERE deleted_at IS NULL DO NOTHING
RETURNING slug, schedule_id
"""

# The existing schedules with these slugs.
BY_SLUGS = f"SELECT {_COLUMNS} FROM schedules WHERE deleted_at IS NULL AND slug = ANY($1::text[])"

# Schedules by id, including deleted ones.
BY_IDS = f"SELECT {_COLUMNS} FROM schedules WHERE schedule_id = ANY($1::bigint[])"

# Update definitions, or mark them deleted.
SAVE = update_of("schedules", Schedule, _TEXTS, key="schedule_id", fixed=("created_at",))

# Existing schedules in slug order.
PAGE = f"SELECT {_COLUMNS} FROM schedules WHERE deleted_at IS NULL AND slug > $1 ORDER BY slug LIMIT $2"

# Existing schedules whose slug contains this text, in slug order.
PAGE_CONTAINING = f"""
SELECT {_COLUMNS} FROM schedules
WHERE deleted_at IS NULL AND slug > $1 AND strpos(slug, $3) > 0 ORDER BY slug LIMIT $2
"""

# Existing schedules that depend on a zone, in id order. A scan, needed only when the zone data has changed.
ZONED = f"""
SELECT {_COLUMNS} FROM schedules
WHERE schedule_id > $1 AND is_zoned = 1 AND deleted_at IS NULL ORDER BY schedule_id LIMIT $2
"""

# Existing schedules that are halted or failing, in slug order.
AMISS = f"""
SELECT {_COLUMNS} FROM cadences JOIN schedules USING (schedule_id)
WHERE (cadences.state IN ('paused', 'disabled', 'invalid') OR cadences.trouble = 2)
  AND deleted_at IS NULL AND slug > $1 ORDER BY slug LIMIT $2
"""

# Deleted schedules of one slug, newest first.
REMOVED_BY_SLUG = f"""
SELECT {_COLUMNS} FROM schedules WHERE deleted_at IS NOT NULL AND slug = $1 ORDER BY schedule_id DESC LIMIT $2
"""

# Existing schedules that mention the kind that waits for a reset, in id order.
AFTER_RESET = f"""
SELECT {_COLUMNS} FROM schedules
WHERE deleted_at IS NULL AND strpos(definition, '"afterReset"') > 0 AND schedule_id > $1 ORDER BY schedule_id LIMIT $2
"""

# Existing schedules that name a quota slot, in id order.
NAMING_SLOT = f"""
SELECT {_COLUMNS} FROM schedules
WHERE deleted_at IS NULL AND strpos(definition, '"slot":"') > 0 AND schedule_id > $1 ORDER BY schedule_id LIMIT $2
"""

# The number of existing schedules.
COUNT = "SELECT count(*) FROM schedules WHERE deleted_at IS NULL"


class PostgresSchedules:
    """See `ports.store.Schedules`."""

    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    def add_many(self, rows: Sequence[NewSchedule]) -> list[int | None]:
        if not rows:
            return []
        first: dict[str, NewSchedule] = {}
        for row in rows:
            first.setdefault(row.slug, row)  # of two with the same slug in a batch the first wins
        slugs, definitions, zoned, created = zip(*sorted(first.values()), strict=True)
        given = self._session.change_returning(
            ADD, text_array(slugs), text_array(definitions), int_array(zoned), int_array(created)
        )
        fresh: dict[str, int] = dict(given)
        return [fresh.pop(row.slug, None) for row in rows]

    def by_slugs(self, slugs: Sequence[str]) -> dict[str, Schedule]:
        rows = map(Schedule._make, self._session.rows(BY_SLUGS, texts(set(slugs))))
        return {row.slug: row for row in rows}

    def by_ids(self, schedule_ids: Iterable[int]) -> dict[int, Schedule]:
        rows = map(Schedule._make, self._session.rows(BY_IDS, ids(schedule_ids)))
        return {row.schedule_id: row for row in rows}

    def save_many(self, rows: Sequence[Schedule]) -> None:
        if rows:
            self._session.save(SAVE, len(rows), *arrays(rows, Schedule, _TEXTS, fixed=("created_at",)))

    def page(self, *, after: str | None, limit: int, contains: str | None = None) -> list[Schedule]:
        after = "" if after is None else after
        if contains:
            found = self._session.rows(PAGE_CONTAINING, after, limit, contains)
        else:
            found = self._session.rows(PAGE, after, limit)
        return list(map(Schedule._make, found))

    def amiss(self, *, after: str | None, limit: int) -> list[Schedule]:
        found = self._session.rows(AMISS, "" if after is None else after, limit)
        return list(map(Schedule._make, found))

    def zoned(self, *, after_id: int, limit: int) -> list[Schedule]:
        return list(map(Schedule._make, self._session.rows(ZONED, after_id, limit)))

    def removed_by_slug(self, slug: str, *, limit: int) -> list[Schedule]:
        return list(map(Schedule._make, self._session.rows(REMOVED_BY_SLUG, slug, limit)))

    def after_reset(self, *, after_id: int, limit: int) -> list[Schedule]:
        return list(map(Schedule._make, self._session.rows(AFTER_RESET, after_id, limit)))

    def naming_slot(self, *, after_id: int, limit: int) -> list[Schedule]:
        return list(map(Schedule._make, self._session.rows(NAMING_SLOT, after_id, limit)))

    def count(self) -> int:
        return int(self._session.rows(COUNT)[0][0])
