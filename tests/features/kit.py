"""A world on virtual time, for tests of the whole kernel: real engine, features and SQLite store, a clock that jumps.

A test is an async function decorated with `virtual` and gets a `World`. The world opens apps (`Bench`, a `Wakeful`
whose store works inline), lets time pass, and can kill, freeze and restart an app without asking it. Targets are
`Bot`s: they record every fire and end as they are told.
"""

import asyncio
import inspect
import sqlite3
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

from new_store import prepare
from wakeful import RunView, Wakeful
from wakeful.app import bootstrap
from wakeful.core.run.effects import Alert
from wakeful.core.run.results import Result
from wakeful.core.schedule.actions import Call
from wakeful.core.time.instants import HOUR, Duration, Instant, format_instant, parse_duration, parse_instant
from wakeful.engine.engine import Engine
from wakeful.engine.membership import Identity
from wakeful.integrations.actions.call import CallAction
from wakeful.integrations.actions.receipts import Receipts
from wakeful.integrations.channels.program import DeliverFunction
from wakeful.ports.action import Action, OrphanFate, Process
from wakeful.ports.clock import Clock
from wakeful.ports.handlers import FeatureHooks, Gate
from wakeful.ports.store import Store, StoreUnavailable, Tx
from wakeful.stores.sqlite.store import SqliteStore
from wakeful.testing.virtual_clock import VirtualClock, Wall
from wakeful.testing.virtual_loop import Process as Machine
from wakeful.testing.virtual_loop import VirtualLoop, run

T = TypeVar("T")

# Few ticks, so that days pass quickly: nobody else writes, and leases matter only where a test says so.
CALM: dict[str, Any] = {"poll": None, "lease": 6 * HOUR, "renew_every": 2 * HOUR, "prune_every": 6 * HOUR}


class AllTogether:
    """Group commit without trouble: whatever waits goes together."""

    def group_size(self, waiting: int) -> int:
        return waiting

    def before_commit(self) -> None: ...

    def after_commit(self) -> None: ...


class Tap:
    """The store as the app sees it: counts what is asked of it, and can be out of order."""

    def __init__(self, inner: Store) -> None:
        self._inner = inner
        self.writes = 0
        self.is_down = False
        self.fails_next: Exception | None = None
        self.loses_answer = False  # of the next write, which is committed
        self.last: int | None = None  # nothing happens any more once this many were committed

    async def write(self, operation: Callable[[Tx], T], *, is_urgent: bool = False) -> T:
        self.writes += 1
        if self.is_down:
            raise StoreUnavailable("the disk is full")
        error, self.fails_next = self.fails_next, None
        if error is not None:
            raise error
        answer = None if self.is_over(0) else await self._inner.write(operation, is_urgent=is_urgent)
        if self.loses_answer:
            self.loses_answer = False
            raise StoreUnavailable("the connection was lost")
        if self.is_over(1):  # it is durable, and nobody gets to know
            await asyncio.Event().wait()
        return answer  # type: ignore[return-value]  # it is over before there is none

    def is_over(self, room: int) -> bool:
        """Whether the last commit was made, or asked for."""
        return self.last is not None and self.writes > self.last - room

    async def read(self, operation: Callable[[Tx], T], *, is_urgent: bool = False) -> T:
        return await self._inner.read(operation, is_urgent=is_urgent)

    async def hold_clock(self) -> bool:
        return await self._inner.hold_clock()

    async def remember(self, mark: int) -> None:
        await self._inner.remember(mark)

    async def release_clock(self) -> None:
        await self._inner.release_clock()

    @property
    def is_exclusive(self) -> bool:
        return self._inner.is_exclusive

    async def changed(self) -> bool:
        return await self._inner.changed()

    def trouble(self) -> str | None:
        return self._inner.trouble()

    async def close(self) -> None:
        await self._inner.close()


class NoOrphans:
    """Remembers which processes it was asked to end."""

    def __init__(self) -> None:
        self.ended: list[Process] = []

    async def end(self, process: Process) -> OrphanFate:
        self.ended.append(process)
        return "gone"


