"""The drill: real daemons ring against a witness while they are disturbed, and everything is counted afterwards.

Theory of operation
-------------------
There are two stages. On the main one, a few thousand instants fall due while one fault follows another. On the other
one, the clock is stepped: a step moves all instants together, so it gets separate schedules and a separate store. When
the load is over, the daemons get time to finish, are stopped in order, and the ledger is counted (`drill.counting`).

A drill ends within its time: the load takes about two thirds of it, no fault begins that would take longer than is
left, and anything unfinished at the end counts as lost. Everything is removed in the end, whatever happens
(`drill.fork_server`).
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from wakeful.core.time.instants import HOUR, Duration
from wakeful.drill import plan
from wakeful.drill.counting import ClockSteps, Counted, Expected, count
from wakeful.drill.faults import Fault, faults_of
from wakeful.drill.machine import look_at
from wakeful.drill.processes import ForkServerGone, Processes
from wakeful.drill.proxy import Proxy
from wakeful.drill.scratch import Scratch, make_folder, place_for, reserve_schemas
from wakeful.drill.stage import DaemonFailed, Stage, unfinished
from wakeful.ports.store import StoreUnavailable

Tell = Callable[[str], None]

MAIN: Final = "main"
CLOCK: Final = "clock"
LOAD_SHARE: Final = 0.68
"""The share of the time in which instants fall due. The rest is for the start, for finishing, and for counting."""

COUNTED_WITHIN: Final = 0.12
"""The share of the time that is kept for counting and cleaning up."""

RECOVERED: Final = 5
"""After this many attempts the daemons count as recovered."""

STEP: Final[Duration] = 3 * HOUR
STEPPED_WITHIN: Final = 15.0
"""Seconds after which a daemon must have continued, with schedules that run every second."""

NO_TIME: Final = "no time was left for it"
MORE_TIME: Final = "if the machine is slow or busy, allow more time with --minutes"


@dataclass(frozen=True, slots=True)
class Asked:
    """What the user asked for."""

    home: Path
    seconds: float
    server: str | None = None  # the address of a PostgreSQL server; None: SQLite
    seed: int = field(default_factory=lambda: random.SystemRandom().randrange(1_000_000))


@dataclass(frozen=True, slots=True)
class Tried:
    """A fault, and how long the daemons took to recover from it; None: it did not happen."""

    kind: str
    words: str
    recovered_in: float | None
    note: str | None = None


@dataclass(slots=True)
class Report:
    """The result of a drill."""

    store: str
    seconds: float = 0.0
    counted: Counted = field(default_factory=Counted)
    tried: list[Tried] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)  # of the daemons, apart from the counts
    machine: dict[str, Any] = field(default_factory=dict)

    @property
    def is_passed(self) -> bool:
        is_counted = self.counted.planned > 0 and self.counted.ran > 0
        return is_counted and not (self.counted.lost or self.counted.doubled or self.findings)

    @property
    def findings(self) -> tuple[str, ...]:
        """Everything that is wrong, in sentences."""
        return (*self.failures, *self.counted.findings)


async def drill(asked: Asked, tell: Tell) -> Report:
    """Run a drill; raises `CannotDrill` if it cannot run on this machine."""
    clock = _Clock(asked.seconds)
    report = Report("SQLite" if asked.server is None else "PostgreSQL")
    async with _scratch(asked) as scratch:
        try:
            async with asyncio.timeout_at(clock.end), _processes(scratch) as processes:
                tell("starting")
                report.machine = await asyncio.to_thread(look_at, scratch.folder, scratch.server)
                await processes.until_open()
                await _Drill(scratch, processes, clock, report, random.Random(asked.seed), tell).run()  # noqa: S311
        except TimeoutError:
            report.failures.append(f"time ran out before everything was counted; {MORE_TIME}")
    report.seconds = clock.passed
    return report


class _Clock:
    """The time of a drill, on the event loop's clock."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._began = asyncio.get_running_loop().time()
        self.end = self._began + seconds * 0.98 - 0.5  # the rest is for ending the processes

    @property
    def passed(self) -> float:
        return asyncio.get_running_loop().time() - self._began

    @property
    def load_left(self) -> float:
        """Seconds in which instants may still fall due."""
        return self._seconds * LOAD_SHARE - self.passed

    @property
    def finish_by(self) -> float:
        """When everything must have ended, so that it can be counted."""
        return self.end - self._seconds * COUNTED_WITHIN


