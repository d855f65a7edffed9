"""Upcoming: the values in which every feature lists what it plans, and how the lists are merged."""

from collections.abc import Iterable
from typing import Literal, NamedTuple, TypeAlias

from wakeful.core.time.instants import Instant

Kind: TypeAlias = Literal["schedule", "retry", "waiting", "beat", "producer", "wakeAt", "wake"]
"""An instant of a schedule; the next attempt of a run, or a run that waits for its first; a beat of the heartbeat; a
producer or a consumer's `wakeAt` of a workflow; a wake of a quota slot."""


class Upcoming(NamedTuple):
    """Something that will start; ordered by its due time."""

    due_at: Instant  # when it will actually run
    slug: str  # its owner: a schedule's slug, `heartbeat`, `workflow:ID`, `slot:NAME`
    planned_at: Instant
    kind: Kind = "schedule"
    handler: str = ""  # of a workflow


class UpcomingPage(NamedTuple):
    """Upcoming items in order, until a time; `is_cut`: that time is earlier than requested."""

    instants: list[Upcoming]
    until: Instant
    is_cut: bool


def merged(ahead: UpcomingPage, others: Iterable[Upcoming], *, limit: int) -> UpcomingPage:
    """Both in one list, at most `limit`. `others` must hold one more item than that per source, up to `ahead.until`."""
    mixed = sorted([*ahead.instants, *(item for item in others if item.due_at <= ahead.until)])
    if len(mixed) <= limit:
        return UpcomingPage(mixed, ahead.until, ahead.is_cut)
    return UpcomingPage(mixed[:limit], mixed[limit].due_at - 1, True)
