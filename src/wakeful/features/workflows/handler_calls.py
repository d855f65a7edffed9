"""Calls a handler over HTTP, as a program, or as a Python function: one request, one response, with a timeout.

A `HandlerFailure` says whether a retry may help, and whether it is certain that nothing happened, or that it happened:
a 2xx status, an exit code of 0 and a function that returned prove that. The first decides everywhere except in
`mutate`, where the others do.
"""

import asyncio
import json
import os
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final, NamedTuple, TypeVar

from wakeful.core.fields import shown
from wakeful.core.http_headers import sendable, wrong_headers
from wakeful.core.run.results import Failed, Result, Throttled
from wakeful.core.run.traces import trace_header
from wakeful.core.schedule.actions import Command, Http
from wakeful.core.time.instants import Duration, Instant
from wakeful.core.workflow.definition import Answerer, Handling, Python
from wakeful.core.workflow.rules import FAULTS_MAX
from wakeful.integrations.actions import gate
from wakeful.integrations.actions.child import CannotStart, Children, Spawn
from wakeful.integrations.actions.environment import environment
from wakeful.integrations.actions.program import Unstartable, check_command
from wakeful.integrations.net.exchange import Exchanges, NoAnswer, NoConnection, NoRoom, Request, is_web_address
from wakeful.integrations.system.text import HeadTail, last_line, one_line
from wakeful.ports.action import CannotBegin, Fire, Ladder
from wakeful.ports.clock import Clock
from wakeful.ports.exchange import ExchangeListener, RequestContext

T = TypeVar("T")

ANSWER_MAX: Final = 4 * 1024 * 1024
TRANSIENT: Final = frozenset({429, 502, 503, 504})
COMPLAINT_MAX: Final = 16 * 1024
ACTION: Final = "workflow-handler"
TRY_LATER: Final = 75
"""The exit code of a program that did nothing and asks for a retry (EX_TEMPFAIL)."""


FIRST_PHASES: Final = frozenset({"produce", "prepare"})
"""Before them, nothing of a run has begun."""


class HandlerFailure(Exception):
    """A handler call without a valid response."""

    def __init__(
        self,
        error: str,
        *,
        is_transient: bool = False,
        did_nothing: bool = False,
        has_happened: bool = False,
        is_fault: bool = False,
        until: Instant | None = None,
    ) -> None:
        super().__init__(error)
        self.is_transient = is_transient
        self.did_nothing = did_nothing
        self.has_happened = has_happened  # only what it returned cannot be read
        self.is_fault = is_fault  # its server failed: a few more tries may help
        self.until = until

    def result(self) -> Result:
        """The result of an attempt outside `mutate`."""
        if self.is_fault:
            return Failed(str(self), tries_max=FAULTS_MAX)
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
            case Http(url=url, headers=headers):
                if not is_web_address(url):
                    return f"{shown(url)} is not a web address; write it like https://…"
                return wrong_headers(headers)
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
                await self._exchanges.prepare()
                await ladder.climb("sent")
                return await self._over_http(http, handler.timeout, question, fire)
            case Command() as command:
                return await self._within(handler.timeout, self._by_program(command, question, fire, ladder))
            case Python():
                await ladder.climb("started")
                return await self._within(handler.timeout, self._python(question, fire))

    async def close(self) -> None:
        await self._exchanges.close()
        await self._children.close()

    async def _over_http(self, http: Http, limit: Duration, question: HandlerRequest, fire: Fire) -> Any:
        headers = {**sendable(http.headers), "Content-Type": "application/json"}
        headers |= {"Idempotency-Key": fire.idempotency_key, "X-Wakeful-Run": question.run_id}
        headers |= trace_header(fire.traceparent)
        body = json.dumps(question.to_json(), ensure_ascii=False).encode()
        request = Request("POST", http.url, headers, body, ANSWER_MAX)
        try:
            response = await self._exchanges.send(request, RequestContext(ACTION, fire.slug), limit=limit)
        except NoRoom as error:
            raise _no_room(question, str(error)) from None
        except NoConnection as error:
            raise HandlerFailure(str(error), is_transient=True, did_nothing=True) from None
        except NoAnswer as error:
            is_answered = error.status is not None and 200 <= error.status < 300
            raise HandlerFailure(str(error), is_transient=True, has_happened=is_answered) from None
        if not response.is_ok:
            said = response.said()
            raise HandlerFailure(
                f"{response.line}: {said}" if said else response.line,
                is_transient=response.status in TRANSIENT,
                did_nothing=response.status < 500,
                is_fault=response.status >= 500 and response.status not in TRANSIENT,
                until=response.retry_at(self._clock.read().now),
            )
        if not response.is_whole:
            said = f"its response is longer than {ANSWER_MAX} bytes; return less, and publish references"
            raise HandlerFailure(said, has_happened=True)
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
        except CannotBegin as error:
            raise _no_room(question, str(error)) from None
        except CannotStart as error:
            raise HandlerFailure(str(error), did_nothing=True) from None
        if ending.code != 0:
            is_later = ending.code == TRY_LATER
            said = last_line(complained.text()) or one_line(printed.text)
            raise HandlerFailure(
                f"exited with {ending.code}: {said}" if said else f"exited with {ending.code}",
                is_transient=is_later,
                did_nothing=is_later,
            )
        if printed.is_too_much:
            said = f"it printed more than {ANSWER_MAX} bytes; print less, and publish references"
            raise HandlerFailure(said, has_happened=True)
        return _parsed(printed.text.removesuffix("\n"), question.phase)

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
            if not task.cancelled():
                return task.result()  # it ended in this moment
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


def _no_room(question: HandlerRequest, error: str) -> Exception:
    """The run waits if this was its first step; later ones are repeated like those of a handler that is not reached."""
    if question.phase in FIRST_PHASES:
        return CannotBegin(error)
    return HandlerFailure(error, is_transient=True, did_nothing=True)


def _parsed(text: str, phase: str) -> Any:
    if not text.strip() and phase in ("mutate", "next"):
        return None  # an empty response is valid there
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        if phase == "mutate" and isinstance(error, ValueError):
            return text
        said = f"returned {shown(one_line(text[:1000]))}, which is not JSON; return a JSON object"
        raise HandlerFailure(said, has_happened=True) from None
