"""The drill's schedules: a few thousand instants of every kind, calling the witness.

The instants lie on a grid of half seconds. In between there are moments in which no attempt is in progress, and in
these a daemon is frozen (`drill.failpoints`).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from wakeful.core.schedule.actions import ActionSpec, Command, Http
from wakeful.core.schedule.definition import Definition
from wakeful.core.schedule.policies import CATCH_UP_LIMIT, OnCrash
from wakeful.core.time.instants import SECOND, Duration, Instant
from wakeful.core.time.timing import Every, Once
from wakeful.drill.witness import PROGRAM

GRID: Final[Duration] = 500
ONCE_PER_STEP: Final = 10
STEADY: Final = 12
IN_LANES: Final = 8
LANES: Final = 4
COMMANDS: Final = 2
STEPPED: Final = 6
_ON_CRASH: Final[Sequence[OnCrash]] = ("retry", "unknown")


class Load(NamedTuple):
    """Schedules, and when their last instant is."""

    definitions: list[Definition]
    until: Instant


def load(witness: str, commands: Path, *, start: Instant, until: Instant) -> Load:
    """Schedules of all kinds between these moments."""
    start = start // GRID * GRID + GRID
    until = until // GRID * GRID
    made = [
        *_one_shots(witness, start, until),
        *_steady(witness, start, until),
        *_in_lanes(witness, start, until),
        *_commands(commands, start, until),
    ]
    return Load(made, until)


def stepped(witness: str, *, start: Instant) -> list[Definition]:
    """Schedules for a clock that is stepped: they have no end, because it is unknown how far it will be stepped."""
    anchor = start // GRID * GRID
    return [
        Definition(f"stepped-{n}", Every(SECOND, anchor), _request(witness), catch_up="once", errors_max=0)
        for n in range(STEPPED)
    ]


def _one_shots(witness: str, start: Instant, until: Instant) -> list[Definition]:
    steps = range(start, until + 1, GRID)
    return [
        Definition(f"once-{number:02}-{at}", Once(at), _request(witness), on_crash=_ON_CRASH[number % 2], errors_max=0)
        for at in steps
        for number in range(ONCE_PER_STEP)
    ]


def _steady(witness: str, start: Instant, until: Instant) -> list[Definition]:
    return [
        _caught_up(
            f"steady-{n:02}",
            Every(SECOND, start + n % 2 * GRID),
            _request(witness),
            until,
            on_crash=_ON_CRASH[n // 2 % 2],
        )
        for n in range(STEADY)
    ]


def _in_lanes(witness: str, start: Instant, until: Instant) -> list[Definition]:
    return [
        _caught_up(
            f"lane-{n:02}",
            Every(SECOND, start + n // LANES % 2 * GRID),
            _request(witness, lane=f"lane{n % LANES}"),
            until,
            lane=f"lane{n % LANES}",
        )
        for n in range(IN_LANES)
    ]


def _commands(file: Path, start: Instant, until: Instant) -> list[Definition]:
    action = Command((sys.executable, "-I", "-S", "-c", PROGRAM, str(file)))
    return [_caught_up(f"command-{n}", Every(2 * SECOND, start + n * SECOND), action, until) for n in range(COMMANDS)]


def _caught_up(slug: str, every: Every, action: ActionSpec, until: Instant, **more: Any) -> Definition:
    """A schedule whose times all run, however late."""
    caught_up: dict[str, Any] = {"catch_up": "all", "catch_up_max": CATCH_UP_LIMIT, "errors_max": 0}
    return Definition(slug, every, action, expires_at=until, **caught_up, **more)


def _request(witness: str, *, lane: str | None = None) -> Http:
    return Http("POST", witness, {} if lane is None else {"X-Lane": lane})
