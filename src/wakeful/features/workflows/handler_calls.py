"""Calls a handler over HTTP, as a program, or as a Python function: one request, one response, with a timeout.

A `HandlerFailure` says two things: whether a retry may help, and whether it is certain that nothing happened. The
first decides everywhere except in `mutate`, where the second does.
"""

import asyncio
import json
import os
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final, NamedTuple, TypeVar

from wakeful.core.fields import shown
from wakeful.core.run.results import Failed, Result, Throttled
from wakeful.core.run.traces import trace_header
from wakeful.core.schedule.actions import Command, Http
from wakeful.core.time.instants import Duration, Instant
from wakeful.core.workflow.definition import Answerer, Handling, Python
from wakeful.integrations.actions import gate
from wakeful.integrations.actions.child import CannotStart, Children, Spawn
from wakeful.integrations.actions.environment import environment
from wakeful.integrations.actions.program import Unstartable, check_command
from wakeful.integrations.net.exchange import Exchanges, NoAnswer, NoConnection, Request, is_web_address
from wakeful.integrations.system.text import HeadTail, last_line, one_line
from wakeful.ports.action import Fire, Ladder
from wakeful.ports.clock import Clock
from wakeful.ports.exchange import ExchangeListener, RequestContext

T = TypeVar("T")

ANSWER_MAX: Final = 4 * 1024 * 1024
COMPLAINT_MAX: Final = 16 * 1024
ACTION: Final = "workflow-handler"
TRY_LATER: Final = 75
"""The exit code of a program that did nothing and asks for a retry (EX_TEMPFAIL)."""


class HandlerFailure(Exception):
    """A handler call without a valid response."""

    def __init__(
        self, error: str, *, is_transient: bool = False, did_nothing: bool = False, until: Instant | None = None
    ) -> None:
        super().__init__(error)
        self.is_transient = is_transient
        self.did_nothing = did_nothing
        self.until = until

    def result(self) -> Result:
        """The result of an attempt outside `mutate`."""
        if not self.is_transient:
            return Failed(str(self), permanent=True)
        return Failed(str(self)) if self.until is None else Throttled(str(self), self.until)


class HandlerRequest(NamedTuple):
    """A request to a handler."""

    workflow: str
    handler: str
    run_id: str
    phase: str
    state: Any
    is_dry: bool
    more: Mapping[str, Any]  # the fields of this phase

    def to_json(self) -> dict[str, Any]:
        return {
            "workflow": self.workflow,
            "handler": self.handler,
            "runId": self.run_id,
            "phase": self.phase,
            "state": self.state,
            "dryRun": self.is_dry,
            **self.more,
        }


PythonAnswers = Callable[[HandlerRequest, Fire], Coroutine[Any, Any, Any]]
"""Calls the Python function of a handler; raises `HandlerFailure`."""

PYTHON_ONLY: Final = "only Python handlers run on a virtual clock; declare it in Python for the test"


