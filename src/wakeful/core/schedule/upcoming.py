"""Upcoming: the values in which every feature lists what it plans, and how the lists are merged."""

from collections.abc import Iterable
from typing import Annotated, Final, Literal, NamedTuple, TypeAlias

from wakeful.core.returned import At, Named, kind, returned
from wakeful.core.run.runs import Run
from wakeful.core.time.instants import Instant

Kind: TypeAlias = Literal["schedule", "retry", "waiting", "beat", "producer", "wakeAt", "wake"]
"""An instant of a schedule; the next attempt of a run, or a run that waits for its first; a beat of the heartbeat; a
producer or a consumer's `wakeAt` of a workflow; a wake of a quota slot."""
_HANDLER: Final = kind({"anyOf": [{"type": "string"}, {"type": "null"}]}, lambda name: name or None)


class Upcoming(NamedTuple):
    """An upcoming start."""

    # In the order in which starts are sorted.
    due_at: At  # when it will actually run
    slug: Annotated[str, "a schedule's slug, `heartbeat`, `workflow:ID` or `slot:NAME`"]
    planned_at: At
    kind: Kind
    handler: Annotated[str, "for a workflow", _HANDLER]


FIRE: Final = returned(Upcoming, name="Fire")


class UpcomingPage(NamedTuple):
    """Upcoming starts, ordered by due time."""

    instants: Annotated[list[Upcoming], Named("upcoming")]
    until: Annotated[At, "the list is complete up to this time"]
    is_cut: Annotated[bool, "whether that is earlier than requested"]


UPCOMING: Final = returned(UpcomingPage, name="Upcoming")


def attempted_at(run: Run, now: Instant) -> Instant | None:
    """When a run that waits, and is not parked behind a lane, starts its next attempt."""
    if run.outcome != "waiting" or (run.error is None and run.attempt):
        return None
    return max(run.next_attempt_at or run.due_at, now)


def merged(ahead: UpcomingPage, others: Iterable[Upcoming], *, limit: int) -> UpcomingPage:
    """Both in one list, at most `limit`. `others` must hold one more item than that per source, up to `ahead.until`."""
    mixed = sorted([*ahead.instants, *(item for item in others if item.due_at <= ahead.until)])
    if len(mixed) <= limit:
        return UpcomingPage(mixed, ahead.until, ahead.is_cut)
    return UpcomingPage(mixed[:limit], mixed[limit].due_at - 1, True)
