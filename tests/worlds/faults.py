"""Troubles, drawn from a seed.

Theory of operation
-------------------
A world is a pure function of its seed. Everything in it that is left to chance is drawn here, from generators that are
handed in: what the schedules look like (`draw_definition`), what goes wrong with machines, clocks and people and when
(`draw_troubles`), how each attempt behaves (`draw_behaviour`), and whether a node dies at a commit (`CommitFaults`).
Each concern has a generator of its own, so that one more draw in one place does not change all the others.

Troubles are values with a true time; the world only carries them out.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from wakeful.core.time.instants import DAY, HOUR, MINUTE, SECOND, Duration, Instant, format_duration, format_instant

ZONES: Final = ("UTC", "America/New_York", "Europe/Berlin", "Africa/Cairo", "Australia/Lord_Howe", "Pacific/Apia")
LANES: Final = ("kitchen", "study")
BOOT_1970: Final[Instant] = 90 * SECOND
BOOT_2036: Final[Instant] = 2_085_978_496_000  # where counters of seconds since 1900 run over, February 2036

# -- troubles ---------------------------------------------------------------------------------------------------------


class Outage(NamedTuple):
    """A node is dead for a while, then boots again."""

    at: int  # true time, like every `at` here
    node: int
    lasting: Duration


class Restart(NamedTuple):
    """A node is stopped in good order and started again."""

    at: int
    node: int
    lasting: Duration


class Freeze(NamedTuple):
    """A node's process stands still for a while, then goes on as if nothing had been: its answers are late."""

    at: int
    node: int
    lasting: Duration


class Suspend(NamedTuple):
    """A node's machine sleeps: its process stands still and its monotonic clock does not see it."""

    at: int
    node: int
    lasting: Duration


class ClockStep(NamedTuple):
    """The wall is moved, either way, and stays there."""

    at: int
    by: Duration


class WrongClock(NamedTuple):
    """The wall says something else altogether, with or without a reboot, and is corrected after a while."""

    at: int
    says: Instant
    lasting: Duration
    with_boot: bool


Person: TypeAlias = Literal["add", "edit", "pause", "resume", "remove", "run_now", "cancel", "backfill", "replay"]


class Deed(NamedTuple):
    """A person does something; which schedule is drawn when it happens."""

    at: int
    what: Person
    draw: float  # picks the schedule
    definition: dict[str, Any] | None = None


Trouble: TypeAlias = Outage | Restart | Freeze | Suspend | ClockStep | WrongClock | Deed


@dataclass(frozen=True, slots=True)
class Climate:
    """How rough a world is."""

    days: float
    nodes: int = 1
    outages_per_day: float = 0.05
    steps_per_day: float = 0.02
    wrong_clocks_per_day: float = 0.005
    freezes_per_day: float = 0.03
    deeds_per_day: float = 0.3  # of people with schedules, and as many with each inhabitant
    cancels_per_day: float = 0.1
    backfills_per_day: float = 0.02
    replays_per_day: float = 0.05
    meddling_per_day: float = 0  # cancels, replays and backfills that wait for something to act on, of each sort
    meddling_min: int = 0  # of each sort, however short the world is
    holidays_per_day: float = 0.1  # how often the excluded days of the settings change
    nights: float = 0  # how many of its nights a laptop sleeps through
    crash_per_commit: float = 0.002
    shortages: float = 0  # the share of runs that find no resources for a while
    lease: Duration = 30 * SECOND
    outage_max: Duration = 60 * DAY
    schedules: int = 6  # how many there are at most
    pace: Duration = 6 * HOUR  # about the shortest distance between two instants of one schedule
    inhabitants: frozenset[str] = frozenset()  # who lives there beside the schedules
    has_alike: bool = False  # whether many schedules are due together (`worlds.alike`)


def draw_troubles(
    rng: random.Random, climate: Climate, definition: Callable[[random.Random], dict[str, Any]]
) -> list[Trouble]:
    """Everything that will go wrong, in the order of true time. `definition` draws what a person writes."""
    length = int(climate.days * DAY)
    makers: tuple[tuple[float, Callable[[int], Trouble]], ...] = (
        (climate.outages_per_day, lambda at: _outage(rng, at, climate)),
        (climate.outages_per_day / 2, lambda at: Restart(at, rng.randrange(climate.nodes), _short(rng))),
        (climate.steps_per_day, lambda at: ClockStep(at, _step(rng))),
        (climate.wrong_clocks_per_day, lambda at: _wrong_clock(rng, at)),
        (climate.freezes_per_day, lambda at: _freeze(rng, at, climate)),
        (climate.deeds_per_day, lambda at: _deed(rng, at, definition)),
    )
    troubles: list[Trouble] = []
    for per_day, make in makers:
        troubles += [make(rng.randrange(length)) for _ in range(_how_many(rng, per_day * climate.days))]
    troubles += _nights(rng, climate)
    for _ in range(_how_many(rng, climate.cancels_per_day * climate.days)):
        troubles.append(Deed(rng.randrange(length), "cancel", rng.random()))
    for _ in range(_how_many(rng, climate.backfills_per_day * climate.days)):
        troubles.append(Deed(rng.randrange(length), "backfill", rng.random()))
    for _ in range(_how_many(rng, climate.replays_per_day * climate.days)):
        troubles.append(Deed(rng.randrange(length), "replay", rng.random()))
    return sorted(troubles, key=lambda trouble: trouble.at)


