"""Schedules that are due together and decided alike: a claim and a settlement take many of their runs at once.

They are written at the same time, with the same definition but for their lanes and timeouts, and people meddle with
some of them shortly before and after they are due, so that some of a batch differ from the others. They live only in
worlds that ask for them, because their commits would make every other world a different one.
"""

import random
from collections.abc import Sequence
from itertools import cycle
from typing import Any, Final, NamedTuple

from wakeful.core.time.instants import DAY, MINUTE, SECOND, Duration, Instant, format_duration, format_instant
from worlds.faults import LANES, Behaviour, Climate, Deed, Person, draw_behaviour

PREFIX: Final = "alike-"
TELLING: Final = "alike-telling-"
"""The slugs of those whose runs have an output."""
REPLYING: Final = "alike-telling-someone-"
"""The slugs of those whose output is delivered, in a world with an outbox."""
BATCHES_MAX: Final = 12
_LANES_OF_THEIR_OWN: Final = [{"lane": f"{PREFIX}{number}"} for number in range(30)]
_TIMEOUTS: Final = [{"timeout": f"{minutes}m"} for minutes in (9, 10, 11)]
_MEDDLING: Final[tuple[Person, ...]] = ("edit", "pause", "remove", "run_now", "cancel")


class Alike(NamedTuple):
    """Writes schedules that differ only in their slugs, and some in their lanes and timeouts."""

    at: int  # true time
    name: str
    number: int
    draw: float
    after: Duration  # from when they are written to when they are due
    every: Duration | None  # None: once
    written: dict[str, Any]
    own: Sequence[dict[str, Any]]  # a lane or a timeout, for the schedules in turn

    @property
    def slugs(self) -> list[str]:
        return [f"{self.name}-{index}" for index in range(self.number)]

    def definitions(self, now: Instant) -> dict[str, dict[str, Any]]:
        """What is written at this time, by slug."""
        timing = {"type": "once", "at": format_instant(now + self.after)}
        if self.every is not None:
            timing = {"type": "every", "every": format_duration(self.every), "anchor": timing["at"]}
        return {
            slug: {**self.written, **own, "schedule": timing}
            for slug, own in zip(self.slugs, cycle(self.own), strict=False)
        }


class AlikeDeed(NamedTuple):
    """A person does something to one of them."""

    at: int  # true time
    slug: str
    deed: Deed

    @property
    def draw(self) -> float:
        return self.deed.draw


def is_one(slug: str) -> bool:
    """Whether this is one of them."""
    return slug.startswith(PREFIX)


def is_telling(slug: str) -> bool:
    """Whether its runs have an output."""
    return slug.startswith(TELLING)


def is_replying(slug: str) -> bool:
    """Whether the output of its runs is delivered, in a world with an outbox."""
    return slug.startswith(REPLYING)


def draw_behaviour_of_one(rng: random.Random) -> Behaviour:
    """Most end together; some cancel their own task."""
    dice = rng.random()
    if dice < 0.93:
        return Behaviour("done", 20)
    return Behaviour("cancels", 20) if dice < 0.95 else draw_behaviour(rng)


def draw_alike(rng: random.Random, climate: Climate) -> list[Alike | AlikeDeed]:
    """Everything that happens with them, in any order."""
    drawn: list[Alike | AlikeDeed] = []
    length = int(climate.days * DAY)
    for number in range(min(BATCHES_MAX, 6 + int(2 * climate.days))):
        made = _draw(rng, climate, number, rng.randrange(length * 3 // 4))
        drawn.append(made)
        drawn += _draw_deeds(rng, made)
    return drawn


def _draw(rng: random.Random, climate: Climate, number: int, at: int) -> Alike:
    is_recurring = rng.random() < 0.4
    many = rng.choice((9, 12)) if is_recurring else rng.choice((9, 20, 60))
    written: dict[str, Any] = {
        "call": {"target": "anything"},
        "timeout": format_duration(rng.choice((30 * SECOND, 10 * MINUTE))),
        "onCrash": rng.choice(("retry", "retry", "unknown")),
    }
    if rng.random() < 0.25:
        written["lane"] = rng.choice(LANES)
    own: Sequence[dict[str, Any]] = rng.choice(([{}], [{}], _LANES_OF_THEIR_OWN, _TIMEOUTS))
    dice = rng.random()
    prefix = REPLYING if dice < 0.25 else TELLING if dice < 0.45 else PREFIX
    every = climate.pace * rng.randrange(1, 4) if is_recurring else None
    return Alike(at, f"{prefix}{number}", many, rng.random(), rng.randrange(MINUTE, 5 * MINUTE), every, written, own)


def _draw_deeds(rng: random.Random, made: Alike) -> list[AlikeDeed]:
    """What people do to some of them, and the end of those that would go on for ever."""
    due_at = made.at + made.after
    deeds = []
    # One deed each: of an edit and a removal at the same time it is not known which came last.
    for slug in rng.sample(made.slugs, rng.choice((0, 0, 1, 3))):
        at = max(made.at + 2 * SECOND, due_at + rng.choice((-SECOND, 0, 20, 500, 5 * SECOND)))
        what = rng.choice(_MEDDLING)
        edited = {**made.written, "timeout": "11m", "schedule": {"type": "times", "times": ["03:00"]}}
        deeds.append(AlikeDeed(at, slug, Deed(at, what, rng.random(), edited if what == "edit" else None)))
    if made.every is not None:
        at = due_at + made.every * rng.randrange(1, 8) + MINUTE
        deeds += [AlikeDeed(at, slug, Deed(at, "remove", made.draw)) for slug in made.slugs]
    return deeds
