"""Workflows written in Python: functions for producers and consumers, with typed results.

    inbox = Workflow("inbox")

    @inbox.producer(every("5m"), publishes=["mail"])
    async def poll(ctx):
        return Produced([Publish("mail", "17", {"subject": "hello"})], state={"last": 17})

    @inbox.consumer(subscribe=["mail"])
    async def digest(ctx):                                 # prepare
        return Prepare({"mail": [m.id for m in ctx.messages["mail"]]}, data={"n": 1})

    @digest.mutate
    async def send(ctx): ...                               # at most one side effect

    @digest.next
    async def after(ctx):
        return Produced(state={"sent": ctx.prepared["data"]["n"]})

Their return values become the same JSON that an HTTP handler returns, and pass the same checks.
"""

import inspect
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Protocol, TypeVar

from wakeful.core.errors import FieldError, Invalid, refuse
from wakeful.core.fields import shown
from wakeful.core.slug import SLUG_PATTERN
from wakeful.core.time.timing import AfterReset, Cron, Every, Manual, Once, Times, Timing
from wakeful.core.time.timing_builders import as_duration
from wakeful.core.workflow.definition import (
    PHASE_TIMEOUT,
    Consumer,
    Handling,
    Producer,
    Python,
    WorkflowDefinition,
    faulty_name,
)
from wakeful.core.workflow.rows import Status
from wakeful.features.workflows.commands import Choice
from wakeful.features.workflows.publishing import Put
from wakeful.features.workflows.views import WORKFLOW, ReplayedMessages, SessionStarted, Skipped, WorkflowView

F = TypeVar("F", bound=Callable[..., Any])


class Transient(Exception):
    """Raise it in a handler that did nothing and should be retried later."""


class LogicError(Exception):
    """Raise it in a handler that did nothing and cannot continue until a person has fixed the cause."""


@dataclass(frozen=True, slots=True)
class Publish:
    """A message to be published."""

    topic: str
    id: str
    payload: Any = None


@dataclass(frozen=True, slots=True)
class Produced:
    """The return value of a producer or of `next`; an omitted state is unchanged."""

    messages: Sequence[Publish] = ()
    state: Any = None


@dataclass(frozen=True, slots=True)
class Prepare:
    """The return value of `prepare`: the ids to reserve by topic, data for the later phases, and when to wake; the ids
    to skip for good, by topic; and ids to be called again with, once."""

    reservations: Mapping[str, Sequence[str]] = field(default_factory=dict)
    data: Any = None
    ui: Any = None
    wake_at: datetime | str | None = None
    skip: Mapping[str, Sequence[str]] = field(default_factory=dict)
    show: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Received:
    """A pending message."""

    id: str
    payload: Any
    attempt: int


@dataclass(frozen=True, slots=True)
class Context:
    """The argument of a handler; each phase gets its own part."""

    workflow: str
    handler: str
    run_id: str
    phase: str
    state: Any
    dry_run: bool
    idempotency_key: str
    messages: Mapping[str, Sequence[Received]] = field(default_factory=dict)
    prepared: Mapping[str, Any] = field(default_factory=dict)
    mutation: Mapping[str, Any] = field(default_factory=dict)


class ConsumerOf:
    """A consumer being declared; its function is `prepare`, and the other phases are added to it."""

    def __init__(self, prepare: Callable[..., Any]) -> None:
        self._phases: dict[str, Callable[..., Any]] = {"prepare": prepare}
        self.__name__ = prepare.__name__

    def mutate(self, function: F) -> F:
        """Decorate the function with the side effect."""
        self._phases["mutate"] = function
        return function

    def next(self, function: F) -> F:
        """Decorate the function for `next`: it publishes and returns the new state."""
        self._phases["next"] = function
        return function

    @property
    def phases(self) -> Mapping[str, Callable[..., Any]]:
        return self._phases


class WorkflowCommands(Protocol):
    """What can be asked of workflows: the noun of the app."""

    def run(self, name: str) -> Coroutine[Any, Any, SessionStarted]: ...
    def pause(self, name: str) -> Coroutine[Any, Any, WorkflowView]: ...
    def resume(self, name: str) -> Coroutine[Any, Any, WorkflowView]: ...
    def publish(self, name: str, topic: str, id: str, payload: Any) -> Coroutine[Any, Any, Put]: ...
    def resolve(self, name: str, run_id: int, choice: Choice) -> Coroutine[Any, Any, WorkflowView]: ...
    def skip(
        self, name: str, topic: str, ids: Sequence[str], *, consumer: str | None
    ) -> Coroutine[Any, Any, Skipped]: ...
    def replay_skipped(
        self, name: str, topic: str, ids: Sequence[str] | None, *, consumer: str | None, dry_run: bool
    ) -> Coroutine[Any, Any, ReplayedMessages]: ...
    def get(self, name: str) -> Coroutine[Any, Any, WorkflowView]: ...