class Bench(Wakeful):
    """A `Wakeful` in a virtual world: its store works inline, and it can be killed."""

    def __init__(
        self,
        world: "World",
        *,
        name: str = "node",
        gates: Sequence[Gate] = (),
        actions: Mapping[type[Any], Action] | None = None,
        limits: Mapping[str, Any] | None = None,
        is_shared: bool = False,
        clock: VirtualClock | None = None,
        hook: Any = None,
        **settings: Any,
    ) -> None:
        self.clock = clock or world.clock
        super().__init__(world.path, name=name, clock=self.clock, **{"timezone": "UTC", **settings})
        self.alerted: list[Alert] = []
        self.orphans = NoOrphans()
        self.machine = Machine(world.loop, name)
        self.tap: Tap | None = None
        self._gates = gates
        self._extra_actions = actions or {}
        self._overrides = {**CALM, "sleep_max": world.sleep_max, **(limits or {})}
        self._is_shared = is_shared
        self._hook = hook or AllTogether()

    async def start(self) -> None:
        await self.machine.start(super().start())

    @property
    def parts(self) -> bootstrap.Parts:
        return self._open

    @property
    def engine(self) -> Engine:
        return self._open.engine

    @property
    def store(self) -> Tap:
        assert self.tap is not None
        return self.tap

    async def kill(self) -> None:
        """As kill -9 does: no more code of it runs, the system lets go of its files."""
        parts, self._parts = self._parts, None
        self.machine.kill()
        self.machine.reap()
        assert parts is not None
        await parts.store.close()

    async def _open_store(self, url: str) -> bootstrap.Opened:
        prepare(Path(url))
        self.tap = Tap(SqliteStore.open_inline(Path(url), hook=self._hook, shared_clock=self._is_shared))
        return bootstrap.Opened(self.tap, self.clock, bootstrap.POLL)

    async def _assemble(self, store: Store, clock: Clock, setup: bootstrap.Setup) -> bootstrap.Parts:
        actions: dict[type[Any], Action] = {Call: CallAction(setup.registry), **self._extra_actions}
        identity = Identity(setup.name or "node", "here", 1)

        async def gates(_: bootstrap.FeatureContext) -> FeatureHooks:
            return FeatureHooks(gates=self._gates)

        setup = replace(
            setup,
            limits=replace(setup.limits, **self._overrides),
            features=[gates, *setup.features],
            on_alert=self.alerted.append,
            listener=None,
        )
        receipts = Receipts(b"a secret of the bench")
        return await bootstrap.assemble_with(
            store, clock, setup, actions, self.orphans.end, identity, receipts=receipts
        )


class Bot:
    """A target: records each fire, takes its time, and ends as told.

    `script` holds what the next calls do, `usual` what all others do: None succeeds at once, a duration succeeds after
    that long, an exception is raised, a result is returned, anything callable is called.
    """

    def __init__(self, world: "World", usual: Any = None) -> None:
        self._world = world
        self.usual = usual
        self.script: list[Any] = []
        self.fires: list[Any] = []
        self.began: list[str] = []
        self.running = 0
        self.running_max = 0

    @property
    def planned(self) -> list[str]:
        """The planned instants it was called for."""
        return [short(fire.planned_at) for fire in self.fires]

    @property
    def keys(self) -> list[str]:
        return [fire.idempotency_key for fire in self.fires]

    async def __call__(self, fire: Any) -> Any:
        self.fires.append(fire)
        self.began.append(short(self._world.now))
        self.running += 1
        self.running_max = max(self.running_max, self.running)
        try:
            return await self._act(self.script.pop(0) if self.script else self.usual)
        finally:
            self.running -= 1

    async def _act(self, act: Any) -> Any:
        if isinstance(act, BaseException):
            raise act
        if isinstance(act, int):
            await self._world.clock.sleep(act)
            return None
        if isinstance(act, Result) or act is None:
            return act
        answer = act()
        return await answer if inspect.isawaitable(answer) else answer


