"""Inhabitants: what lives in a world beside its schedules, each with a witness of its own and laws of its own.

Theory of operation
-------------------
An inhabitant is one of the features with everything that belongs to it outside: the people who use it, and whoever is
at its other end (a receiver, an agent, a provider, a handler). It is one object for the whole world, so it remembers
what really happened, whichever node did it. At every boot a *tenant* of it moves into the machine: the real feature,
plugged into the real system, with the inhabitant's own virtual parts behind the feature's ports.

Inhabitants are asked like the judge: after every commit that touched a table of theirs, after every tick, and at the
end. What they draw comes from generators of their own, so a world with fewer of them is otherwise the same world.
"""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

from wakeful.app.bootstrap import FeatureContext
from wakeful.core.run.runs import Run
from wakeful.core.time.instants import DAY, MINUTE, SECOND, Duration, Instant
from wakeful.ports.action import Action
from wakeful.ports.clock import Clock
from wakeful.ports.handlers import FeatureHooks
from wakeful.ports.store import Tx
from wakeful.testing.virtual_clock import Wall
from wakeful.testing.virtual_loop import VirtualLoop


class Boot:
    """One boot of a machine, as those who live in it know it."""

    __slots__ = ("began_at", "clock", "disturbed_at", "is_alive", "is_still", "name")

    def __init__(self, name: str, clock: Clock, began_at: int) -> None:
        self.name = name
        self.began_at = began_at  # true time
        self.clock = clock
        self.is_alive = True
        self.is_still = False  # frozen, or asleep
        self.disturbed_at = -1  # true time when it last stood still, went on, or was told to stop

    def is_undisturbed(self, since: int) -> bool:
        """Whether it has run without a break since then: what it began it could go on with."""
        return self.is_alive and self.disturbed_at < since


class Act(NamedTuple):
    """Somebody outside does something to an inhabitant; what exactly is the inhabitant's business."""

    at: int  # true time
    inhabitant: str
    what: str
    draw: float  # picks whatever there is to pick


class Touch(NamedTuple):
    """A table whose writes are noted: which kind of fact, and the column that names the row."""

    table: str
    kind: str
    column: str


class Surroundings(Protocol):
    """What an inhabitant sees of its world."""

    @property
    def loop(self) -> VirtualLoop: ...

    @property
    def wall(self) -> Wall: ...

    @property
    def stepped_at(self) -> int:
        """True time when the wall was last moved; -1 if never."""
        ...

    @property
    def attended_at(self) -> dict[str, int]:
        """True time when a person last changed, paused or resumed a schedule."""
        ...

    @property
    def seen_tx(self) -> Tx:
        """The store as it was last committed, for reading."""
        ...

    def say(self, text: Callable[[], str]) -> None: ...

    def report(self, violations: Sequence[str]) -> None: ...


class Tenant(Protocol):
    """An inhabitant on one boot."""

    async def plug(self, context: FeatureContext) -> FeatureHooks:
        """The real feature, over the inhabitant's virtual parts."""
        ...

    async def act(self, act: Act) -> None:
        """Do what somebody outside asks of this node."""
        ...


@runtime_checkable
class Arriving(Protocol):
    """A tenant that writes schedules itself, and so needs the whole system."""

    def arrive(self, system: Any) -> None:
        """The system that it is part of is put together."""
        ...


@runtime_checkable
class Wrapping(Protocol):
    """An inhabitant whose actions stand before those of others."""

    def wrap(self, boot: Boot, actions: Mapping[type[Any], Action], requests: Action) -> Mapping[type[Any], Action]:
        """Those of these actions that it takes over."""
        ...


class Inhabitant(Protocol):
    """A feature and everything around it, for the whole world."""

    @property
    def name(self) -> str: ...

    @property
    def touches(self) -> Sequence[Touch]: ...

    def move_in(self, boot: Boot) -> Tenant: ...

    def actions(self, boot: Boot, requests: Action) -> Mapping[type[Any], Action]:
        """What it performs itself on this boot, by the machine's own requests to others."""
        ...

    def figures(self) -> Mapping[str, int]:
        """What it came to, in numbers."""
        ...

    def draw_acts(self, near: Sequence[int]) -> list[Act]:
        """Everything people will do to it, in any order; `near` are times before which it is worth doing something."""
        ...

    def look(
        self, touched: Mapping[str, frozenset[int]], runs: Mapping[int, Run], *, now: Instant, pruned_before: Instant
    ) -> Iterator[str]:
        """A commit touched rows of its tables, and these runs; yields what is wrong."""
        ...

    def ticked(self, *, now: Instant, is_asleep: bool, ahead_max: Duration) -> Iterator[str]:
        """A node has looked at its clock. What was written may be ahead of the clock by so much, unnoticed."""
        ...

    def last_look(self) -> Iterator[str]:
        """The world ends."""
        ...


def draw_times(rng: random.Random, *, per_day: float, days: float, near: Sequence[int]) -> list[int]:
    """True times drawn over the whole world, so many a day; one in three shortly before something goes wrong."""
    expected = per_day * days
    count = int(expected) + (rng.random() < expected % 1)
    return [
        _before(rng, near) if near and rng.random() < 0.33 else rng.randrange(int(days * DAY)) for _ in range(count)
    ]


def _before(rng: random.Random, near: Sequence[int]) -> int:
    return max(0, rng.choice(near) - rng.randrange(rng.choice((SECOND, MINUTE))))
