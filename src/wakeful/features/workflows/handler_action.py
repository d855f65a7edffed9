"""The action that performs a handler's run: one phase after the other, each committed before the next.

Every call of a handler ends as one of four results: done, a logic error (`Failed`, permanent), a transient failure
(`Failed` or `Throttled`), or, in `mutate` only, uncertain (`Unconfirmed`). `settling` decides what follows.
"""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from wakeful.core.run.results import Done, Failed, Result, Throttled, Unconfirmed
from wakeful.core.run.runs import RungName
from wakeful.core.run.usage import Usage, added, usage_of
from wakeful.core.workflow.answers import (
    Mutated,
    Published,
    WrongAnswer,
    happened,
    read_mutated,
    read_prepared,
    read_published,
)
from wakeful.core.workflow.definition import Consumer, Handling, Producer
from wakeful.core.workflow.rows import HandlerRun, Phase
from wakeful.engine.limits import TRY_AGAIN
from wakeful.features.workflows import phases
from wakeful.features.workflows.consumers import look, pick
from wakeful.features.workflows.handler_calls import Answers, HandlerFailure, HandlerRequest
from wakeful.features.workflows.message_rows import Message
from wakeful.ports.action import CannotBegin, FencedOff, Fire, Ladder, StillRunning
from wakeful.ports.clock import Clock
from wakeful.ports.store import Store, StoreUnavailable, Tx

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class HandlerSpec:
    """A handler's run: the workflow, the handler, and the phase it starts in."""

    workflow_id: int
    workflow: str
    handler: Handling
    phase: Phase


class HandlerAction:
    """Performs `HandlerSpec`."""

    is_local = False

    def __init__(self, store: Store, clock: Clock, answers: Answers) -> None:
        self._store = store
        self._clock = clock
        self._answers = answers

    def proves(self, spec: HandlerSpec) -> RungName:
        return "finished"

    def check(self, spec: HandlerSpec) -> str | None:
        return self._answers.check(spec.handler.answerer)

    async def perform(self, spec: HandlerSpec, fire: Fire, ladder: Ladder) -> Result:
        attempt = _Attempt(self._store, self._clock, self._answers, spec, fire, ladder)
        result = await self._result(attempt, spec)
        if attempt.used is not None and isinstance(result, Done | Failed | Throttled | Unconfirmed):
            result = replace(result, usage=attempt.used)
        return result

    async def _result(self, attempt: "_Attempt", spec: HandlerSpec) -> Result:
        try:
            if isinstance(spec.handler, Producer):
                return await attempt.produce(spec.handler)
            return await attempt.consume(spec.handler)
        except HandlerFailure as trouble:
            return trouble.result()
        except WrongAnswer as wrong:
            return Failed(str(wrong), permanent=True)
        except (CannotBegin, FencedOff, StillRunning, StoreUnavailable):
            raise
        except Exception as error:  # a bug in Wakeful; endless retries would hide it
            return Failed(f"{type(error).__name__}: {error}", permanent=True)

    async def close(self) -> None:
        await self._answers.close()


