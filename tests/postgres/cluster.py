"""Several nodes in one test process: real engines, real connections, real threads, one schema."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from patience import PATIENCE
from wakeful.app import bootstrap
from wakeful.core.schedule.actions import Call
from wakeful.core.schedule.definition import Definition
from wakeful.core.time.timing import Once
from wakeful.engine.engine import Engine
from wakeful.engine.limits import Limits
from wakeful.engine.membership import Identity
from wakeful.features.schedules import commands
from wakeful.features.schedules.checks import Checked
from wakeful.integrations.actions.call import CallAction
from wakeful.integrations.actions.registry import CallRegistry
from wakeful.ports.action import OrphanFate, Process
from wakeful.ports.clock import Clock
from wakeful.ports.store import Store, StoreUnavailable, Tx
from wakeful.stores.postgres import PostgresStore, Timeouts

T = TypeVar("T")

# Short, so that a lost lease is seen within seconds; but if a commit took longer than this, no run would ever begin.
SHORT = Limits(concurrency_max=32, lease=5_000, renew_every=300, shutdown_grace=2_000, ending_grace=500, poll=50)
BRISK = Timeouts(lock=5_000)


class NoOrphans:
    """These tests start no processes."""

    async def end(self, process: Process) -> OrphanFate:
        return "gone"


class Tap:
    """The store as one node sees it; the line can be cut."""

    def __init__(self, inner: PostgresStore) -> None:
        self.inner = inner
        self.is_cut = False

    async def write(self, operation: Callable[[Tx], T], *, is_urgent: bool = False) -> T:
        self._check()
        return await self.inner.write(operation, is_urgent=is_urgent)

    async def read(self, operation: Callable[[Tx], T], *, is_urgent: bool = False) -> T:
        self._check()
        return await self.inner.read(operation, is_urgent=is_urgent)

    async def hold_clock(self) -> bool:
        return await self.inner.hold_clock()

    async def remember(self, mark: int) -> None:
        await self.inner.remember(mark)

    async def release_clock(self) -> None:
        await self.inner.release_clock()

    @property
    def is_exclusive(self) -> bool:
        return self.inner.is_exclusive

    async def changed(self) -> bool:
        return await self.inner.changed()

    def trouble(self) -> str | None:
        return self.inner.trouble()

    async def close(self) -> None:
        await self.inner.close()

    def _check(self) -> None:
        if self.is_cut:
            raise StoreUnavailable("the line is cut")


class Node:
    """One node of the cluster, and how often it was asked to do what."""

    def __init__(self, tap: Tap, parts: bootstrap.Parts, registry: CallRegistry) -> None:
        self.tap = tap
        self.registry = registry
        self.parts = parts
        self.fires: Counter[str] = Counter()

    @property
    def store(self) -> Store:
        return self.tap

    @property
    def engine(self) -> Engine:
        return self.parts.engine

    @property
    def now(self) -> int:
        return self.parts.clock.read().now

    async def put(self, definitions: Sequence[Definition]) -> None:
        """Write schedules."""
        checked = [Checked(definition, False) for definition in definitions]
        await self.command(lambda tx: commands.put_many(tx, checked, hooks=self.parts.hooks, now=self.now))

    async def command(self, operation: Callable[[Tx], T]) -> T:
        """Do something, and let this node look at once."""
        answer = await self.tap.write(operation)
        self.engine.ring_bell()
        return answer


async def make_node(
    url: str,
    name: str,
    on_fire: Callable[[str, Any], Awaitable[None]] | None = None,
    limits: Limits = SHORT,
    patience: Timeouts = BRISK,
) -> Node:
    """A node that is not started yet; `on_fire` gets the node's name and the fire."""
    tap = Tap(await PostgresStore.open(url, timeouts=patience))
    registry = CallRegistry()
    clock: Clock = tap.inner.clock
    actions: dict[type[Any], Any] = {Call: CallAction(registry)}
    identity = Identity(name, "here", 1)
    setup = bootstrap.Setup(limits=limits)
    parts = await bootstrap.assemble_with(tap, clock, setup, actions, NoOrphans().end, identity)
    node = Node(tap, parts, registry)

    async def fire(fire: Any) -> None:
        node.fires[fire.slug] += 1
        if on_fire is not None:
            await on_fire(name, fire)

    registry.register("f", fire)
    return node


@asynccontextmanager
async def cluster(
    url: str,
    names: str = "abc",
    on_fire: Callable[[str, Any], Awaitable[None]] | None = None,
    patience: Timeouts = BRISK,
) -> AsyncIterator[list[Node]]:
    """Nodes that tick, one for each letter."""
    nodes = [await make_node(url, name, on_fire, SHORT, patience) for name in names]
    try:
        for node in nodes:
            await node.engine.start()
        yield nodes
    except TimeoutError as error:
        error.add_note("\n".join([line for node in nodes for line in await state_of(node)]))
        raise
    finally:
        for node in nodes:
            node.tap.is_cut = False
            await node.engine.stop()
            await node.store.close()


async def state_of(node: Node) -> list[str]:
    """What a node and its store look like, for a test that waited too long."""

    def look(tx: Tx) -> list[object]:
        due = tx.alarms.due_kinds(now=node.now)
        return [*tx.nodes.all(), *tx.runs.page(limit=20), tx.lanes.holders(), due, tx.alarms.next_due_at()]

    own = f"node {node.engine.node_id} at {node.now}: fires {dict(node.fires)}, running {node.engine.running}"
    return [own, *(f"  {row}" for row in await node.tap.inner.read(look))]


def once(slug: str, at: int, **options: Any) -> Definition:
    """A schedule of one instant."""
    return Definition(slug, Once(at), Call("f", {}), **options)


async def until(question: Callable[[], Awaitable[bool]], within: float = PATIENCE) -> None:
    """Wait for something to become true."""
    async with asyncio.timeout(within):
        while not await question():
            await asyncio.sleep(0.02)


async def is_idle(store: Store) -> bool:
    """Whether nothing runs or waits."""
    open_runs = await store.read(
        lambda tx: tx.runs.page(limit=1, outcome="running") + tx.runs.page(limit=1, outcome="waiting")
    )
    return not open_runs
