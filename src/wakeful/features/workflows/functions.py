"""Calls the functions of Python workflows, on the event loop or in a thread, and interprets their results."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any

from wakeful.core.time.instants import format_instant
from wakeful.core.time.timing_builders import as_instant
from wakeful.core.workflow.definition import Handling, Python
from wakeful.features.workflows.feeding import CURRENT_RUN
from wakeful.features.workflows.handler_calls import HandlerFailure, HandlerRequest
from wakeful.features.workflows.python import (
    Context,
    LogicError,
    Prepare,
    Produced,
    Publish,
    Received,
    Transient,
    Workflow,
)
from wakeful.integrations.system.text import one_line
from wakeful.integrations.system.threads import Threads
from wakeful.ports.action import Fire, StillRunning


class Functions:
    """The Python workflows loaded in this process."""

    def __init__(self) -> None:
        self._workflows: dict[str, Workflow] = {}
        self._threads = Threads()

    def add(self, workflow: Workflow) -> None:
        self._workflows[workflow.name] = workflow

    @property
    def all(self) -> list[Workflow]:
        return list(self._workflows.values())

    @property
    def names(self) -> list[str]:
        """The workflows whose handlers are declared here."""
        return [workflow.name for workflow in self._workflows.values() if workflow.is_declared]

    def has(self, name: str, handler: Handling) -> bool:
        """Whether this process can run the handler. Another process may have loaded a newer module."""
        if not isinstance(handler.answerer, Python):
            return True
        workflow = self._workflows.get(name)
        return workflow is not None and workflow.can_run(handler)

    async def ask(self, question: HandlerRequest, fire: Fire) -> Any:
        """Call the function of a phase; returns what an HTTP handler would. Raises `HandlerFailure`."""
        workflow = self._workflows.get(question.workflow)
        if workflow is None:
            cure = "add its module to [workflows] modules, or declare it before startup"
            raise HandlerFailure(f"no Python workflow '{question.workflow}' is loaded here; {cure}", did_nothing=True)
        try:
            function = workflow.function(question.handler, question.phase)
        except KeyError:
            cure = "load the same module on all nodes"
            error = f"the Python workflow '{workflow.name}' has no '{question.handler}' here; {cure}"
            raise HandlerFailure(error, did_nothing=True) from None
        if function is None:
            return None
        CURRENT_RUN.set(None if question.is_dry else int(question.run_id))  # in the task of this call only
        try:
            value = await self._call(function, _context(question, fire))
        except StillRunning:
            raise
        except Exception as error:
            raise _trouble(error) from error
        try:
            return _as_json(value)
        except Exception as error:
            raise HandlerFailure(f"it returned a value that cannot be read: {error}", has_happened=True) from error

    def close(self) -> None:
        self._threads.close()

    async def _call(self, function: Callable[..., Any], context: Context) -> Any:
        if inspect.iscoroutinefunction(function):
            return await function(context)
        running = self._threads.run(lambda: function(context))
        try:
            value = await asyncio.shield(running)
        except asyncio.CancelledError:
            if running.done():
                raise
            name = f"'{context.workflow}' {context.handler} {context.phase}"
            raise StillRunning(f"{name} runs in a thread, which cannot be stopped", _ended(running)) from None
        return await value if isinstance(value, Awaitable) else value


def _context(question: HandlerRequest, fire: Fire) -> Context:
    more = question.more
    messages = {
        topic: [Received(message["id"], message["payload"], message["attempt"]) for message in listed]
        for topic, listed in more.get("messages", {}).items()
    }
    return Context(
        question.workflow,
        question.handler,
        question.run_id,
        question.phase,
        question.state,
        question.is_dry,
        fire.idempotency_key,
        messages,
        more.get("prepared") or {},
        more.get("mutation") or {},
    )


def _as_json(value: Any) -> Any:
    """A function's return value, in the form an HTTP handler would return it."""
    match value:
        case Produced(messages=messages, state=state):
            listed = [
                {"topic": message.topic, "id": message.id, "payload": message.payload}
                if isinstance(message, Publish)
                else message
                for message in messages
            ]
            return {"messages": listed, **({} if state is None else {"state": state})}
        case Prepare(reservations=reservations, data=data, ui=ui, wake_at=wake_at, skip=skip, show=show):
            out: dict[str, Any] = {
                "reservations": [{"topic": topic, "ids": list(ids)} for topic, ids in reservations.items()],
                "skip": [{"topic": topic, "ids": list(ids)} for topic, ids in skip.items()],
                "show": {topic: list(ids) for topic, ids in show.items()},
            }
            written = format_instant(as_instant(wake_at, "wake_at")) if isinstance(wake_at, datetime) else wake_at
            named = {"data": data, "ui": ui, "wakeAt": written}
            return out | {name: value for name, value in named.items() if value is not None}
        case _:
            return value


def _trouble(error: Exception) -> HandlerFailure:
    """The failure for an exception. Only the function knows whether it had an effect: the exception type says so."""
    said = one_line(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)
    match error:
        case HandlerFailure():
            return error
        case Transient():
            return HandlerFailure(one_line(str(error)) or said, is_transient=True, did_nothing=True)
        case LogicError():
            return HandlerFailure(one_line(str(error)) or said, did_nothing=True)
        case ConnectionRefusedError():
            return HandlerFailure(said, is_transient=True, did_nothing=True)
        case TimeoutError() | ConnectionError():
            return HandlerFailure(said, is_transient=True)
        case _:
            return HandlerFailure(said)


def _ended(leftover: "asyncio.Future[Any]") -> "asyncio.Future[None]":
    """A future that resolves when the leftover task ends."""
    ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def resolve(leftover: "asyncio.Future[Any]") -> None:
        if not leftover.cancelled():
            leftover.exception()  # retrieved, so that asyncio does not log it
        if not ended.done():
            ended.set_result(None)

    leftover.add_done_callback(resolve)
    return ended