class _Drill:
    """One drill, with everything open."""

    def __init__(
        self, scratch: Scratch, processes: Processes, clock: _Clock, report: Report, dice: random.Random, tell: Tell
    ) -> None:
        self._scratch = scratch
        self._processes = processes
        self._clock = clock
        self._report = report
        self._dice = dice
        self._tell = tell

    async def run(self) -> None:
        """Run both stages at the same time."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._on_stage(MAIN, ("a",) if self._scratch.server is None else ("a", "b"), self._main))
            group.create_task(self._on_stage(CLOCK, ("c",), self._step_clock))

    async def _on_stage(self, name: str, tags: tuple[str, ...], act: Callable[[Stage, str], Any]) -> None:
        async with _proxies(self._scratch, tags) as proxies:
            stage = Stage(name, tags, self._scratch, self._processes, proxies)
            try:
                await act(stage, await stage.open())
            except (DaemonFailed, ForkServerGone, StoreUnavailable) as error:
                self._report.failures.append(str(error))
            finally:
                await stage.close()

    # --- the main stage ----------------------------------------------------------------------------------------------

    async def _main(self, stage: Stage, witness: str) -> None:
        since = stage.now()
        until = since + round(max(self._clock.load_left, 2.0) * 1000)
        load = plan.load(f"{witness}/run", stage.commands_file, start=since + 500, until=until)
        since = await stage.put(load.definitions)
        await stage.heal()
        self._tell(f"{len(load.definitions):,} schedules, daemons are running")
        await self._disturb(stage)
        if all(fault.recovered_in is None or fault.kind == "clock" for fault in self._report.tried):
            self._report.failures.append(f"there was no time to inject faults; {MORE_TIME}")
        await stage.heal()
        self._tell("waiting until every run has ended")
        await self._finish(stage)
        expected = Expected(load.definitions, since, load.until)
        await self._count(stage, expected, ClockSteps(since))

    async def _disturb(self, stage: Stage) -> None:
        """Every fault once, then random ones, until the load is over."""
        await self._recovered(stage)
        faults = faults_of(stage)
        for fault in faults:
            await self._try(stage, fault)
        again = [fault for fault in faults if fault.kind == "kill"]
        while self._clock.load_left > min(fault.seconds for fault in again) + 1:
            await self._try(stage, self._dice.choice(again), is_again=True)

    async def _try(self, stage: Stage, fault: Fault, *, is_again: bool = False) -> None:
        left = self._clock.load_left
        if fault.seconds > left:
            if not is_again:
                self._report.tried.append(Tried(fault.kind, fault.words, None, NO_TIME))
            return
        try:
            async with asyncio.timeout(max(left, fault.seconds)):
                await fault.perform(stage)
        except TimeoutError:
            self._note(Tried(fault.kind, fault.words, None, "did not happen in time"))
            await stage.kill_armed()
            await stage.heal()
            return
        healed_at = time.monotonic()
        await stage.heal()
        await self._recovered(stage)
        self._note(Tried(fault.kind, fault.words, time.monotonic() - healed_at))

    async def _recovered(self, stage: Stage) -> None:
        """Wait until attempts begin again. After the load has ended there may be none."""
        with suppress(TimeoutError):
            async with asyncio.timeout(max(self._clock.load_left, 0) + 1):
                await stage.until_more(RECOVERED)

    def _note(self, tried: Tried) -> None:
        self._report.tried.append(tried)
        after = tried.note or f"recovered after {tried.recovered_in:.1f} s"
        self._tell(f"{tried.kind:<8}{tried.words}: {after}")

    async def _finish(self, stage: Stage) -> None:
        """Wait until every instant is decided and every run has ended, then stop the daemons."""
        try:
            async with asyncio.timeout_at(self._clock.finish_by):
                while await stage.look(unfinished):  # noqa: ASYNC110 - other processes do not set an event here
                    await asyncio.sleep(0.3)
        except TimeoutError:
            left = await stage.look(unfinished)
            self._report.failures.append(f"{left} schedules had not finished when time ran out; {MORE_TIME}")
        self._report.failures += await stage.stop()

    # --- the stage of the clock --------------------------------------------------------------------------------------

    async def _step_clock(self, stage: Stage, witness: str) -> None:
        definitions = plan.stepped(f"{witness}/run", start=stage.now())
        since = await stage.put(definitions)
        steps = ClockSteps(since)
        (tag,) = stage.tags
        await stage.heal()
        goes_on = await self._goes_on(stage, "")
        for words, offset in (("forward by 3 hours", STEP), ("back by 3 hours", 0)):
            if not goes_on:
                self._report.tried.append(Tried("clock", words, None, NO_TIME))
                continue
            stage.disturb(tag, clock=offset)
            steps.step(stage.now(), offset)
            goes_on = await self._goes_on(stage, words)
        self._report.failures += await stage.stop()
        await self._count(stage, Expected(definitions, since, None), steps)

    async def _goes_on(self, stage: Stage, words: str) -> bool:
        """Whether every schedule has run again in time, after a step or (without `words`) after the start."""
        began = time.monotonic()
        try:
            async with asyncio.timeout_at(self._clock.finish_by):
                await stage.until_more(2 * plan.STEPPED)
        except TimeoutError:
            if words:
                self._note(Tried("clock", words, None, NO_TIME))
            if time.monotonic() - began > STEPPED_WITHIN:
                after = f"after its clock was stepped {words}" if words else "after its start"
                self._report.failures.append(f"{after}, a daemon did not resume; {MORE_TIME}")
            return False
        if words:
            self._note(Tried("clock", words, time.monotonic() - began))
        return True

    async def _count(self, stage: Stage, expected: Expected, steps: ClockSteps) -> None:
        seen = stage.seen()
        counted = await stage.look(lambda tx: count(tx, expected, seen, steps))
        self._report.counted = self._report.counted.plus(counted)


@asynccontextmanager
async def _scratch(asked: Asked) -> AsyncIterator[Scratch]:
    folder, lock = make_folder(place_for(asked.home))
    scratch = Scratch(folder)
    reserved = None
    try:
        if asked.server is not None:
            reserved = await asyncio.to_thread(reserve_schemas, asked.server, (MAIN, CLOCK))
            scratch = Scratch(folder, reserved.server, reserved.schemas)
        yield scratch
    finally:
        scratch.remove()  # the fork server has done it, unless it was killed
        if reserved is not None:
            reserved.connection.close()
        os.close(lock)


@asynccontextmanager
async def _processes(scratch: Scratch) -> AsyncIterator[Processes]:
    processes = await Processes.open(scratch)
    try:
        yield processes
    finally:
        await processes.close()


@asynccontextmanager
async def _proxies(scratch: Scratch, tags: tuple[str, ...]) -> AsyncIterator[dict[str, Proxy]]:
    """A proxy for each daemon, in front of a server."""
    proxies: dict[str, Proxy] = {}
    try:
        if scratch.server is not None:
            host, port = await asyncio.to_thread(_place_of, scratch.server)
            for tag in tags:
                proxies[tag] = await Proxy.start(host, port)
        yield proxies
    finally:
        for proxy in proxies.values():
            await proxy.stop()


def _place_of(server: str) -> tuple[str, int]:
    """The host and port of an address."""
    import psycopg

    with psycopg.connect(server, connect_timeout=10) as connection:
        info = connection.info
        return info.hostaddr or info.host, info.port
