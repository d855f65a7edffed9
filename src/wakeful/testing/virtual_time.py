"""An app on a virtual clock, inside the event loop of the test.

Theory of operation
-------------------
The engine, the features and a SQLite file are real; the clock stands still (`testing.hand_time`). `advance` moves it
from one deadline to the next: after each step it waits, in real time, until everything that became due has run and is
settled, and only then takes the next step. So two days pass as fast as the work in them, and in the right order.

The clock never moves during a call, except while that call itself sleeps on the app's clock (`app.sleep`). Test code
that waits on the app's clock, as `run_now(wait=True)` does, moves it, because nothing else would.
"""

import asyncio
import logging
from collections.abc import Mapping
from contextlib import AsyncExitStack
from contextvars import ContextVar, copy_context
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from wakeful import sync
from wakeful.api.python import Wakeful
from wakeful.app import bootstrap
from wakeful.core.errors import refuse
from wakeful.core.time.instants import DAY, Instant, format_instant, parse_instant
from wakeful.core.time.timing_builders import as_datetime, as_duration, as_instant
from wakeful.engine.engine import Engine
from wakeful.engine.membership import BORN_AT
from wakeful.ports.clock import Clock
from wakeful.ports.meta import Meta
from wakeful.ports.store import Store, Tx
from wakeful.stores.sqlite.store import SqliteStore
from wakeful.testing.hand_time import HandTime
from wakeful.testing.replacing import AgentFunction, OnCommand, OnDispatch, OnHttp, replaced, replaced_agents
from wakeful.testing.virtual_clock import EPOCH, VirtualClock

log = logging.getLogger("wakeful")

PATIENCE: Final = 60.0
"""Real seconds after which a call that does not end is reported."""

QUIET_TURNS: Final = 20
"""Iterations of the event loop without any work after which everything has settled."""

OWN_FILE: Final = "use a separate file for the test: virtual(app, store=tmp_path / 'test.db')"

# Long polling intervals, so that a year passes quickly: no other process writes to the file.
_CALM: Final[Mapping[str, Any]] = {"lease": 30 * DAY, "renew_every": DAY, "sleep_max": DAY, "prune_every": DAY}

_IS_APP: Final[ContextVar[bool]] = ContextVar("wakeful_virtual", default=False)
"""Set in the tasks of an app on a virtual clock: the engine, its runs, and its background services."""


class Commits:
    """Counts commits, as the hook of an inline store."""

    def __init__(self) -> None:
        self.count = 0

    def group_size(self, waiting: int) -> int:
        return waiting

    def before_commit(self) -> None: ...

    def after_commit(self) -> None:
        self.count += 1


class VirtualTime:
    """The time of an app on a virtual clock."""

    def __init__(self, start: Instant, commits: Commits, patience: float) -> None:
        self._true = HandTime(is_guest=lambda: not _IS_APP.get())
        self._clock = VirtualClock(self._true, start)
        self._commits = commits
        self._patience = patience
        self._engine: Engine | None = None
        self._moving = asyncio.Lock()

    @property
    def now(self) -> datetime:
        """The current time of the app."""
        return as_datetime(self._clock.read().now)

    async def advance(self, duration: str | timedelta | float) -> None:
        """Let this much time pass (a string, a timedelta, or seconds), and return when all that was due has settled."""
        span = as_duration(duration, "duration")
        self._refuse_if_stuck()
        async with self._moving:
            await self._move_to(self._clock.read().now + span)

    async def advance_to(self, moment: str | datetime) -> None:
        """Let time pass until `moment`, and return when all that was due has settled."""
        target, now = as_instant(moment, "moment"), self._clock.read().now
        if target < now:
            refuse(
                "moment",
                f"{format_instant(target)} is in the past (now: {format_instant(now)}); time only moves forward",
            )
        self._refuse_if_stuck()
        async with self._moving:
            await self._move_to(target)

    def _refuse_if_stuck(self) -> None:
        if self._engine is None or self._engine.loop_task is None:
            raise RuntimeError("the app is stopped; time moves only inside `async with virtual(app, …)`")
        if _IS_APP.get():
            raise RuntimeError("a call cannot move the time it runs in; to let time pass inside it: await app.sleep(…)")

    async def _move_to(self, target: Instant) -> None:
        end = self._true.now_ms + max(0, target - self._clock.read().now)
        await self._settle()
        while (step := self._true.next_at()) is not None and step <= end:
            self._true.move_to(step)
            await self._settle()
        self._true.move_to(end)

    async def _settle(self) -> None:
        """Return when nothing is in progress and the engine waits for its next deadline."""
        quiet, commits = 0, self._commits.count
        while quiet < QUIET_TURNS:
            engine = self._engine
            under_way = {} if engine is None else engine.under_way
            busy = {task: name for task, name in under_way.items() if not self._true.is_asleep(task)}
            if busy:
                await self._until_one_ends(busy)
            is_parked = engine is None or engine.loop_task is None or self._true.is_waiting(engine.loop_task)
            is_quiet = not busy and is_parked and commits == self._commits.count
            quiet, commits = (quiet + 1 if is_quiet else 0), self._commits.count
            await asyncio.sleep(0)

    async def _until_one_ends(self, busy: "Mapping[asyncio.Task[Any], str]") -> None:
        """Wait, in real time, until one of the tasks has ended or sleeps on the clock."""
        waits = [*busy, self._true.next_wait()]
        done, _ = await asyncio.wait(waits, timeout=self._patience, return_when=asyncio.FIRST_COMPLETED)
        if not done:
            raise TimeoutError(
                f"still in progress after {self._patience:g} s of real time, while the clock does not advance: "
                f"{', '.join(busy.values())}; let it return, or pass virtual(…, patience=seconds)"
            )

    async def _drive(self) -> None:
        """Move the clock for test code that waits on it, one step at a time."""
        while True:
            begun = self._true.next_wait()
            while self._true.has_guest_waits:
                async with self._moving:
                    await self._step()
                await asyncio.sleep(0)
            await begun

    async def _step(self) -> None:
        try:
            await self._settle()
        except TimeoutError as error:  # the waiting code has its own limit, which is reached by moving on
            log.warning("%s", error)
        step = self._true.next_at()
        if self._true.has_guest_waits and step is not None:
            self._true.move_to(step)


