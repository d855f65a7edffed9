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

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol, TypeVar

from wakeful.core.errors import FieldError, Invalid
from wakeful.core.fields import check_plain, shown
from wakeful.core.slug import SLUG_PATTERN
from wakeful.core.time.instants import parse_duration
from wakeful.core.time.timing import Timing
from wakeful.core.workflow.answers import NewMessage, read_message
from wakeful.core.workflow.definition import PHASE_TIMEOUT, Consumer, Producer, Python, WorkflowDefinition, faulty_name
from wakeful.core.workflow.rows import Status
from wakeful.features.workflows.publishing import Put

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
    """The commands on workflows: `feature.Workflows`."""

    async def run(self, name: str) -> int: ...
    async def pause(self, name: str) -> None: ...
    async def resume(self, name: str, *, force: bool = False) -> None: ...
    async def publish(self, name: str, messages: Sequence[NewMessage]) -> list[Put]: ...
    async def resolve(self, name: str, run_id: int, choice: str) -> None: ...
    async def skip(self, name: str, topic: str, message_ids: Sequence[str], *, consumer: str | None = None) -> int: ...
    async def replay(
        self,
        name: str,
        topic: str,
        message_ids: Sequence[str] | None = None,
        *,
        consumer: str | None = None,
        apply: bool = False,
    ) -> int: ...
    async def get(self, name: str) -> dict[str, Any]: ...


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
        self, timing: Timing, *, publishes: Sequence[str] = (), name: str | None = None, timeout: str | None = None
    ) -> Callable[[F], F]:
        """Decorate a function that runs at these times and publishes."""

        def declare(function: F) -> F:
            known = _checked(name or function.__name__)
            limit = PHASE_TIMEOUT if timeout is None else parse_duration(timeout, "timeout")
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
        timeout: str | None = None,
    ) -> Callable[[Callable[..., Any]], ConsumerOf]:
        """Decorate the `prepare` of a consumer; add `mutate` and `next` to the returned object."""

        def declare(function: Callable[..., Any]) -> ConsumerOf:
            known = _checked(name or function.__name__)
            limit = PHASE_TIMEOUT if timeout is None else parse_duration(timeout, "timeout")

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
        check_plain({"id": id, "payload": payload})
        (put,) = await self._open.publish(self.name, [read_message({"id": id, "payload": payload}, topic)])
        return put.fate

    async def run(self) -> int:
        """Start a manual session: all producers, then the consumers; returns its id."""
        return await self._open.run(self.name)

    async def pause(self) -> None:
        """Start no handler until the workflow is resumed."""
        await self._open.pause(self.name)

    async def resume(self) -> None:
        """Resume the workflow after a pause or an error."""
        await self._open.resume(self.name)

    async def resolve(self, run_id: int, choice: str) -> None:
        """Resolve an uncertain side effect: retry, didNotHappen or skip."""
        await self._open.resolve(self.name, run_id, choice)

    async def skip(self, topic: str, *ids: str, consumer: str | None = None) -> int:
        """Skip pending messages, for one consumer of the topic or for all; returns how many."""
        return await self._open.skip(self.name, topic, ids, consumer=consumer)

    async def replay(self, topic: str, *ids: str, consumer: str | None = None, apply: bool = False) -> int:
        """Make skipped messages pending again: these, or all of the topic; returns how many. Only with `apply` anything
        changes."""
        return await self._open.replay(self.name, topic, ids or None, consumer=consumer, apply=apply)

    async def get(self) -> dict[str, Any]:
        """The workflow's current state."""
        return await self._open.get(self.name)

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


def _place(function: Callable[..., Any]) -> str:
    return f"{function.__module__}:{getattr(function, '__qualname__', type(function).__name__)}"