def _nights(rng: random.Random, climate: Climate) -> list[Trouble]:
    """A laptop is closed in the evening, or now and then shut down, and opened in the morning or after the weekend."""
    nights: list[Trouble] = []
    free_at = 0
    for day in range(int(climate.days)):
        at = day * DAY + rng.randrange(17 * HOUR, 24 * HOUR)
        if at < free_at or rng.random() >= climate.nights:
            continue
        lasting = rng.randrange(7 * HOUR, 15 * HOUR) + (2 * DAY if rng.random() < 0.1 else 0)
        nights.append((Suspend if rng.random() < 0.9 else Outage)(at, 0, lasting))
        free_at = at + lasting
    return nights


def _how_many(rng: random.Random, expected: float) -> int:
    return int(expected) + (rng.random() < expected % 1)


def _short(rng: random.Random) -> Duration:
    return rng.randrange(SECOND, 10 * MINUTE)


def _outage(rng: random.Random, at: int, climate: Climate) -> Outage:
    (scale,) = rng.choices((MINUTE, HOUR, DAY, climate.outage_max), (6, 6, 3, 1))
    lasting = min(rng.randrange(scale // 10, 3 * scale), climate.outage_max)
    return Outage(at, rng.randrange(climate.nodes), lasting)


def _step(rng: random.Random) -> Duration:
    scale = rng.choice((10 * SECOND, 5 * MINUTE, HOUR, 12 * HOUR, 3 * DAY))
    return rng.choice((-1, 1)) * rng.randrange(1, scale)


def _wrong_clock(rng: random.Random, at: int) -> WrongClock:
    says = rng.choice((BOOT_1970, BOOT_2036)) + rng.randrange(DAY)
    return WrongClock(at, says, rng.choice((10 * SECOND, 10 * MINUTE, 5 * HOUR)), rng.random() < 0.7)


def _freeze(rng: random.Random, at: int, climate: Climate) -> Freeze | Suspend:
    kind = rng.choice((Freeze, Suspend))
    factor = rng.choice((0.3, 0.9, 1.5, 3, 20))
    return kind(at, rng.randrange(climate.nodes), max(SECOND, int(climate.lease * factor * rng.uniform(0.8, 1.2))))


_DEEDS: Final[tuple[Person, ...]] = ("add", "edit", "pause", "resume", "remove", "run_now")
_DEED_WEIGHTS: Final = (3, 4, 3, 5, 1, 4)


def _deed(rng: random.Random, at: int, definition: Callable[[random.Random], dict[str, Any]]) -> Deed:
    what = rng.choices(_DEEDS, _DEED_WEIGHTS)[0]
    return Deed(at, what, rng.random(), definition(rng) if what in ("add", "edit") else None)


# -- what people write ------------------------------------------------------------------------------------------------


def draw_definition(rng: random.Random, *, now: Instant, pace: Duration) -> dict[str, Any]:
    """A definition as a person would write it; `pace` is about the shortest distance between two of its instants."""
    written: dict[str, Any] = {
        "schedule": rng.choice(_TIMINGS)(rng, now, pace),
        **rng.choice(_ACTIONS),
        "catchUp": rng.choice(("once", "once", "skip", "all")),
        "overlap": rng.choice(("skip", "skip", "queue")),
        "onCrash": rng.choice(("retry", "retry", "unknown")),
        "timeout": format_duration(rng.choice((30 * SECOND, 10 * MINUTE, 2 * HOUR))),
        "maxConsecutiveErrors": rng.choice((0, 3, 5, 5)),
    }
    if rng.random() < 0.3:
        written["catchUpMax"] = rng.randrange(1, 6)
    if rng.random() < 0.25:
        written["maxLateness"] = format_duration(rng.choice((MINUTE, 5 * MINUTE, 3 * HOUR, 2 * DAY)))
    if rng.random() < 0.4:
        delay = format_duration(rng.choice((5 * SECOND, 90 * SECOND, 30 * MINUTE)))
        written["retry"] = {"times": rng.choice((None, 1, 3)), "delay": delay}
    if rng.random() < 0.3:
        written["stagger"] = format_duration(rng.choice((5 * SECOND, 2 * MINUTE, HOUR)))
    if rng.random() < 0.4:
        written["lane"] = rng.choice(LANES)
    if rng.random() < 0.1:
        written["activeHours"] = {
            "start": "08:00",
            "end": rng.choice(("17:30", "03:00")),
            "timezone": rng.choice(ZONES),
        }
    if rng.random() < 0.1:
        written["enabled"] = False
    return written


def _once(rng: random.Random, now: Instant, pace: Duration) -> dict[str, Any]:
    return {"type": "once", "at": format_instant(now + rng.randrange(MINUTE, 20 * pace))}


def _every(rng: random.Random, now: Instant, pace: Duration) -> dict[str, Any]:
    every = rng.choice((pace, 2 * pace, pace + 7_001, 3 * pace - 1, 5 * pace))
    written: dict[str, Any] = {"type": "every", "every": format_duration(every)}
    if rng.random() < 0.5:
        written["anchor"] = format_instant(max(0, now + rng.randrange(-30 * DAY, 3 * DAY)))
    return written


def _cron(rng: random.Random, _: Instant, pace: Duration) -> dict[str, Any]:
    minute = rng.randrange(60)
    daily = (
        f"{minute} {rng.randrange(24)} * * *",
        f"{minute} 2 * * *",  # the hour that daylight saving leaves out and repeats
        f"{minute} 9 * * 1-5",
        f"30 1,2,3 * * {rng.randrange(7)}",
        f"0 0 1,15 * {rng.randrange(7)}",
        f"{minute} */6 * * *",
    )
    hourly = (f"{minute} * * * *", f"*/20 {rng.randrange(4)} * * *", f"15 {minute} 1-3 * * *")
    return {
        "type": "cron",
        "expression": rng.choice(daily if pace > HOUR else daily + hourly),
        "timezone": rng.choice(ZONES),
    }


def _times(rng: random.Random, _: Instant, __: Duration) -> dict[str, Any]:
    times = sorted({f"{rng.randrange(24):02}:{rng.choice((0, 15, 30, 45)):02}" for _ in range(rng.randrange(1, 4))})
    return {"type": "times", "times": times, "timezone": rng.choice(ZONES)}


_ACTIONS: Final[tuple[dict[str, Any], ...]] = (
    {"call": {"target": "anything"}},
    {"call": {"target": "anything"}},
    {"http": {"method": "POST", "url": "http://localhost/anything"}},
    {"command": {"argv": ["anything"]}},
)
_TIMINGS: Final = (_once, _every, _every, _every, _cron, _cron, _cron, _times, _times)

# -- how attempts behave ----------------------------------------------------------------------------------------------

Manner: TypeAlias = Literal["done", "fails", "raises", "endless", "stubborn", "busy", "throttled", "cancels"]


class Behaviour(NamedTuple):
    """What an attempt does, and how long it takes when nobody stops it."""

    manner: Manner
    takes: Duration
    lingers: Duration = 0  # how long it goes on after it was told to end


def draw_behaviour(rng: random.Random) -> Behaviour:
    """Most attempts are quick and succeed; the rest is every kind of trouble."""
    dice = rng.random()
    takes = rng.choice((0, 20, SECOND, 5 * SECOND, 20 * SECOND)) + rng.randrange(50)
    if dice < 0.72:
        return Behaviour("done", takes)
    if dice < 0.80:
        return Behaviour("done", rng.choice((5 * MINUTE, 20 * MINUTE, HOUR)) + rng.randrange(SECOND))
    if dice < 0.88:
        return Behaviour("fails", takes)
    if dice < 0.92:
        return Behaviour("raises", takes)
    if dice < 0.95:
        return Behaviour("endless", 0, lingers=rng.choice((0, 0, 5 * SECOND)))
    if dice < 0.97:
        return Behaviour("stubborn", 0, lingers=rng.choice((MINUTE, HOUR, 2 * DAY)))
    return Behaviour("busy" if dice < 0.985 else "throttled", takes)


CommitFault: TypeAlias = Literal["before", "after"]


DEATHS_MAX: Final = 150


class CommitFaults:
    """Whether a node dies at this commit: before it (nothing was kept) or after it (nobody was told).

    After `DEATHS_MAX` deaths no commit is fatal any more. A few worlds boot and die a thousand times in nine days; they
    took most of the time of a long run, and after the first hundreds they showed nothing new.
    """

    def __init__(self, rng: random.Random, *, probability: float) -> None:
        self._rng = rng
        self._probability = probability
        self._deaths = 0

    def draw(self) -> CommitFault | None:
        dice = self._rng.random()
        if dice >= self._probability or self._deaths >= DEATHS_MAX:
            return None
        self._deaths += 1
        return "before" if dice < self._probability / 2 else "after"

    def group_size(self, waiting: int) -> int:
        """How many of those waiting share the next commit."""
        return waiting if waiting <= 1 else self._rng.randint(1, waiting)


def streams(seed: int, *concerns: str) -> Sequence[random.Random]:
    """One generator per concern, all from one seed."""
    return [random.Random(f"{seed}:{concern}") for concern in concerns]
