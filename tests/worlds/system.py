"""The system under simulation: the real engine and the real commands, put together by the real composition root.

A world knows the system only as a protocol, and whoever starts a world hands in how to put one together; so a test can
hand in one that is broken on purpose.
"""

import json
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, Protocol, TypeVar

from wakeful.app.bootstrap import MakeFeature, Parts, Setup, assemble_with
from wakeful.core.errors import Invalid
from wakeful.core.refusals import Conflict
from wakeful.core.run.effects import Deliver
from wakeful.core.schedule.actions import Event
from wakeful.core.schedule.definition import Definition
from wakeful.core.schedule.definition_json import definition_from_json
from wakeful.core.time.instants import DAY, Instant
from wakeful.engine.engine import Engine
from wakeful.engine.limits import Limits
from wakeful.engine.membership import Identity
from wakeful.features.money.feature import Money
from wakeful.features.schedules import backfilling, cancelling, commands
from wakeful.features.schedules.checks import check
from wakeful.features.schedules.rules import Terms
from wakeful.ports.action import Action, EndOrphan
from wakeful.ports.clock import Clock
from wakeful.ports.store import Store, Tx
from worlds import alike

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
    if alike.is_replying(slug):
        return _ADDRESSEES[3]
    number = slug.removeprefix("s")
    return _ADDRESSEES[int(number) % len(_ADDRESSEES)] if number.isdecimal() else None


_RUN_ON: Final[Mapping[int, Any]] = {0: "a", 4: ["b", "a"], 8: "b"}


def run_on_for(slug: str) -> Any:
    """The labels that a schedule needs, by its number; edits keep it. Silent ones need none, so that they are plain."""
    number = slug.removeprefix("s")
    return _RUN_ON.get(int(number) % 12) if number.isdecimal() else None


def labels_for(index: int, nodes: int) -> frozenset[str]:
    """The labels of a machine: one that is alone has all, of several the first two have one each."""
    return frozenset("ab") if nodes == 1 else frozenset("ab"[index : index + 1])


def is_silent(slug: str) -> bool:
    """Whether a schedule has nothing to say to anyone."""
    if alike.is_one(slug):
        return not alike.is_telling(slug)
    return slug.startswith("s") and addressees_for(slug) is None


def is_event(slug: str) -> bool:
    """Whether a schedule raises an event, in a world with a heartbeat."""
    return slug.startswith("s") and int(slug[1:]) % 4 == 1


def is_prompt(slug: str) -> bool:
    """Whether a schedule asks the agent, in a world with a heartbeat."""
    return slug.startswith("s") and int(slug[1:]) % 4 == 3


def is_turn(definition: str) -> bool:
    """Whether a stored definition asks an agent: then its reply is delivered, and its output is not."""
    return not {"prompt", "event"}.isdisjoint(json.loads(definition))


AGENTS: Final = ("default", "second", "third")
"""Whom schedules ask, where money matters: agents work beside each other, each on one run at a time."""


