"""Definitions: schedules as people wrote them."""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from wakeful.core.http_headers import MANAGED
from wakeful.ports.changes import Change, SchedulesAdded, SchedulesSaved
from wakeful.ports.database import Database, Table
from wakeful.ports.plans import NewSchedule, Schedule

_SCHEDULES = Table("schedules", Schedule, key=("schedule_id",), fixed=("created_at",))
_COLUMNS = _SCHEDULES.columns

# The existing schedules with these slugs.
BY_SLUGS = f"SELECT {_COLUMNS} FROM schedules INDEXED BY schedules_slug WHERE deleted_at IS NULL AND slug IN :slugs"

# Schedules by id, including deleted ones.
BY_IDS = f"SELECT {_COLUMNS} FROM schedules WHERE schedule_id IN :schedule_ids"

# Existing schedules in slug order.
PAGE = f"""
SELECT {_COLUMNS} FROM schedules INDEXED BY schedules_slug
WHERE deleted_at IS NULL AND slug > :after ORDER BY slug LIMIT :limit
"""

# Existing schedules whose slug contains this text, in slug order.
PAGE_CONTAINING = f"""
SELECT {_COLUMNS} FROM schedules INDEXED BY schedules_slug
WHERE deleted_at IS NULL AND slug > :after AND instr(slug, :contains) > 0 ORDER BY slug LIMIT :limit
"""

# Existing schedules that depend on a zone, in id order. A scan, needed only when the zone data has changed.
ZONED = f"""
SELECT {_COLUMNS} FROM schedules
WHERE schedule_id > :after_id AND is_zoned = 1 AND deleted_at IS NULL ORDER BY schedule_id LIMIT :limit
"""

# Existing schedules that are halted or failing, in slug order. The condition is that of the index, word for word.
AMISS = f"""
SELECT {_COLUMNS} FROM cadences INDEXED BY cadences_amiss CROSS JOIN schedules
WHERE (cadences.state = 'paused' OR cadences.state = 'disabled' OR cadences.state = 'invalid' OR cadences.trouble >= 2)
  AND schedules.schedule_id = cadences.schedule_id AND deleted_at IS NULL AND slug > :after
ORDER BY slug LIMIT :limit
"""

# Deleted schedules of one slug, newest first.
REMOVED_BY_SLUG = f"""
SELECT {_COLUMNS} FROM schedules INDEXED BY schedules_removed
WHERE deleted_at IS NOT NULL AND slug = :slug ORDER BY schedule_id DESC LIMIT :limit
"""


def _mentioning(text: str, *, index: str, also: str = "") -> str:
    """Existing schedules after an id whose definitions contain a text, in id order. The condition is that of the index,
    word for word."""
    return f"""
SELECT {_COLUMNS} FROM schedules INDEXED BY {index}
WHERE deleted_at IS NULL AND instr(definition, '{text}') > 0{also} AND schedule_id > :after_id
ORDER BY schedule_id LIMIT :limit
"""


# Schedules with headers that the connection sets itself, or with a host, are few of those with headers.
_OWN_HEADERS = " OR ".join(f"instr(lower(definition), '\"{name}\":') > 0" for name in sorted({*MANAGED, "host"}))

AFTER_RESET = _mentioning('"afterReset"', index="schedules_after_reset")
NAMING_SLOT = _mentioning('"slot":"', index="schedules_naming_slot")
WITH_BUDGET = _mentioning('"budget":{', index="schedules_with_budget")
WITH_CALENDAR = _mentioning('"calendar":"', index="schedules_with_calendar")
WITH_OWN_HEADERS = _mentioning('"headers":{', index="schedules_with_headers", also=f" AND ({_OWN_HEADERS})")

# The number of existing schedules.
COUNT = "SELECT count(*) FROM schedules INDEXED BY schedules_slug WHERE deleted_at IS NULL"

AddSchedules: TypeAlias = Callable[[Sequence[NewSchedule]], list[int | None]]
"""Inserting many together is worth a separate statement in each database."""


