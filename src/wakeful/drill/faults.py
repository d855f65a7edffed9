"""A drill's faults: what is done to the daemons, and in which order.

A fault only does damage; `Stage.heal` reverses it. The most important ones come first, so that a short drill includes
them.
"""

from __future__ import annotations

import asyncio
import signal
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from typing import Final, NamedTuple

from wakeful.drill.failpoints import Point
from wakeful.drill.node import LEASE
from wakeful.drill.stage import Stage

PAST_LEASE: Final = LEASE / 1000 + 1.5
"""Seconds after which a lease has certainly expired."""

LOCKED_FOR: Final = 3.0
LOCK_WITHIN_MS: Final = 3_000
FULL_FOR: Final = 2.5
FULL_AT: Final = 4_096
"""No file may be written beyond this many bytes while the disk is full."""


class Fault(NamedTuple):
    """Something that is done to the daemons."""

    kind: str
    words: str
    perform: Callable[[Stage], Awaitable[None]]
    seconds: float = 3.0  # how long the daemons need to recover, on an ordinary machine


def faults_of(stage: Stage) -> list[Fault]:
    """Every fault that fits this kind of store, in order."""
    victim = stage.tags[0]
    kills = {
        (operation, point): Fault("kill", f"{when} the commit of {words}", _kill_at(victim, operation, point))
        for operation, words in _STEPS.items()
        for point, when in _POINTS.items()
    }
    first, *early = (kills.pop(step) for step in _FIRST)
    in_attempt = Fault("kill", "in the middle of an attempt", _kill_in_attempt(victim))
    frozen, of_store = ([], _of_file(stage)) if stage.is_embedded else ([_frozen(victim)], _of_server(stage))
    return [
        *(in_attempt, first, *frozen, *early, in_attempt),
        *of_store,
        Fault("restart", "cleanly, with runs in progress", _end(victim, signal.SIGTERM)),
        *kills.values(),
        *(_special(stage, victim, operation, point) for operation in _SPECIAL for point in _POINTS),
        Fault("kill", "at a random moment", _end(victim, signal.SIGKILL)),
    ]


_POINTS: Final[dict[Point, str]] = {"held": "before", "after": "after"}
"""A commit is held back for a moment before the kill, so that what was acknowledged too early takes effect."""

_FIRST: Final[tuple[tuple[str, Point], ...]] = (
    ("mark", "held"),
    ("claim", "held"),
    ("settle", "held"),
    ("claim", "after"),
    ("mark", "after"),
)
"""Kills between an effect and the commit that records it, or the other way round."""

_STEPS: Final = {
    "claim": "a claim",
    "mark": "a mark",
    "settle": "a settlement",
    "renew": "a lease renewal",
}
"""Commits that every running daemon makes: claiming, recording how far an attempt got, and so on."""

_SPECIAL: Final = {
    "enter": "a start",
    "rescue": "a rescue",
    "leave": "a shutdown",
}
"""Commits that need another event to happen."""


def _of_file(stage: Stage) -> list[Fault]:
    tag = stage.tags[0]
    return [
        Fault("disk", "full for some seconds", _fill_disk(tag), FULL_FOR + 3),
        Fault("freeze", "longer than the lease", _freeze(tag), PAST_LEASE + 2),
        Fault("lock", "the database, by another process", _lock_database, LOCKED_FOR + 2),
    ]


def _frozen(tag: str) -> Fault:
    """Only where another daemon takes over can one that continues do damage; it takes long, so it comes early."""
    return Fault("freeze", "past the lease, before an attempt", _freeze_at(tag, "mark"), PAST_LEASE + 3)


def _of_server(stage: Stage) -> list[Fault]:
    tag = stage.tags[0]
    return [
        Fault("cut", "off the server, past the lease", _cut(tag), PAST_LEASE + 3),
        Fault("freeze", "past the lease, after a claim", _freeze_at(tag, "claim"), PAST_LEASE + 3),
        Fault("cut", "off the server, all at once", _cut(*stage.tags), 4.0),
    ]