def agent_for(slug: str) -> str:
    """The agent of a prompt in a world with money; edits keep it."""
    return AGENTS[int(slug[1:]) // 4 % len(AGENTS)]


def budget_for(slug: str) -> dict[str, float]:
    """The budget of a prompt in a world with money; edits keep it."""
    return {"perDay": 0.7}


def has_budget(slug: str) -> bool:
    """Whether a prompt has a budget of its own. The others have a check."""
    return int(slug[1:]) % 8 in (1, 3)


CHECKED_AT: Final = "http://127.0.0.1:9/anything-new"


def _with_money(slug: str, written: Mapping[str, Any]) -> dict[str, Any]:
    """A prompt for one of the agents, with a budget for some; any other schedule as it is."""
    if not is_prompt(slug) and (not is_event(slug) or "event" in written):
        return dict(written)
    others = {key: value for key, value in written.items() if key not in _ACTIONS}
    asked = {**others, "prompt": f"ask-{slug}", "agent": agent_for(slug)}
    if not has_budget(slug):
        return {**asked, "check": {"http": {"method": "GET", "url": CHECKED_AT}}}
    timing = written["schedule"]
    if timing["type"] == "every":  # prompts more often than that are refused
        timing = {**timing, "every": "1h"}
    return {**asked, "schedule": timing, "budget": budget_for(slug)}


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

    async def put_many(self, written: Mapping[str, Mapping[str, Any]]) -> None:
        """By slug, in one transaction."""
        ...

    async def pause(self, slug: str, until: Instant | None) -> None: ...

    async def resume(self, slug: str) -> None: ...

    async def remove(self, slug: str) -> None: ...

    async def run_now(self, slug: str) -> None: ...

    async def cancel(self, slug: str) -> tuple[int, int]: ...

    async def cancel_run(self, run_id: int) -> int: ...

    async def backfill(self, slug: str, *, instants_max: int = 50) -> int: ...

    async def replay(self, slug: str) -> None: ...

    def change_terms(self, change: Callable[[Terms], Terms]) -> None:
        """The settings for all schedules changed."""
        ...


T = TypeVar("T")


class Assemble(Protocol):
    """Puts a system together."""

    def __call__(
        self,
        store: Store,
        clock: Clock,
        actions: Mapping[type[Any], Action],
        end_orphan: EndOrphan,
        limits: Limits,
        name: str,
        features: Sequence[MakeFeature] = (),
    ) -> Awaitable[System]: ...


async def assemble(
    store: Store,
    clock: Clock,
    actions: Mapping[type[Any], Action],
    end_orphan: EndOrphan,
    limits: Limits,
    name: str,
    features: Sequence[MakeFeature] = (),
) -> System:
    """The system as it is shipped, over this store, on this clock, with these actions and features."""
    identity = Identity(name, "simulated", os.getpid())
    setup = Setup(limits=limits, terms=Terms(default_zone=ZONE), features=features)
    parts = await assemble_with(store, clock, setup, actions, end_orphan, identity)
    return Shipped(parts)


class Shipped:
    """The parts as they are shipped, and the commands upon them."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    @property
    def parts(self) -> Parts:
        """What inhabitants that write schedules need."""
        return self._parts

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

    def change_terms(self, change: Callable[[Terms], Terms]) -> None:
        self._parts.terms.value = change(self._parts.terms.value)
        self.engine.ring_bell()

    async def put(self, slug: str, written: Mapping[str, Any]) -> None:
        await self.put_many({slug: written})

    async def put_many(self, written: Mapping[str, Mapping[str, Any]]) -> None:
        parts, now = self._parts, self._parts.clock.read().now
        checked = [check(self._definition(slug, one), parts.conditions, now=now) for slug, one in written.items()]
        fates = await parts.store.write(partial(commands.put_many, checked=checked, hooks=parts.hooks, now=now))
        for fate in fates:
            if isinstance(fate, Invalid):
                raise fate
        parts.engine.ring_bell()

    def _definition(self, slug: str, written: Mapping[str, Any]) -> Definition:
        """As it is written for this schedule in a world with these features."""
        parts = self._parts
        if is_silent(slug):  # so that some schedules are plain (`core.schedule.plain`)
            written = {name: value for name, value in written.items() if name != "activeHours"}
        written = {**written, "runOn": run_on_for(slug)}
        if Deliver in parts.applied:
            written = {**written, "deliver": addressees_for(slug)}
        if Event in parts.hooks.actions:
            written = _for_the_agent(slug, written)
        if isinstance(parts.hooks.accounts, Money):
            written = _with_money(slug, written)
        return definition_from_json(written, default_zone=ZONE, slug=slug)

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

    async def cancel_run(self, run_id: int) -> int:
        """Cancel this run; returns its last attempt."""

        def cancel(tx: Tx, now: Instant) -> int:
            cancelling.cancel(tx, run_id, hooks=self._parts.hooks, now=now)
            return tx.runs.lock([run_id])[run_id].attempt

        return await self._do(cancel)

    async def backfill(self, slug: str, *, instants_max: int = 50) -> int:
        """Run what did not succeed in the last two days, unless it is far too much; returns how many instants."""

        def backfill(tx: Tx, now: Instant) -> int:
            terms = self._parts.terms.value
            wanted = backfilling.backfill_of(tx, slug, since=max(0, now - 2 * DAY), until=now, terms=terms, now=now)
            chosen = wanted.instants[:instants_max]
            backfilling.start(tx, wanted._replace(instants=chosen), "backfill", now=now)
            return len(chosen)

        return await self._do(backfill)

    async def replay(self, slug: str) -> None:
        """Run once more what ran last and has ended."""

        def replay(tx: Tx, now: Instant) -> None:
            schedule = tx.schedules.by_slugs([slug]).get(slug)
            rows = [] if schedule is None else tx.runs.page(schedule_id=schedule.schedule_id, limit=20)
            ended = next((row for row in rows if not row.is_open and row.instants == 1), None)
            if ended is None:
                raise Conflict(f"{slug} has no run that has ended")
            backfilling.replay(tx, ended.run_id, now=now)

        await self._do(replay)

    async def _do(self, command: Callable[[Tx, Instant], T]) -> T:
        now = self._parts.clock.read().now
        result = await self._parts.store.write(lambda tx: command(tx, now))
        self.engine.ring_bell()
        return result
