"""What tests of telemetry share: a bench whose store tells, and listeners that remember."""

from collections.abc import Sequence
from typing import Any

from features.kit import Bench, World
from wakeful.app import bootstrap
from wakeful.engine.engine import Engine
from wakeful.observe.eventing_store import EventingStore
from wakeful.observe.fan_out import FanOut, Listener
from wakeful.ports.sink import Fact, Sink


class ToldBench(Bench):
    """A `Bench` over a store that tells; listeners are given before it starts."""

    def __init__(self, world: World, *, listeners: Sequence[Listener] = (), **settings: Any) -> None:
        super().__init__(world, **settings)
        self.fan_out: FanOut | None = None
        self._first_listeners = listeners

    async def _assemble(self, store: Any, clock: Any, setup: bootstrap.Setup) -> bootstrap.Parts:
        self.fan_out = FanOut()
        self.fan_out.begin(store)
        for listener in self._first_listeners:
            self.fan_out.listen(listener)
        parts = await super()._assemble(EventingStore(store, self.fan_out, clock), clock, setup)
        _give_sink(parts.engine, self.fan_out)
        return parts


def _give_sink(engine: Engine, sink: Sink) -> None:
    engine._sink = sink


async def open_told(world: World, on_due: Any, *listeners: Listener, **settings: Any) -> ToldBench:
    """An app that ticks, and whose facts these listeners hear."""
    bench = ToldBench(world, listeners=listeners, **settings)
    world._benches.append(bench)
    bench.on_due(on_due)
    await bench.start()
    return bench


class Heard:
    """A listener that remembers everything, as `Fact.__name__: slug`."""

    def __init__(self) -> None:
        self.facts: list[Fact] = []

    def __call__(self, facts: Sequence[Fact], slugs: Any) -> None:
        self.facts += facts

    def of(self, kind: type[Any]) -> list[Any]:
        """Facts of one kind, oldest first."""
        return [fact for fact in self.facts if isinstance(fact, kind)]

    def forget(self) -> None:
        self.facts.clear()