class _Attempt:
    """One attempt at one run."""

    def __init__(
        self, store: Store, clock: Clock, answers: Answers, spec: HandlerSpec, fire: Fire, ladder: Ladder
    ) -> None:
        self._store = store
        self._clock = clock
        self._answers = answers
        self._spec = spec
        self._fire = fire
        self._ladder = ladder
        self.used: Usage | None = None  # what its handler reported so far

    async def produce(self, producer: Producer) -> Result:
        spec = self._spec
        state = await self._store.read(lambda tx: phases.state_of(tx, spec.workflow_id, producer.name))
        data = await self._ask("produce", state)
        return Done(carries=read_published(data, publishes=producer.publishes, is_required=True))

    async def consume(self, consumer: Consumer) -> Result:
        if self._spec.phase == "preparing":
            run, state = await self._prepare(consumer)
        else:
            run, state = await self._store.read(
                lambda tx: phases.resume(tx, self._spec.workflow_id, consumer.name, self._fire.run_id)
            )
        if run.phase == "prepared" and run.reserved and consumer.mutates:
            mutated = await self._mutate(run, state)
            if not isinstance(mutated, HandlerRun):
                return mutated
            run = mutated
        mutation: dict[str, Any] = {"outcome": run.mutation or "none"}
        if run.result is not None:
            mutation["result"] = json.loads(run.result)
        data = await self._ask("next", state, prepared=_loaded(run.prepared), mutation=mutation)
        published: Published = read_published(data or {}, publishes=consumer.publishes, is_required=False)
        return Done(carries=published)

    async def _prepare(self, consumer: Consumer) -> tuple[HandlerRun, str | None]:
        workflow_id, name, subscribe = self._spec.workflow_id, consumer.name, consumer.subscribe
        seen = await self._store.read(lambda tx: look(tx, workflow_id, name, subscribe))
        prepared = read_prepared(await self._ask_prepare(seen.state, seen.messages), subscribe=subscribe)
        was_shown = any(seen.messages.values())
        if prepared.show:
            wanted = prepared.show
            picked = await self._store.read(lambda tx: pick(tx, workflow_id, name, subscribe, wanted))
            data = await self._ask_prepare(seen.state, picked)
            prepared = read_prepared(data, subscribe=subscribe, may_show=False)
            was_shown = True
        reserve = partial(
            phases.reserve,
            workflow_id=workflow_id,
            handler=name,
            fire=self._fire,
            prepared=prepared,
            seen=seen,
            was_shown=was_shown,
            now=self._clock.read().now,
        )
        return await self._write(reserve), seen.state

    async def _ask_prepare(self, state: str | None, messages: Mapping[str, Sequence[Message]]) -> Any:
        listed = {
            topic: [{"id": m.message_id, "payload": json.loads(m.payload), "attempt": m.attempt} for m in shown]
            for topic, shown in messages.items()
        }
        return await self._ask("prepare", state, messages=listed)

    async def _mutate(self, run: HandlerRun, state: str | None) -> HandlerRun | Result:
        """The one side effect. Between the two records only an explicit result of the handler proves anything."""
        workflow_id, fire, now = self._spec.workflow_id, self._fire, self._clock.read().now
        await self._write(partial(phases.begin_mutation, workflow_id=workflow_id, fire=fire, now=now))
        try:
            mutated = await self._mutated(state, run)
        except HandlerFailure as trouble:
            return trouble.result() if trouble.did_nothing else Unconfirmed(str(trouble))
        except (asyncio.CancelledError, StillRunning, FencedOff):
            raise
        except Exception as error:  # possibly our own bug; the effect is uncertain either way
            return Unconfirmed(f"{type(error).__name__}: {error}")
        now = self._clock.read().now
        end = partial(phases.end_mutation, workflow_id=workflow_id, fire=fire, result=mutated.result, now=now)
        ended = await self._write(end)
        return ended if mutated.wrong is None else Failed(mutated.wrong, permanent=True)

    async def _mutated(self, state: str | None, run: HandlerRun) -> Mutated:
        """The reply to `mutate`. Once the handler has answered, nothing about its reply makes it uncertain."""
        try:
            data = await self._ask("mutate", state, prepared=_loaded(run.prepared))
        except HandlerFailure as trouble:
            if not trouble.has_happened:
                raise
            return happened(str(trouble))
        try:
            return read_mutated(data)
        except Exception as error:  # an object of the handler's own, whose methods raise
            return happened(f"it returned a value that cannot be read: {type(error).__name__}: {error}")

    async def _ask(self, phase: str, state: str | None, **more: Any) -> Any:
        spec, fire = self._spec, self._fire
        question = HandlerRequest(
            spec.workflow, spec.handler.name, str(fire.run_id), phase, _state(state), False, more
        )  # fmt: skip
        answer = await self._answers.ask(spec.handler, question, fire, self._ladder)
        if isinstance(answer, dict):
            self.used = added(self.used, usage_of(answer.get("usage")))
            if phase != "mutate":  # its object may be the result as it is
                answer = {name: value for name, value in answer.items() if name != "usage"}
        return answer

    async def _write(self, operation: Callable[[Tx], T]) -> T:
        """Write, however long the store takes: a handler's result must not be lost to a full disk."""
        while True:
            try:
                return await self._store.write(operation)
            except StoreUnavailable:
                await self._clock.sleep(TRY_AGAIN)


def _state(text: str | None) -> Any:
    try:
        return _loaded(text)
    except ValueError as error:
        raise HandlerFailure(f"the state kept for it cannot be read ({error})", did_nothing=True) from None


def _loaded(text: str | None) -> Any:
    return None if text is None else json.loads(text)