class virtual:  # noqa: N801 - used like a function: `async with virtual(app) as time`
    """Start an app on a virtual clock, and stop it at the end: `async with virtual(app, start=…) as time`.

    `start` is where its time starts (default: where the file's time stopped, or 2026-01-01T00:00Z in a new one). The
    app runs on its own file, which must be new or from an earlier virtual run, or on the file given as `store`;
    entering again continues with it. Commands, HTTP requests and agents are replaced by functions, or refused."""

    def __init__(
        self,
        app: Wakeful | sync.Wakeful,
        *,
        start: str | datetime | None = None,
        store: str | Path | None = None,
        on_command: OnCommand | None = None,
        on_http: OnHttp | None = None,
        on_dispatch: OnDispatch | None = None,
        agents: Mapping[str, AgentFunction] | None = None,
        patience: float = PATIENCE,
    ) -> None:
        self._given = app
        self._app = app if isinstance(app, Wakeful) else app.inner
        self._start = None if start is None else as_instant(start, "start")
        self._path = self._app._url if store is None else str(store)
        self._replaced = partial(replaced, on_command=on_command, on_http=on_http, on_dispatch=on_dispatch)
        self._agents = agents or {}
        self._patience = patience
        self._open: AsyncExitStack | None = None

    async def __aenter__(self) -> VirtualTime:
        if self._app._is_started or self._open is not None:
            raise RuntimeError("the app is already started; let virtual(app, …) start it")
        if "://" in self._path.removeprefix("sqlite:///"):
            raise ValueError(f"a virtual clock needs a file, not {self._path.partition('://')[0]}; {OWN_FILE}")
        commits = Commits()
        store = SqliteStore.open_inline(Path(self._path.removeprefix("sqlite:///")), hook=commits, shared_clock=False)
        async with AsyncExitStack() as stack:
            stack.push_async_callback(store.close)
            time = VirtualTime(await store.write(self._begin), commits, self._patience)
            await self._begin_app(stack, store, time)
            self._open = stack.pop_all()
        return time

    async def _begin_app(self, stack: AsyncExitStack, store: Store, time: VirtualTime) -> None:
        async def open_store(_: str) -> bootstrap.Opened:
            return bootstrap.Opened(store, time._clock, None)

        async def assemble(store: Store, clock: Clock, setup: bootstrap.Setup) -> bootstrap.Parts:
            limits = replace(setup.limits, **_CALM)
            agents = replaced_agents(setup.agents, self._agents)
            setup = replace(setup, limits=limits, agents=agents, replaced=self._replaced)
            parts = await bootstrap.assemble(store, clock, setup)
            time._engine = parts.engine
            return parts

        stack.enter_context(self._app._moved_to(time._clock, open_store, assemble))
        driver = asyncio.create_task(time._drive(), name="wakeful-virtual-time")
        stack.push_async_callback(_end, driver)
        stack.push_async_callback(self._app.stop)
        context = copy_context()
        context.run(_IS_APP.set, True)
        await asyncio.create_task(self._app.start(), context=context)
        if not self._app._is_ticking:
            raise RuntimeError(
                f"the app does not tick: tick=False, or another process runs on {self._path}; {OWN_FILE}"
            )
        stack.push_async_callback(self._note, store, time)
        await time._settle()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        opened, self._open = self._open, None
        if opened is not None:
            await opened.aclose()

    def __enter__(self) -> Any:
        """For `wakeful.sync.Wakeful`; the methods of the time block like those of the app."""
        if not isinstance(self._given, sync.Wakeful):
            raise TypeError("write `async with virtual(app)`; `with` is for a wakeful.sync.Wakeful")
        return sync.Blocking(self._given.portal, self._given.portal.call(self.__aenter__()))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert isinstance(self._given, sync.Wakeful)  # noqa: S101 - `__enter__` has seen to it
        self._given.portal.call(self.__aexit__(kind, error, trace))
        self._given.stop()

    def _begin(self, tx: Tx) -> Instant:
        """The start time; recorded in the file, which must not have been used in real time."""
        noted = tx[Meta].value(bootstrap.VIRTUAL_TIME)
        if noted is None and tx[Meta].value(BORN_AT) is not None:
            raise ValueError(f"{self._path} was used in real time, and its time must not be moved; {OWN_FILE}")
        reached = None if noted is None else parse_instant(noted)
        start = self._start if self._start is not None else EPOCH if reached is None else reached
        if reached is not None and start < reached:
            at = format_instant(reached)
            refuse("start", f"{format_instant(start)} has passed in {self._path}, where it is {at}; {OWN_FILE}")
        tx[Meta].set(bootstrap.VIRTUAL_TIME, format_instant(start))
        return start

    async def _note(self, store: Store, time: VirtualTime) -> None:
        """Store how far time got, for the next `async with`."""
        if self._app._is_started:
            reached = format_instant(time._clock.read().now)
            await store.write(lambda tx: tx[Meta].set(bootstrap.VIRTUAL_TIME, reached))


async def _end(task: "asyncio.Task[None]") -> None:
    task.cancel()
    await asyncio.wait([task])
