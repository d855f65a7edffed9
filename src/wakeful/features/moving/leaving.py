"""A schedule that moves out, as its new form needs it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from wakeful.core.schedule.actions import Command
from wakeful.core.schedule.definition import Definition
from wakeful.core.time.instants import HOUR, MINUTE, Instant
from wakeful.core.time.timing import Every, Timing
from wakeful.integrations.imports.entries import refuse

Times: TypeAlias = Callable[[Instant, int], Sequence[Instant]]


@dataclass(frozen=True, slots=True)
class Leaving:
    """A schedule with a command."""

    slug: str
    definition: Definition
    command: Command
    timing: Timing
    zone: str  # of the machine that will run it
    now: Instant
    is_enabled: bool


@dataclass(frozen=True, slots=True)
class Left:
    """Its new text, and what is lost."""

    text: str
    times: Times
    lost: Sequence[str] = field(default_factory=tuple)


def clock_fields(every: Every) -> tuple[str, str]:
    """The minute and hour fields of an interval that is one of the clock in UTC."""
    length, anchor = every.every, every.anchor or 0
    if length % MINUTE or anchor % MINUTE:
        refuse("its interval is not one of whole minutes")
    minutes = length // MINUTE
    start = anchor // MINUTE % (24 * 60)
    if minutes < 60 and 60 % minutes == 0:
        return ",".join(map(str, range(start % minutes, 60, minutes))), "*"
    if length % HOUR == 0 and 24 % (length // HOUR) == 0:
        step = length // HOUR
        return str(start % 60), ",".join(map(str, range(start // 60 % step, 24, step)))
    return refuse("its interval does not divide an hour or a day")


def union(rules: Sequence[Times]) -> Times:
    """The times of several rules together."""

    def times(after: Instant, count: int) -> list[Instant]:
        return sorted({at for rule in rules for at in rule(after, count)})[:count]

    return times
