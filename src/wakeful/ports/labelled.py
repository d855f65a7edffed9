"""Alarms that need a label of a node (`core.schedule.labels`), by queue.

They are not among the alarms that `Alarms`, `PlainPath.due` and `Runs.due` find. So a node without labels does not see
them at all, and one with labels asks for the queues it may take.
"""

from collections.abc import Sequence
from typing import Protocol

from wakeful.core.run.runs import Run
from wakeful.core.time.instants import Instant
from wakeful.ports.plain import DueSchedule


class Labelled(Protocol):
    """Described in the module docstring. Parked alarms are left out."""

    def queues(self) -> list[str]:
        """The queues that have an alarm with a due time; one index seek for each."""
        ...

    def due_kinds(self, queues: Sequence[str], *, now: Instant) -> set[str]:
        """The kinds that have a due alarm in one of these queues."""
        ...

    def next_due_at(self, queues: Sequence[str], *, besides: Sequence[str] = ()) -> Instant | None:
        """The earliest due time in these queues, except of the kinds in `besides`."""
        ...

    def due_schedules(
        self, queues: Sequence[str], *, now: Instant, limit: int, after: Instant | None = None
    ) -> list[DueSchedule]:
        """Schedules whose alarm is due (with `after`: later than that), oldest first, locked; those another node has
        locked are left out. None of them is clear: they do not take the plain path."""
        ...

    def due_runs(self, queues: Sequence[str], *, now: Instant, limit: int, after: Instant | None = None) -> list[Run]:
        """Waiting runs whose alarm is due, by priority and due time, at most `limit` of each priority and queue;
        locked, without those locked elsewhere. With `after`, only planned ones that are due later than that and need no
        lane."""
        ...

    def hold_off_first(self, queues: Sequence[str], kind: str, *, now: Instant, until: Instant) -> int | None:
        """Postpone the first due alarm of a kind; returns its ref. None if none is due, or if one that needs no label
        comes first."""
        ...