class Workflow:
    """A workflow declared in Python. It is deployed when its app starts.

    Without handlers it refers to a workflow deployed elsewhere; its commands work all the same."""

    def __init__(self, name: str, *, status: Status | None = None) -> None:
        if not SLUG_PATTERN.fullmatch(name):
            raise Invalid(FieldError("id", f"{shown(name)} is not a name; use a-z, 0-9, '.', '_' and '-'"))
        self.name = name
        self.status = status
        self._desk: WorkflowCommands | None = None
        self._producers: dict[str, tuple[Producer, Callable[..., Any]]] = {}
        self._consumers: dict[str, tuple[Callable[[ConsumerOf], Consumer], ConsumerOf]] = {}

    def producer(
        self,
        timing: Timing,
        *,
        publishes: Sequence[str] = (),
        name: str | None = None,
        timeout: str | timedelta | None = None,
    ) -> Callable[[F], F]:
        """Decorate a function that runs at these times and publishes."""
        _check_timing(timing)

        def declare(function: F) -> F:
            known = _checked(name or function.__name__)
            limit = PHASE_TIMEOUT if timeout is None else as_duration(timeout, "timeout")
            declared = Producer(known, timing, tuple(publishes), Python(_place(function)), limit)
            self._producers[known] = (declared, function)
            return function

        return declare

    def consumer(
        self,
        *,
        subscribe: Sequence[str],
        publishes: Sequence[str] = (),
        name: str | None = None,
        timeout: str | timedelta | None = None,
    ) -> Callable[[Callable[..., Any]], ConsumerOf]:
        """Decorate the `prepare` of a consumer; add `mutate` and `next` to the returned object."""

        def declare(function: Callable[..., Any]) -> ConsumerOf:
            known = _checked(name or function.__name__)
            limit = PHASE_TIMEOUT if timeout is None else as_duration(timeout, "timeout")

            def made(consumer: ConsumerOf) -> Consumer:
                mutates = "mutate" in consumer.phases
                return Consumer(
                    known, tuple(subscribe), tuple(publishes), Python(_place(function)), mutates, limit
                )  # fmt: skip

            consumer = ConsumerOf(function)
            self._consumers[known] = (made, consumer)
            return consumer

        return declare

    # --- commands, once the app has started --------------------------------------------------------------------------

    def attach(self, commands: WorkflowCommands) -> None:
        """Connect it to a started app."""
        self._desk = commands

    async def publish(self, topic: str, id: str, payload: Any = None) -> str:
        """Publish a message; returns published, updated or duplicate."""
        return (await self._open.publish(self.name, topic, id, payload)).fate

    async def run(self) -> int:
        """Start a manual session: all producers, then the consumers; returns its id."""
        return (await self._open.run(self.name)).session_id

    async def pause(self) -> None:
        """Start no handler until the workflow is resumed."""
        await self._open.pause(self.name)

    async def resume(self) -> None:
        """Resume the workflow after a pause or an error."""
        await self._open.resume(self.name)

    async def resolve(self, run_id: int, choice: Choice) -> None:
        """Resolve an uncertain side effect: retry, didNotHappen or skip."""
        await self._open.resolve(self.name, run_id, choice)

    async def skip(self, topic: str, *ids: str, consumer: str | None = None) -> int:
        """Skip pending messages, for one consumer of the topic or for all; returns how many."""
        return (await self._open.skip(self.name, topic, ids, consumer=consumer)).skipped

    async def replay(self, topic: str, *ids: str, consumer: str | None = None, apply: bool = False) -> int:
        """Make skipped messages pending again: these, or all of the topic; returns how many. Only with `apply` anything
        changes."""
        replayed = await self._open.replay_skipped(self.name, topic, ids or None, consumer=consumer, dry_run=not apply)
        return replayed.messages

    async def get(self) -> dict[str, Any]:
        """The workflow's current state, as JSON."""
        return WORKFLOW.write(await self._open.get(self.name))

    @property
    def _open(self) -> WorkflowCommands:
        if self._desk is None:
            raise RuntimeError("this workflow does not belong to a started app; create it with app.workflow(name)")
        return self._desk

    # --- definition --------------------------------------------------------------------------------------------------

    @property
    def is_declared(self) -> bool:
        """Whether it has handlers and is therefore deployed."""
        return bool(self._producers or self._consumers)

    @property
    def definition(self) -> WorkflowDefinition:
        """The definition that is stored."""
        producers = tuple(producer for producer, _ in self._producers.values())
        return WorkflowDefinition(
            self.name, producers, tuple(made(consumer) for made, consumer in self._consumers.values())
        )

    def can_run(self, handler: Handling) -> bool:
        """Whether it has the functions of a handler."""
        if isinstance(handler, Producer):
            return handler.name in self._producers
        consumer = self._consumers.get(handler.name)
        return consumer is not None and (not handler.mutates or "mutate" in consumer[1].phases)

    def function(self, handler: str, phase: str) -> Callable[..., Any] | None:
        """The function of a phase; None if the phase does nothing."""
        if phase == "produce":
            return self._producers[handler][1]
        return self._consumers[handler][1].phases.get(phase)


def _checked(name: str) -> str:
    wrong = faulty_name(name, "handler")
    if wrong is not None:
        raise Invalid(FieldError("name", wrong))
    return name


def _check_timing(timing: object) -> None:
    if not isinstance(timing, Once | Every | Cron | Times | AfterReset | Manual):
        what = f"the function {timing.__qualname__}" if inspect.isfunction(timing) else shown(timing)
        refuse("schedule", f"{what} is not a timing; write every('5m') or cron('0 9 * * 1-5')")


def _place(function: Callable[..., Any]) -> str:
    return f"{function.__module__}:{getattr(function, '__qualname__', type(function).__name__)}"
