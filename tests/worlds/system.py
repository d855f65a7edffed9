"""The system under simulation: the real engine and the real commands, put together by the real composition root.

A world knows the system only as a protocol, and whoever starts a world hands in how to put one together; so a test can
hand in one that is broken on purpose.
"""

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, Protocol, TypeVar

from wakeful.app.bootstrap import MakeFeature, Parts, Setup, assemble_with
from wakeful.core.errors import Invalid
from wakeful.core.refusals import Conflict
from wakeful.core.run.effects import Deliver
from wakeful.core.schedule.actions import Event
from wakeful.core.schedule.definition_json import definition_from_json
from wakeful.core.time.instants import DAY, Instant
from wakeful.engine.engine import Engine
from wakeful.engine.limits import Limits
from wakeful.engine.membership import Identity
from wakeful.features.schedules import backfilling, cancelling, commands
from wakeful.features.schedules.checks import check
from wakeful.features.schedules.rules import Terms
from wakeful.ports.action import Action, Orphans
from wakeful.ports.clock import Clock
from wakeful.ports.store import Store, Tx

ZONE: Final = "UTC"
# Where the output of a schedule goes, by its number: nowhere, to one, to several, to whoever was heard of last as well.
_ADDRESSEES: Final[tuple[Any, ...]] = (
    {"channel": "pager"},
    None,
    None,
    [{"channel": "phone"}, {"channel": "mail", "to": "ann"}],
    {"channel": "mail"},
    {"channel": "mail"},
    None,
    None,
    {"channel": "pager"},
    None,
    None,
    [{"channel": "mail"}, {"channel": "mail", "to": "bob"}, {"channel": "last"}],
)
PAGER: Final = "pager"
"""A channel that comes and goes."""


def addressees_for(slug: str) -> Any:
    """The `deliver` of a schedule in a world with an outbox; edits keep it."""
    number = slug.removeprefix("s")
    return _ADDRESSEES[int(number) % len(_ADDRESSEES)] if number.isdecimal() else None


def is_silent(slug: str) -> bool:
    """Whether a schedule has nothing to say to anyone."""
    return slug.startswith("s") and addressees_for(slug) is None


def is_event(slug: str) -> bool:
    """Whether a schedule raises an event, in a world with a heartbeat."""
    return slug.startswith("s") and int(slug[1:]) % 4 == 1


def is_prompt(slug: str) -> bool:
    """Whether a schedule asks the agent, in a world with a heartbeat."""
    return slug.startswith("s") and int(slug[1:]) % 4 == 3


def text_of_event(slug: str) -> str:
    """What the event of a schedule says, each time."""
    return f"call-{slug}"


def _for_the_agent(slug: str, written: Mapping[str, Any]) -> dict[str, Any]:
    """The definition with an action for the agent in place of its own, if that is what the schedule is for."""
    others = {key: value for key, value in written.items() if key not in _ACTIONS}
    if is_event(slug):
        return {**others, "event": {"text": text_of_event(slug)}}
    if is_prompt(slug):
        return {**others, "prompt": f"ask-{slug}"}
    return dict(written)


_ACTIONS: Final = frozenset({"call", "http", "command"})


class System(Protocol):
    """A scheduler over one store, as a world uses it."""

    @property
    def engine(self) -> Engine: ...

    async def start(self) -> None:
        """Begin to tick, and whatever lives beside the clock with it."""
        ...

    async def stop(self) -> None:
        """End in good order."""
        ...

    async def put(self, slug: str, written: Mapping[str, Any]) -> None: ...

    async def pause(self, slug: str, until: Instant | None) -> None: ...

    async def resume(self, slug: str) -> None: ...

    async def remove(self, slug: str) -> None: ...

    async def run_now(self, slug: str) -> None: ...

    async def cancel(self, slug: str) -> tuple[int, int]: ...

    async def backfill(self, slug: str) -> None: ...


T = TypeVar("T")


