"""Workflows on virtual time: handlers that record what they were asked, and questions to ask the world."""

import inspect
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from features.kit import Bench, World, short
from wakeful import Context, Prepare, Produced, Publish, Wakeful, Workflow, every
from wakeful.core.time.instants import parse_instant
from wakeful.features.workflows.views import WORKFLOW


class Calls:
    """Records every call of a handler's phases, and answers as told.

    `script` holds what the next calls do, `usual` what all others do: an exception is raised, a value is returned, a
    duration takes that long and does what is usual, anything callable is called with the context.
    """

    def __init__(self, world: World, usual: Any = None) -> None:
        self._world = world
        self.usual = usual
        self.script: list[Any] = []
        self.contexts: list[Context] = []
        self.at: list[str] = []

    @property
    def count(self) -> int:
        return len(self.contexts)

    async def __call__(self, ctx: Context) -> Any:
        if not ctx.dry_run:
            self.contexts.append(ctx)
            self.at.append(short(self._world.now))
        act = self.script.pop(0) if self.script and not ctx.dry_run else self.usual
        if isinstance(act, int):
            await self._world.clock.sleep(act)
            act = self.usual
        if isinstance(act, BaseException):
            raise act
        said = act(ctx) if callable(act) else act
        return await said if inspect.isawaitable(said) else said


def take_all(ctx: Context) -> Prepare:
    """Reserve whatever is shown; hand the payloads on."""
    shown = {topic: [one.id for one in messages] for topic, messages in ctx.messages.items()}
    data = [one.payload for messages in ctx.messages.values() for one in messages]
    return Prepare({topic: ids for topic, ids in shown.items() if ids}, data=data)


def take_one(ctx: Context) -> Prepare:
    """Reserve the oldest of what is shown."""
    for topic, messages in ctx.messages.items():
        if messages:
            return Prepare({topic: [messages[0].id]}, data=messages[0].payload)
    return Prepare()


def decline(_: Context) -> Prepare:
    """Reserve nothing."""
    return Prepare()


class Inbox:
    """One producer, one topic, one consumer: `poll` → mail → `digest`."""

    def __init__(
        self,
        world: World,
        *,
        found: Callable[[Context], Any] | Any = None,
        prepare: Any = take_all,
        mutate: Any = None,
        following: Any = None,
        period: str = "5m",
        name: str = "inbox",
        has_mutate: bool = True,
        timeout: str | None = None,
    ) -> None:
        self.world = world
        self.poll = Calls(world, Produced() if found is None else found)
        self.prepare = Calls(world, prepare)
        self.mutate = Calls(world, mutate)
        self.next = Calls(world, following)
        self.period = period
        self.name = name
        self.has_mutate = has_mutate
        self.timeout = timeout

    def declare(self, bench: Bench) -> Workflow:
        flow = bench.workflow(self.name)
        limit = self.timeout
        flow.producer(every(self.period), publishes=["mail"], name="poll", timeout=limit)(named(self.poll))
        consumer = flow.consumer(subscribe=["mail"], name="digest", timeout=limit)(named(self.prepare))
        if self.has_mutate:
            consumer.mutate(named(self.mutate))
        consumer.next(named(self.next))
        return flow

    async def open(self, **settings: Any) -> Bench:
        bench = self.world.bench(**settings)
        self.flow = self.declare(bench)
        await bench.start()
        await self.world.settle()
        return bench


def named(calls: Calls) -> Any:
    """A function, as a workflow takes it."""

    async def function(ctx: Context) -> Any:
        return await calls(ctx)

    return function


def mail(*ids: str) -> Callable[[Context], Produced]:
    """A producer that finds these, each time it looks."""
    return lambda _: Produced([Publish("mail", one, {"subject": one}) for one in ids])


async def ledger(bench: Bench, name: str = "inbox") -> list[str]:
    """The ledger of a workflow, oldest first: kind, outcome, reason, how many."""
    lines = []
    for run in reversed(await bench.runs(f"workflow:{name}", limit=1000)):
        words = [run.outcome]
        if run.reason is not None:
            words.append(f"({run.reason})")
        if run.count > 1:
            words.append(f"x{run.count}")
        lines.append(" ".join(words))
    return lines


async def sessions(bench: Bench, name: str = "inbox") -> list[str]:
    """Sessions, oldest first: kind, result, and the handlers that ran."""
    found = (await bench.workflows.sessions(name, limit=1000)).sessions
    return [f"{one.kind} {one.result}: {' '.join(run.handler for run in one.runs)}" for one in reversed(found)]


async def state_of(app: Wakeful, name: str) -> dict[str, Any]:
    """A workflow as REST shows it."""
    return WORKFLOW.write(await app.workflows.get(name))


async def counts(bench: Bench, topic: str = "mail", name: str = "inbox") -> dict[str, int]:
    """How many messages of each status a topic holds, those of none left out."""
    return {status: n for status, n in (await state_of(bench, name))["topics"][topic].items() if n}


def at(text: str | None) -> int:
    """An instant of a view."""
    assert text is not None
    return parse_instant(text)


def rows(world: World, sql: str) -> Sequence[Mapping[str, Any]]:
    """Ask the database itself; rows by column name."""
    connection = sqlite3.connect(world.path)
    connection.row_factory = sqlite3.Row
    try:
        return [dict(row) for row in connection.execute(sql)]
    finally:
        connection.close()