class World:
    """One file, one wall clock, and the apps that share them."""

    def __init__(self, folder: Path) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        self.loop = loop
        self.clock = VirtualClock(loop)
        self.path = folder / "wakeful.db"
        self.sleep_max: Duration = 2 * HOUR  # of apps that are opened; a daemon notices a changed clock each minute
        self._benches: list[Bench] = []

    @property
    def now(self) -> Instant:
        return self.clock.read().now

    @property
    def wall(self) -> Wall:
        return self.clock.wall

    def bench(self, **settings: Any) -> Bench:
        """An app that is not started yet."""
        bench = Bench(self, **settings)
        self._benches.append(bench)
        return bench

    async def open(
        self, on_due: Any = None, people: Mapping[str, DeliverFunction] | None = None, **settings: Any
    ) -> Bench:
        """An app that ticks; `people` are channels."""
        bench = self.bench(**settings)
        for name, person in (people or {}).items():
            bench.register_channel(name, None, person)
        if on_due is not None:
            bench.on_due(on_due)
        await bench.start()
        return bench

    async def reopen(self, bench: Bench, on_due: Any = None, *, off: str = "0s", **settings: Any) -> Bench:
        """Stop an app, let time pass, start it again."""
        await bench.stop()
        await self.sleep(off)
        return await self.open(on_due, **settings)

    async def sleep(self, duration: str | Duration) -> None:
        """Let time pass, and let everything that is due at its end happen."""
        await self.clock.sleep(parse_duration(duration) if isinstance(duration, str) else duration)
        await self.settle()

    async def until(self, text: str) -> None:
        """Let time pass until the wall says this; `01-02 09:00:00` is in the year the world began."""
        await self.sleep(max(0, instant(text) - self.now))

    async def settle(self) -> None:
        """Let everything happen that needs no time to pass."""
        for _ in range(100):
            await asyncio.sleep(0)
            if not self.loop.turns:  # nothing is ready any more
                return

    def query(self, sql: str, *values: Any) -> list[Any]:
        """Ask the database itself."""
        connection = sqlite3.connect(self.path)
        try:
            return connection.execute(sql, values).fetchall()
        finally:
            connection.close()

    def reported(self) -> list[str]:
        """The names of incidents that people were told of, oldest first."""
        rows = self.query("SELECT name FROM incidents WHERE told_at IS NOT NULL ORDER BY incident_id")
        return [str(name) for (name,) in rows]

    def tamper(self, sql: str, *values: Any) -> None:
        """Change the database behind everyone's back."""
        connection = sqlite3.connect(self.path)
        try:
            with connection:
                connection.execute(sql, values)
        finally:
            connection.close()

    async def close(self) -> None:
        for bench in self._benches:
            if bench.machine.is_alive:
                await bench.stop()


def virtual(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run an async test on virtual time, in a world of its own."""

    async def story(folder: Path, given: dict[str, Any]) -> None:
        world = World(folder)
        try:
            await test(world, **given)
        finally:
            await world.close()

    def on_virtual_time(tmp_path: Path, **given: Any) -> None:
        run(story(tmp_path, given))

    own = [parameter for name, parameter in inspect.signature(test).parameters.items() if name != "world"]
    folder = inspect.Parameter("tmp_path", inspect.Parameter.KEYWORD_ONLY)
    on_virtual_time.__signature__ = inspect.Signature(  # type: ignore[attr-defined]  # what pytest asks for
        [*(p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in own), folder]
    )
    for name in ("__name__", "__qualname__", "__doc__", "__module__"):
        setattr(on_virtual_time, name, getattr(test, name))
    return on_virtual_time


def short(at: datetime | Instant | None) -> str:
    """An instant as `01-02 09:00:00`, in UTC."""
    if at is None:
        return "never"
    if isinstance(at, int):
        at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=at)
    text = at.strftime("%m-%d %H:%M:%S")
    return text if not at.microsecond else f"{text}.{at.microsecond // 1000:03d}"


def instant(text: str) -> Instant:
    """`01-02 09:00:00` of 2026, or any RFC 3339 text."""
    return parse_instant(text if len(text) > 15 else f"2026-{text.replace(' ', 'T')}Z")


def as_ms(at: datetime) -> Instant:
    """An instant as the kernel has it."""
    return (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


def rfc(text: str) -> str:
    """The same as RFC 3339."""
    return format_instant(instant(text))


def told(run: RunView) -> str:
    """A row of the ledger in one line: what, how it ended, why, how many."""
    words = [short(run.planned_at), run.outcome]
    if run.reason is not None:
        words.append(f"({run.reason})")
    if run.count > 1:
        words.append(f"x{run.count}")
    return " ".join(words)


async def ledger(app: Wakeful, slug: str) -> list[str]:
    """A schedule's ledger, oldest first, a line each."""
    return [told(row) for row in reversed(await app.runs(slug, limit=1000))]