class Schedules:
    """Definitions, in one transaction."""

    __slots__ = ("_add_many", "_changes", "_db")

    def __init__(self, db: Database, add_many: AddSchedules, changes: list[Change]) -> None:
        self._db = db
        self._add_many = add_many
        self._changes = changes

    def add_many(self, rows: Sequence[NewSchedule]) -> list[int | None]:
        """Write new schedules; returns the id of each, or None if the slug is taken."""
        schedule_ids = self._add_many(rows)
        if rows:
            self._changes.append(SchedulesAdded(rows, schedule_ids))
        return schedule_ids

    def by_slugs(self, slugs: Sequence[str]) -> dict[str, Schedule]:
        """The existing schedules with these slugs, including their definitions."""
        rows = map(Schedule._make, self._db.rows(BY_SLUGS, slugs=slugs))
        return {row.slug: row for row in rows}

    def by_ids(self, schedule_ids: Iterable[int]) -> dict[int, Schedule]:
        """Schedules by id, including deleted ones."""
        rows = map(Schedule._make, self._db.rows(BY_IDS, schedule_ids=schedule_ids))
        return {row.schedule_id: row for row in rows}

    def save_many(self, rows: Sequence[Schedule]) -> None:
        """Write changed definitions, or `deleted_at`. The caller holds the locks of the cadences."""
        self._db.update(_SCHEDULES, rows)
        if rows:
            self._changes.append(SchedulesSaved(rows))

    def page(self, *, after: str | None, limit: int, contains: str | None = None) -> list[Schedule]:
        """Existing schedules in slug order after a slug; with `contains`, only slugs that contain this text."""
        query = PAGE_CONTAINING if contains else PAGE
        return list(map(Schedule._make, self._db.rows(query, after=after or "", contains=contains, limit=limit)))

    def amiss(self, *, after: str | None, limit: int) -> list[Schedule]:
        """Of these schedules, the paused, disabled, invalid and failing ones; found by an index."""
        return list(map(Schedule._make, self._db.rows(AMISS, after=after or "", limit=limit)))

    def zoned(self, *, after_id: int, limit: int) -> list[Schedule]:
        """Existing schedules whose instants depend on a zone, in id order."""
        return list(map(Schedule._make, self._db.rows(ZONED, after_id=after_id, limit=limit)))

    def removed_by_slug(self, slug: str, *, limit: int) -> list[Schedule]:
        """Deleted schedules that had this slug, newest first."""
        return list(map(Schedule._make, self._db.rows(REMOVED_BY_SLUG, slug=slug, limit=limit)))

    def after_reset(self, *, after_id: int, limit: int) -> list[Schedule]:
        """Existing schedules that may wait for the reset of a quota slot, in id order: those that mention the kind."""
        return list(map(Schedule._make, self._db.rows(AFTER_RESET, after_id=after_id, limit=limit)))

    def naming_slot(self, *, after_id: int, limit: int) -> list[Schedule]:
        """Existing schedules that may name a quota slot, in id order: those whose definition mentions one."""
        return list(map(Schedule._make, self._db.rows(NAMING_SLOT, after_id=after_id, limit=limit)))

    def with_budget(self, *, after_id: int, limit: int) -> list[Schedule]:
        """Existing schedules with a `budget`, in id order."""
        return list(map(Schedule._make, self._db.rows(WITH_BUDGET, after_id=after_id, limit=limit)))

    def with_calendar(self, *, after_id: int, limit: int) -> list[Schedule]:
        """Existing schedules that may name a calendar file, in id order: those whose definition mentions one."""
        return list(map(Schedule._make, self._db.rows(WITH_CALENDAR, after_id=after_id, limit=limit)))

    def with_own_headers(self, *, after_id: int, limit: int) -> list[Schedule]:
        """Existing schedules that may name headers of the connection itself, in id order."""
        return list(map(Schedule._make, self._db.rows(WITH_OWN_HEADERS, after_id=after_id, limit=limit)))

    def count(self) -> int:
        """The number of existing schedules."""
        ((count,),) = self._db.rows(COUNT)
        return int(count)