class Answers:
    """Calls handlers of every kind."""

    def __init__(
        self,
        clock: Clock,
        python: PythonAnswers,
        listener: ExchangeListener | None = None,
        *,
        is_python_only: bool = False,
    ) -> None:
        self._clock = clock
        self._is_python_only = is_python_only
        self._python = python
        self._exchanges = Exchanges(clock, listener)
        self._children = Children()

    def check(self, answerer: Answerer) -> str | None:
        """Why it cannot be called from this machine, and the cure; None if it can."""
        if self._is_python_only and not isinstance(answerer, Python):
            return PYTHON_ONLY
        match answerer:
            case Http(url=url):
                return None if is_web_address(url) else f"{shown(url)} is not a web address; write it like https://…"
            case Command():
                try:
                    check_command(answerer, {**os.environ, **answerer.env})
                except Unstartable as error:
                    return str(error)
                return None
            case Python():
                return None

    async def ask(self, handler: Handling, question: HandlerRequest, fire: Fire, ladder: Ladder) -> Any:
        """The response as a JSON value. Raises `HandlerFailure`."""
        if self._is_python_only and not isinstance(handler.answerer, Python):
            raise HandlerFailure(PYTHON_ONLY, did_nothing=True)
        match handler.answerer:
            case Http() as http:
                return await self._over_http(http, handler.timeout, question, fire)
            case Command() as command:
                return await self._within(handler.timeout, self._by_program(command, question, fire, ladder))
            case Python():
                return await self._within(handler.timeout, self._python(question, fire))

    async def close(self) -> None:
        await self._exchanges.close()
        await self._children.close()

    async def _over_http(self, http: Http, limit: Duration, question: HandlerRequest, fire: Fire) -> Any:
        headers = {**http.headers, "Content-Type": "application/json"}
        headers |= {"Idempotency-Key": fire.idempotency_key, "X-Wakeful-Run": question.run_id}
        headers |= trace_header(fire.traceparent)
        body = json.dumps(question.to_json(), ensure_ascii=False).encode()
        request = Request("POST", http.url, headers, body, ANSWER_MAX)
        try:
            response = await self._exchanges.send(request, RequestContext(ACTION, fire.slug), limit=limit)
        except NoConnection as error:
            raise HandlerFailure(str(error), is_transient=True, did_nothing=True) from None
        except NoAnswer as error:
            raise HandlerFailure(str(error), is_transient=True) from None
        if not response.is_ok:
            said = response.said()
            raise HandlerFailure(
                f"{response.line}: {said}" if said else response.line,
                is_transient=response.status in (429, 502, 503, 504),
                did_nothing=response.status < 500,
                until=response.retry_at(self._clock.read().now),
            )
        if not response.is_whole:
            raise HandlerFailure(f"its response is longer than {ANSWER_MAX} bytes; return less, and publish references")
        return _parsed(response.text, question.phase)

    async def _by_program(self, command: Command, question: HandlerRequest, fire: Fire, ladder: Ladder) -> Any:
        env = environment(fire, command.env, command.pass_env)
        try:
            cwd = check_command(command, env)
        except Unstartable as error:
            raise HandlerFailure(str(error), did_nothing=True) from None
        printed, complained = _Printed(), HeadTail(COMPLAINT_MAX)
        stdin = gate.OPEN + json.dumps(question.to_json(), ensure_ascii=False).encode()
        argv = gate.gated(command.argv, env, has_stdin=True)
        spawn = Spawn(argv, env, stdin, cwd, merges_stderr=False, stderr_sink=complained.feed)
        try:
            ending = await self._children.run(spawn, ladder, printed.feed)
        except CannotStart as error:
            raise HandlerFailure(str(error), is_transient=not error.permanent, did_nothing=True) from None
        if ending.code != 0:
            is_later = ending.code == TRY_LATER
            said = last_line(complained.text()) or one_line(printed.text)
            raise HandlerFailure(
                f"exited with {ending.code}: {said}" if said else f"exited with {ending.code}",
                is_transient=is_later,
                did_nothing=is_later,
            )
        if printed.is_too_much:
            raise HandlerFailure(f"it printed more than {ANSWER_MAX} bytes; print less, and publish references")
        return _parsed(printed.text, question.phase)

    async def _within(self, limit: Duration, work: Coroutine[Any, Any, T]) -> T:
        """The work's result, or a `HandlerFailure` after it timed out and was stopped.

        Work that cannot be stopped raises `StillRunning` itself, and that takes precedence."""
        bell = asyncio.Event()
        task = asyncio.ensure_future(work)
        task.add_done_callback(lambda _: bell.set())
        try:
            if await self._clock.wait(bell, limit):
                return task.result()
            task.cancel()
            await asyncio.wait([task])
            if not task.cancelled() and task.exception() is not None:
                task.result()
            raise HandlerFailure(f"no answer within {limit / 1000:g} s", is_transient=True)
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.wait([task])
            if not task.cancelled() and task.exception() is not None:
                task.result()
            raise


class _Printed:
    """A program's output, up to the limit."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> None:
        room = ANSWER_MAX - self._size
        if room > 0:
            self._pieces.append(data[:room])
        self._size += len(data)

    @property
    def is_too_much(self) -> bool:
        return self._size > ANSWER_MAX

    @property
    def text(self) -> str:
        return b"".join(self._pieces).decode("utf-8", "replace")


def _parsed(text: str, phase: str) -> Any:
    if not text.strip() and phase in ("mutate", "next"):
        return None  # an empty response is valid there
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        said = shown(one_line(text[:1000]))
        raise HandlerFailure(f"returned {said}, which is not JSON; return a JSON object") from None
