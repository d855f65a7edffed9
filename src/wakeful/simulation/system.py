"""The system under simulation: the real engine and the real commands, put together by the real composition root.

The composition root and the features lie above this layer, because a feature may simulate. So the world knows the
system only as a protocol, and whoever starts a world hands in how to put one together. `assemble` does that for the
programs of this package; it finds the layers above by name.
"""

import os
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from importlib import import_module
from typing import Any, Protocol, TypeAlias

from wakeful.core.definition_json import definition_from_json
from wakeful.core.errors import Invalid
from wakeful.core.instants import Instant
from wakeful.engine.engine import Engine, Identity
from wakeful.engine.limits import Limits
from wakeful.ports.action import Action, Orphans
from wakeful.ports.clock import Clock
from wakeful.ports.store import Store

ZONE = "UTC"


class System(Protocol):
    """A scheduler over one store, as a world uses it."""

    @property
    def engine(self) -> Engine: ...

    async def put(self, slug: str, written: Mapping[str, Any]) -> None: ...

    async def pause(self, slug: str, until: Instant | None) -> None: ...

    async def resume(self, slug: str) -> None: ...

    async def remove(self, slug: str) -> None: ...

    async def run_now(self, slug: str) -> None: ...


Assemble: TypeAlias = Callable[[Store, Clock, Mapping[type[Any], Action], Orphans, Limits, str], Awaitable[System]]


async def assemble(
    store: Store, clock: Clock, actions: Mapping[type[Any], Action], orphans: Orphans, limits: Limits, name: str
) -> System:
    """The system as it is shipped, over this store, on this clock, with these actions."""
    bootstrap = import_module("wakeful.bootstrap")
    checks = import_module("wakeful.features.schedules.checks")
    identity = Identity(name, "simulated", os.getpid())
    parts = await bootstrap.assemble_with(
        store, clock, actions, orphans, identity, limits, checks.ScheduleLimits(), ZONE
    )
    return _Assembled(parts, import_module("wakeful.features.schedules.commands"), checks)


class _Assembled:
    def __init__(self, parts: Any, commands: Any, checks: Any) -> None:
        self._parts = parts
        self._commands = commands
        self._checks = checks

    @property
    def engine(self) -> Engine:
        engine: Engine = self._parts.engine
        return engine

    async def put(self, slug: str, written: Mapping[str, Any]) -> None:
        parts, now = self._parts, self._now
        definition = definition_from_json(written, default_zone=ZONE, slug=slug)
        checked = self._checks.check(
            definition, parts.schedule_limits, parts.seams.actions, parts.applied, now=now, default_zone=ZONE
        )
        (fate,) = await parts.store.write(
            partial(self._commands.put_many, checked=[checked], seams=parts.seams, now=now)
        )
        if isinstance(fate, Invalid):
            raise fate
        self.engine.ring_bell()

    async def pause(self, slug: str, until: Instant | None) -> None:
        await self._do("pause", slug, seams=self._parts.seams, until=until)

    async def resume(self, slug: str) -> None:
        await self._do("resume_schedule", slug)

    async def remove(self, slug: str) -> None:
        await self._do("remove", slug, seams=self._parts.seams)

    async def run_now(self, slug: str) -> None:
        await self._do("run_now", slug)

    @property
    def _now(self) -> Instant:
        now: Instant = self._parts.clock.read().now
        return now

    async def _do(self, command: str, slug: str, **options: Any) -> None:
        await self._parts.store.write(partial(getattr(self._commands, command), slug=slug, now=self._now, **options))
        self.engine.ring_bell()
