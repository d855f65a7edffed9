"""Alarms that need a label of a node (`core.schedule.labels`), by queue.

They are not among the alarms that `Alarms`, `PlainPath.due` and `Runs.due` find. So a node without labels does not see
them at all, and one with labels asks for the queues it may take. `alarms.parked` is 2 for them, so the indexes and
queries for other alarms never meet them; each query here seeks in one queue.
"""

from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Any, Final

from wakeful.core.run.runs import PRIORITY_BACKFILL, PRIORITY_PERSON, PRIORITY_PLANNED, Run
from wakeful.core.time.instants import Instant
from wakeful.ports.database import Database, columns_of
from wakeful.ports.plain import DueSchedule
from wakeful.ports.plans import ALARM_RUN, ALARM_SCHEDULE

_EVER: Final = -1  # before any due time
_RUNS: Final = columns_of(Run, "runs")
_ACTIVE: Final = "alarms.parked = 2 AND alarms.due_at IS NOT NULL"
_QUEUED: Final = f"{_ACTIVE} AND alarms.run_on = :queue AND alarms.kind = :kind AND alarms.priority = :priority"
_LOCKED: Final = "FOR UPDATE SKIP LOCKED"
_PRIORITIES: Final = (PRIORITY_PERSON, PRIORITY_PLANNED, PRIORITY_BACKFILL)
_HEADS: Final = ((ALARM_SCHEDULE, PRIORITY_PLANNED), *((ALARM_RUN, priority) for priority in _PRIORITIES))
"""The alarms a queue can hold: kind and priority."""

# All queues, one index seek each.
QUEUES = f"""
WITH RECURSIVE walk AS (
  SELECT min(run_on) AS queue FROM alarms INDEXED BY alarms_labelled WHERE {_ACTIVE}
  UNION ALL
  SELECT (SELECT min(run_on) FROM alarms INDEXED BY alarms_labelled WHERE {_ACTIVE} AND alarms.run_on > walk.queue)
  FROM walk WHERE walk.queue IS NOT NULL
)
SELECT queue FROM walk WHERE queue IS NOT NULL
"""

# The earliest alarm of one kind and priority in a queue.
HEAD = f"""
SELECT ref, due_at FROM alarms INDEXED BY alarms_labelled WHERE {_QUEUED} ORDER BY due_at, ref LIMIT 1
"""

# The same for alarms that need no label.
HEAD_OF_OTHERS = """
SELECT ref, due_at FROM alarms INDEXED BY alarms_due
WHERE alarms.parked = 0 AND alarms.due_at IS NOT NULL AND alarms.kind = :kind AND alarms.priority = :priority
ORDER BY due_at, ref LIMIT 1
"""

# Schedules of a queue whose alarm is due, oldest first.
DUE_SCHEDULES = f"""
SELECT schedule_id, version, next_at, alarms.due_at, 0 FROM alarms INDEXED BY alarms_labelled CROSS JOIN cadences
WHERE {_QUEUED} AND alarms.due_at <= :now AND alarms.due_at > :after AND cadences.schedule_id = alarms.ref
ORDER BY alarms.due_at, alarms.ref LIMIT :limit {_LOCKED}
"""

# Waiting runs of a queue whose alarm is due, oldest first.
DUE_RUNS = f"""
SELECT {_RUNS} FROM alarms INDEXED BY alarms_labelled CROSS JOIN runs
WHERE {_QUEUED} AND alarms.due_at <= :now AND alarms.due_at > :after AND runs.run_id = alarms.ref
  AND runs.outcome = 'waiting'
ORDER BY alarms.due_at, alarms.ref LIMIT :limit {_LOCKED}
"""

# Postpone an alarm.
HOLD_OFF = "UPDATE alarms SET due_at = :until WHERE kind = :kind AND ref = :ref"


class Labelled:
    """Described in the module docstring. Parked alarms are left out."""

    __slots__ = ("_db",)

    def __init__(self, db: Database) -> None:
        self._db = db

    def queues(self) -> list[str]:
        """The queues that have an alarm with a due time; one index seek for each."""
        return [queue for (queue,) in self._db.rows(QUEUES)]

    def due_kinds(self, queues: Sequence[str], *, now: Instant) -> set[str]:
        """The kinds that have a due alarm in one of these queues."""
        return {kind for kind, due_at in self._heads(queues) if due_at <= now}

    def next_due_at(self, queues: Sequence[str], *, besides: Sequence[str] = ()) -> Instant | None:
        return min((due_at for kind, due_at in self._heads(queues) if kind not in besides), default=None)

    def due_schedules(
        self, queues: Sequence[str], *, now: Instant, limit: int, after: Instant | None = None
    ) -> list[DueSchedule]:
        """Schedules whose alarm is due (with `after`: later than that), oldest first, locked; those another node has
        locked are left out. None of them is clear: they do not take the plain path."""
        found: list[DueSchedule] = []
        given = {"now": now, "after": _EVER if after is None else after, "limit": limit}
        for queue in queues:
            of_kind = _of(ALARM_SCHEDULE, PRIORITY_PLANNED)
            found += map(DueSchedule._make, self._db.rows(DUE_SCHEDULES, queue=queue, **given, **of_kind))
        return sorted(found, key=attrgetter("due_at", "schedule_id"))[:limit]

    def due_runs(self, queues: Sequence[str], *, now: Instant, limit: int, after: Instant | None = None) -> list[Run]:
        """Waiting runs whose alarm is due, by priority and due time, at most `limit` of each priority and queue;
        locked, without those locked elsewhere. With `after`, only planned ones that are due later than that and need no
        lane."""
        found: list[Run] = []
        given = {"now": now, "after": _EVER if after is None else after, "limit": limit}
        for queue in queues:
            for priority in _PRIORITIES if after is None else (PRIORITY_PLANNED,):
                of_kind = _of(ALARM_RUN, priority)
                found += map(Run._make, self._db.rows(DUE_RUNS, queue=queue, **given, **of_kind))
        return sorted([run for run in found if after is None or run.lane is None], key=_by_turn)

    def hold_off_first(self, queues: Sequence[str], kind: str, *, now: Instant, until: Instant) -> int | None:
        """Postpone the first due alarm of a kind; returns its ref. None if none is due, or if one that needs no label
        comes first."""
        due: list[tuple[int, Instant, int, bool]] = []
        for priority in (priority for of_kind, priority in _HEADS if of_kind == kind):
            heads = [(row, True) for queue in queues for row in self._db.rows(HEAD, queue=queue, **_of(kind, priority))]
            heads += [(row, False) for row in self._db.rows(HEAD_OF_OTHERS, **_of(kind, priority))]
            due += [(priority, due_at, ref, is_ours) for (ref, due_at), is_ours in heads if due_at <= now]
        *_, ref, is_ours = min(due, default=(0, 0, 0, False))
        if not is_ours:
            return None
        self._db.change(HOLD_OFF, kind=kind, ref=ref, until=until)
        return ref

    def _heads(self, queues: Sequence[str]) -> Iterator[tuple[str, Instant]]:
        for queue in queues:
            for kind, priority in _HEADS:
                for _, due_at in self._db.rows(HEAD, queue=queue, kind=kind, priority=priority):
                    yield kind, due_at


def _of(kind: str, priority: int) -> dict[str, Any]:
    return {"kind": kind, "priority": priority}


def _by_turn(run: Run) -> tuple[int, Instant, int]:
    return run.priority, run.due_at if run.next_attempt_at is None else run.next_attempt_at, run.run_id