class Assemble(Protocol):
    """Puts a system together."""

    def __call__(
        self,
        store: Store,
        clock: Clock,
        actions: Mapping[type[Any], Action],
        orphans: Orphans,
        limits: Limits,
        name: str,
        features: Sequence[MakeFeature] = (),
    ) -> Awaitable[System]: ...


async def assemble(
    store: Store,
    clock: Clock,
    actions: Mapping[type[Any], Action],
    orphans: Orphans,
    limits: Limits,
    name: str,
    features: Sequence[MakeFeature] = (),
) -> System:
    """The system as it is shipped, over this store, on this clock, with these actions and features."""
    identity = Identity(name, "simulated", os.getpid())
    setup = Setup(limits=limits, terms=Terms(default_zone=ZONE), features=features)
    parts = await assemble_with(store, clock, setup, actions, orphans, identity)
    return Shipped(parts)


class Shipped:
    """The parts as they are shipped, and the commands upon them."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    @property
    def engine(self) -> Engine:
        return self._parts.engine

    async def start(self) -> None:
        for service in self._parts.services:
            await service.start()
        await self.engine.start()

    async def stop(self) -> None:
        await self.engine.stop()
        for service in reversed(self._parts.services):
            await service.stop()

    async def put(self, slug: str, written: Mapping[str, Any]) -> None:
        parts, now = self._parts, self._parts.clock.read().now
        if is_silent(slug):  # so that some schedules are plain (`core.schedule.plain`)
            written = {name: value for name, value in written.items() if name not in ("lane", "activeHours")}
        if Deliver in parts.applied:
            written = {**written, "deliver": addressees_for(slug)}
        if Event in parts.hooks.actions:
            written = _for_the_agent(slug, written)
        definition = definition_from_json(written, default_zone=ZONE, slug=slug)
        checked = check(definition, parts.conditions, now=now)
        (fate,) = await parts.store.write(partial(commands.put_many, checked=[checked], hooks=parts.hooks, now=now))
        if isinstance(fate, Invalid):
            raise fate
        parts.engine.ring_bell()

    async def pause(self, slug: str, until: Instant | None) -> None:
        hooks = self._parts.hooks
        await self._do(lambda tx, now: commands.pause(tx, slug, hooks=hooks, now=now, until=until))

    async def resume(self, slug: str) -> None:
        await self._do(lambda tx, now: commands.resume_schedule(tx, slug, now=now))

    async def remove(self, slug: str) -> None:
        await self._do(lambda tx, now: commands.remove(tx, slug, hooks=self._parts.hooks, now=now))

    async def run_now(self, slug: str) -> None:
        await self._do(lambda tx, now: commands.run_now(tx, slug, now=now))

    async def cancel(self, slug: str) -> tuple[int, int]:
        """Cancel what runs or waits of it; returns the run, and its last attempt."""

        def cancel(tx: Tx, now: Instant) -> tuple[int, int]:
            schedule = tx.schedules.by_slugs([slug]).get(slug)
            cadence = None if schedule is None else tx.cadences.lock([schedule.schedule_id])[schedule.schedule_id]
            if cadence is None or cadence.open_run_id is None:
                raise Conflict(f"{slug} has no open run")
            cancelling.cancel(tx, cadence.open_run_id, hooks=self._parts.hooks, now=now)
            return cadence.open_run_id, tx.runs.lock([cadence.open_run_id])[cadence.open_run_id].attempt

        return await self._do(cancel)

    async def backfill(self, slug: str) -> None:
        """Run what did not succeed in the last two days, unless it is far too much."""

        def backfill(tx: Tx, now: Instant) -> None:
            wanted = backfilling.backfill_of(tx, slug, since=max(0, now - 2 * DAY), until=now, now=now)
            backfilling.start(tx, wanted._replace(instants=wanted.instants[:50]), "backfill", now=now)

        await self._do(backfill)

    async def _do(self, command: Callable[[Tx, Instant], T]) -> T:
        now = self._parts.clock.read().now
        result = await self._parts.store.write(lambda tx: command(tx, now))
        self.engine.ring_bell()
        return result
