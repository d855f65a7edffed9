"""Real nodes as processes, what they leave in the store, and what their targets saw: put together for fault tests."""

import asyncio
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import forking
from patience import PATIENCE
from wakeful.app import bootstrap
from wakeful.core.schedule.actions import Call
from wakeful.core.schedule.definition import Definition
from wakeful.core.time.instants import Instant
from wakeful.core.time.timing import Every, Once
from wakeful.drill.ledger import Verdict, audit
from wakeful.drill.observed import read_observations
from wakeful.features.schedules import commands
from wakeful.features.schedules.checks import Checked
from wakeful.ports.handlers import EngineHooks
from wakeful.ports.store import Tx

T = TypeVar("T")

NODE = Path(__file__).with_name("node.py")


class Field:
    """One store, the nodes on it, and everything their targets saw."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url = url
        self.folder = folder
        self.nodes: list[forking.Process] = []
        self._started = 0
        self._runner = asyncio.Runner()
        self._opened: bootstrap.Opened | None = None

    # --- nodes -------------------------------------------------------------------------------------------------------

    def start(self, name: str = "a", *, is_ready: bool = True, **options: object) -> forking.Process:
        """Start a node, and wait until it ticks unless it is to die before."""
        self._started += 1
        observed = self.folder / f"observed-{self._started}.jsonl"
        words = [f"{key}={value}" for key, value in options.items()]
        with (self.folder / "errors").open("ab") as errors:
            node = forking.start(NODE, self.url, name, observed, *words, stderr=errors)
        self.nodes.append(node)
        if is_ready:
            assert node.stdout is not None
            assert node.stdout.readline() == "ready\n", self.errors()
        return node

    def kill(self, node: forking.Process) -> None:
        node.kill()
        node.wait(timeout=PATIENCE)

    def stop(self, node: forking.Process) -> None:
        """Let it end in its own time."""
        node.send_signal(signal.SIGTERM)
        assert node.wait(timeout=PATIENCE) == 0, self.errors()

    def died(self, node: forking.Process, *, within: float = PATIENCE) -> None:
        """Wait for the death it was told to die."""
        assert node.wait(timeout=within) == -signal.SIGKILL, self.errors()

    def close(self) -> None:
        for node in self.nodes:
            if node.poll() is None:
                node.send_signal(signal.SIGCONT)
                node.kill()
                node.wait(timeout=PATIENCE)
            if node.stdout is not None:
                node.stdout.close()
        if self._opened is not None:
            self._runner.run(self._opened.store.close())
        self._runner.close()

    def errors(self) -> str:
        return (self.folder / "errors").read_text(errors="replace")[-4_000:]

    # --- the store ---------------------------------------------------------------------------------------------------

    def put(self, definitions: Sequence[Definition]) -> None:
        """Write schedules, before anybody ticks or from outside."""

        def operation(tx: Tx, now: Instant) -> None:
            checked = [Checked(definition, False) for definition in definitions]
            commands.put_many(tx, checked, hooks=NO_SEAMS, now=now)

        self._with_store(lambda store, now: store.write(lambda tx: operation(tx, now)))

    def look(self, question: Callable[[Tx], T]) -> T:
        """Ask the store, from outside."""
        answer: T = self._with_store(lambda store, _: store.read(question))
        return answer

    def audit(self, *, frozen: tuple[Instant, Instant] | None = None) -> Verdict:
        """Everything that was seen, against everything that is written.

        What a node had begun before it was `frozen` and ended after it woke is a ghost: nobody can stop what stands
        still, so it may overlap what others began meanwhile. That it counts for nothing is checked all the same."""
        seen = read_observations(sorted(self.folder.glob("observed-*.jsonl")))
        if frozen is not None:
            asleep, awake = frozen
            seen = [
                one._replace(ended_at=None)
                if one.began_at <= asleep and one.ended_at is not None and one.ended_at >= awake
                else one
                for one in seen
            ]
        return self.look(lambda tx: audit(tx, seen))

    def _with_store(self, use: Callable[[Any, Instant], Any]) -> Any:
        """A file is opened each time; connections to a server stay open, because tests ask it many times a second."""

        async def once() -> Any:
            opened = await bootstrap.open_store(self.url)
            try:
                return await use(opened.store, opened.clock.read().now)
            finally:
                await opened.store.close()

        async def again() -> Any:
            if self._opened is None:
                self._opened = await bootstrap.open_store(self.url)
            return await use(self._opened.store, self._opened.clock.read().now)

        return self._runner.run(again()) if self.url.startswith("postgres") else asyncio.run(once())

    # --- waiting -----------------------------------------------------------------------------------------------------

    def closed(self) -> int:
        """How many runs are over."""
        return self.look(lambda tx: sum(not run.is_open for run in tx.runs.page(limit=100_000)))

    def until_closed(self, number: int, *, within: float = PATIENCE) -> None:
        """Wait until so many runs are over."""
        self.until(lambda: self.closed() >= number, within=within)

    def until(self, condition: Callable[[], object], *, within: float = PATIENCE) -> None:
        give_up_at = time.monotonic() + within
        while not condition():
            assert time.monotonic() < give_up_at, f"not within {within:g} s: {self.errors()}"
            time.sleep(0.05)


NO_SEAMS = EngineHooks((), {}, {}, {}, None)  # type: ignore[arg-type]  # new schedules need none


def now() -> Instant:
    return time.time_ns() // 1_000_000


def steady(number: int, *, every: int = 400, lanes: int = 0, **options: Any) -> list[Definition]:
    """Schedules on a grid, so many, some of them in lanes."""
    anchor = now()
    return [
        Definition(
            f"lane{n % lanes}-{n}" if n < lanes * 2 else f"s{n}",
            Every(every + 37 * n, anchor + 11 * n),
            Call("target", {}),
            lane=f"lane{n % lanes}" if n < lanes * 2 else None,
            errors_max=0,
            **options,
        )
        for n in range(number)
    ]


def overdue(number: int, *, at: Instant) -> list[Definition]:
    """Schedules of one instant each, all at the same."""
    return [Definition(f"once{n}", Once(at), Call("target", {}), errors_max=0) for n in range(number)]
