"""A world whose apps keep definition files: real engine, real store, real files, virtual time.

The mirror's disk work runs inline and nothing watches the folder, because both would wait in real time: saved files are
noticed by the rescan, or when a test says so (`World` time passes in steps of the mirror's own constants). The tests in
`test_watching.py` have the threads and the watching.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from features.kit import Bench, Bot, World
from wakeful.app import bootstrap
from wakeful.core.errors import FieldError
from wakeful.core.run.results import Done, Result
from wakeful.core.run.runs import RungName
from wakeful.core.schedule.actions import ActionSpec, Prompt
from wakeful.ports.action import Fire, Ladder
from wakeful.ports.store import Store, Tx
from wakeful.server.mirror import Mirror, Report
from wakeful.server.mirror.texts import Which

T = TypeVar("T")

HOURLY: dict[str, Any] = {
    "slug": "standup",
    "enabled": True,
    "schedule": {"type": "cron", "expression": "0 9 * * *", "timezone": "UTC"},
    "prompt": "Summarise yesterday's commits",
    "sessionConfig": {"persistSession": True},
}


async def inline(work: Callable[[], T]) -> T:
    """No thread: what blocks, blocks."""
    return work()


class Agent:
    """An agent: remembers what it was asked and in which session, and answers as told."""

    proves: RungName = "finished"
    is_local = False

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.sessions: list[str | None] = []
        self.script: list[Result] = []
        self.store: Store | None = None

    def check(self, spec: ActionSpec) -> FieldError | None:
        assert isinstance(spec, Prompt)
        return None if spec.agent == "default" else FieldError("agent", f"there is no agent '{spec.agent}'")

    async def perform(self, spec: ActionSpec, fire: Fire, ladder: Ladder) -> Result:
        assert isinstance(spec, Prompt)
        await ladder.climb("sent")
        store = self.store
        assert store is not None

        def session_of(tx: Tx) -> str | None:
            return tx.cadences.lock([fire.schedule_id])[fire.schedule_id].session_id

        given = await store.read(session_of)
        self.asked.append(spec.text)
        self.sessions.append(given)
        return self.script.pop(0) if self.script else Done(session_id=given or "abc-123")

    async def close(self) -> None: ...


class Desk(Bench):
    """An app with a mirror, wired as the daemon wires it: files are read before the clock starts, written last."""

    def __init__(
        self, world: World, agent: Agent, *, which: Which = "agent", disk: Any = inline, **settings: Any
    ) -> None:
        super().__init__(world, actions={Prompt: agent}, **settings)
        self.agent = agent
        self.folder = world.path.parent / "schedule"
        self.reports: list[Report] = []
        self._which: Which = which
        self._disk = disk
        self._mirror: Mirror | None = None

    @property
    def mirror(self) -> Mirror:
        assert self._mirror is not None
        return self._mirror

    async def stop(self) -> None:
        if self._parts is not None:
            await self._parts.engine.stop()
            await self.mirror.stop()
        await super().stop()

    async def kill(self) -> None:
        await super().kill()
        self.mirror.folder.close()  # the system lets go of its lock

    async def _assemble(self, store: Any, clock: Any, setup: bootstrap.Setup) -> bootstrap.Parts:
        parts = await super()._assemble(store, clock, setup)
        self.agent.store = parts.store
        self._mirror = Mirror(
            self.folder, parts, self._which, on_report=self.reports.append, disk=self._disk, is_watching=False
        )
        await self._mirror.start()
        return parts

    def told(self, kind: str) -> list[str]:
        """Reports of a kind, as they are read."""
        return [str(report) for report in self.reports if report.kind == kind]


async def open_desk(world: World, agent: Agent | None = None, **settings: Any) -> Desk:
    """A desk that ticks."""
    desk = Desk(world, agent or Agent(), **settings)
    desk.on_due(Bot(world))
    world._benches.append(desk)
    await desk.start()
    return desk


async def reopen(world: World, desk: Desk, *, off: str = "0s", **settings: Any) -> Desk:
    """Stop, let time pass, start."""
    await desk.stop()
    await world.sleep(off)
    return await open_desk(world, desk.agent, **settings)


def place(desk: Desk | World, slug: str = "standup", name: str = "definition.json") -> Path:
    folder = desk.folder if isinstance(desk, Desk) else desk.path.parent / "schedule"
    return folder / slug / name


def read(desk: Desk | World, slug: str = "standup", name: str = "definition.json") -> Any:
    """A file's JSON."""
    return json.loads(place(desk, slug, name).read_text())


def save(desk: Desk | World, value: Any, slug: str = "standup", name: str = "definition.json") -> None:
    """Save a file as an editor does that writes in place; anything but text becomes JSON."""
    path = place(desk, slug, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(value, bytes):
        path.write_bytes(value)
    else:
        path.write_text(value if isinstance(value, str) else json.dumps(value))


def edit(desk: Desk | World, slug: str = "standup", name: str = "definition.json", **changes: Any) -> None:
    """Change some fields of a file."""
    save(desk, {**read(desk, slug, name), **changes}, slug, name)


def age(desk: Desk | World, slug: str = "standup") -> tuple[int, int]:
    """Which two files these are: the same as long as nobody wrote them."""
    both = ("definition.json", "last-run.json")
    first, second = (place(desk, slug, name).stat().st_ino for name in both)
    return first, second


def listed(folder: Path) -> list[str]:
    """The names in a folder."""
    return sorted(path.name for path in folder.iterdir())


async def noticed(world: World) -> None:
    """Let the next rescan pass, and what it put off until it settled."""
    await world.sleep("63s")