def _special(stage: Stage, victim: str, operation: str, point: Point) -> Fault:
    words = f"{_POINTS[point]} the commit of {_SPECIAL[operation]}"
    if operation == "enter":
        return Fault("kill", words, _kill_at_start(victim, point))
    if operation == "leave":
        return Fault("kill", words, _kill_at_end(victim, point))
    if stage.is_embedded:
        return Fault("kill", words, _kill_at_rescue(victim, victim, point))
    return Fault("kill", words, _kill_at_rescue(victim, stage.tags[1], point), PAST_LEASE + 3)


# --- killed ----------------------------------------------------------------------------------------------------------


def _kill_at(tag: str, operation: str, point: Point) -> Callable[[Stage], Awaitable[None]]:
    async def perform(stage: Stage) -> None:
        stage.disturb(tag, failpoint=f"{operation}:{point}:2")
        await stage.died(tag)

    return perform


def _kill_in_attempt(tag: str) -> Callable[[Stage], Awaitable[None]]:
    async def perform(stage: Stage) -> None:
        await stage.kill_with_next_attempt(tag)
        await stage.died(tag)

    return perform


def _end(tag: str, number: signal.Signals) -> Callable[[Stage], Awaitable[None]]:
    async def perform(stage: Stage) -> None:
        stage.send(tag, number)
        await stage.died(tag)

    return perform


def _kill_at_start(tag: str, point: Point) -> Callable[[Stage], Awaitable[None]]:
    async def perform(stage: Stage) -> None:
        await _end(tag, signal.SIGKILL)(stage)
        await stage.start(tag, failpoint=f"enter:{point}:1")
        await stage.died(tag)

    return perform


def _kill_at_end(tag: str, point: Point) -> Callable[[Stage], Awaitable[None]]:
    async def perform(stage: Stage) -> None:
        stage.disturb(tag, failpoint=f"leave:{point}:1")
        stage.send(tag, signal.SIGTERM)
        await stage.died(tag)

    return perform


def _kill_at_rescue(victim: str, rescuer: str, point: Point) -> Callable[[Stage], Awaitable[None]]:
    """The rescuer is the next start of the same daemon, or another daemon once the lease has expired."""

    async def perform(stage: Stage) -> None:
        if rescuer != victim:
            stage.disturb(rescuer, failpoint=f"rescue:{point}:1")
        await _kill_at(victim, "mark", "after")(stage)
        if rescuer == victim:
            await stage.start(victim, failpoint=f"rescue:{point}:1")
        await stage.died(rescuer)

    return perform


# --- disturbed in other ways -----------------------------------------------------------------------------------------


def _freeze(tag: str) -> Callable[[Stage], Awaitable[None]]:
    async def perform(stage: Stage) -> None:
        stage.send(tag, signal.SIGSTOP)
        await asyncio.sleep(PAST_LEASE)
        stage.send(tag, signal.SIGCONT)

    return perform


def _freeze_at(tag: str, operation: str) -> Callable[[Stage], Awaitable[None]]:
    async def perform(stage: Stage) -> None:
        stage.disturb(tag, failpoint=f"{operation}:after:1:freeze")
        await stage.stopped(tag)
        await asyncio.sleep(PAST_LEASE)
        stage.send(tag, signal.SIGCONT)

    return perform


def _cut(*tags: str) -> Callable[[Stage], Awaitable[None]]:
    async def perform(stage: Stage) -> None:
        for tag in tags:
            stage.proxies[tag].cut()
        await asyncio.sleep(PAST_LEASE if len(tags) == 1 else 1.0)
        for tag in tags:
            stage.proxies[tag].reconnect()

    return perform


def _fill_disk(tag: str) -> Callable[[Stage], Awaitable[None]]:
    async def perform(stage: Stage) -> None:
        stage.disturb(tag, file_max=FULL_AT)
        await asyncio.sleep(FULL_FOR)

    return perform


async def _lock_database(stage: Stage) -> None:
    file = stage.url.removeprefix("sqlite:///")
    with closing(sqlite3.connect(file, isolation_level=None, check_same_thread=False)) as connection:
        connection.execute(f"PRAGMA busy_timeout = {LOCK_WITHIN_MS}")
        try:
            await asyncio.to_thread(connection.execute, "BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            raise TimeoutError from error  # the daemon writes without a pause
        await asyncio.sleep(LOCKED_FOR)
        connection.execute("ROLLBACK")
