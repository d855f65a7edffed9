"""The call action: a Python callable.

An async callable runs on the event loop and is ended by cancellation. A sync one runs in a
thread, which cannot be stopped: after a timeout it is reported as still running. With `isolate: process` it runs in a
separate process, which can be killed.
"""

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

from wakeful.core.run.results import Failed, Result
from wakeful.core.run.runs import RungName
from wakeful.core.schedule.actions import ActionSpec, Call
from wakeful.core.time.instants import Duration
from wakeful.integrations.actions.arguments import NotCallable, fill, place_of
from wakeful.integrations.actions.child import Children
from wakeful.integrations.actions.fire import Fire as FireView
from wakeful.integrations.actions.invoke import (
    Read,
    begin,
    failure_of,
    finish,
    is_async,
    outcome_of,
    own_traceback,
    resolve_and_begin,
)
from wakeful.integrations.actions.isolation import Unsendable, pack, perform_isolated
from wakeful.integrations.actions.registry import CallRegistry, Target, UnknownCallable
from wakeful.integrations.actions.sessions import END_GRACE
from wakeful.integrations.actions.spec import expect
from wakeful.integrations.system.threads import Threads
from wakeful.ports.action import CANCELLED_ITSELF, CannotBegin, DirectCall, Fire, Ladder, StillRunning

__all__ = ["CallAction", "CallRegistry"]

log = logging.getLogger("wakeful")


class CallAction:
    """Performs `Call`."""

    is_local = True

    def __init__(self, registry: CallRegistry, *, grace: Duration = END_GRACE, read: Read = outcome_of) -> None:
        self._registry = registry
        self._read = read
        self._grace = grace
        self._children = Children(grace=grace)
        self._threads = Threads()

    def proves(self, spec: ActionSpec) -> RungName:
        return "finished"

    def check(self, spec: ActionSpec) -> str | None:
        call = expect(spec, Call)
        try:
            target = self._registry.resolve(call.target)
            fill(target, None, call.args)
            if call.isolate:
                pack(self._registry.registered(call.target) or call.target, call, None)
        except (UnknownCallable, NotCallable, Unsendable) as error:
            return str(error)
        return None

    def is_here(self, call: Call) -> bool:
        """Whether this process has the function: registered or importable."""
        return ":" in call.target or self._registry.registered(call.target) is not None

    def direct(self, spec: ActionSpec) -> DirectCall | None:
        """An async function that is at hand needs neither a thread nor a record of its start."""
        call = expect(spec, Call)
        target = None if call.isolate else self._registry.at_hand(call.target)
        if target is None or not is_async(target):
            return None
        try:
            takes_fire = place_of(target, tuple(call.args)) is not None
        except NotCallable:
            return None
        return partial(self._call, target, call.args, takes_fire)

    async def _call(
        self, target: Target, args: Mapping[str, Any], takes_fire: bool, fire_of: Callable[[], Fire]
    ) -> Result:
        try:
            if takes_fire:
                positional, named = fill(target, FireView(fire_of()), args)
                return self._read(await target(*positional, **named))
            return self._read(await target(**args))
        except asyncio.CancelledError:
            if _is_cancelled():
                raise
            return CANCELLED_ITSELF
        except BaseException as error:  # SystemExit and KeyboardInterrupt of a callable must not end the engine
            _log(FireView(fire_of()), error)
            return failure_of(error)

    async def perform(self, spec: ActionSpec, fire: Fire, ladder: Ladder) -> Result:
        call = expect(spec, Call)
        if call.isolate:
            target = self._registry.registered(call.target) or call.target
            result = await perform_isolated(target, call, fire, ladder, self._children)
            if isinstance(result, Failed):
                log.error("%s\n%s", _failed(FireView(fire), result.error), result.output or "")
            return result
        # It does not survive a crash of this process, but part of its work may be done, so its start is recorded first.
        await ladder.climb("started")
        view = FireView(fire)
        at_hand = self._registry.at_hand(call.target)
        if at_hand is not None and is_async(at_hand):
            begun = begin(at_hand, view, call.args, _log, self._read)
        else:
            begun = await self._begin_in_thread(call, view)
        if not inspect.isawaitable(begun):
            return begun
        # In the attempt's own task: a second one would cost as much as the rest of a call. If the callable swallows a
        # cancellation and continues, the engine notices, because it waits for the task; if it swallows it and then
        # returns, it still counts as ended by us.
        try:
            result = await finish(begun, view, _log, self._read)
        except asyncio.CancelledError:
            if _is_cancelled():
                raise
            return CANCELLED_ITSELF
        if _is_cancelled():
            raise asyncio.CancelledError
        return result

    async def close(self) -> None:
        self._threads.close()
        await self._children.close()

    async def _begin_in_thread(self, call: Call, fire: FireView) -> Result | Awaitable[Any]:
        """Used if the callable, or importing it, may block."""
        resolve = partial(self._registry.resolve, call.target)
        try:
            running = self._threads.run(lambda: resolve_and_begin(resolve, fire, call.args, _log, self._read))
        except RuntimeError as error:
            raise CannotBegin(f"{error}; lower the concurrency, or raise the limit") from None
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            if running.done():
                return _cancelled_result(running.result())
            message = f"'{call.target}' runs in a thread, which cannot be stopped; use isolate: process instead"
            raise StillRunning(message, _ended(running)) from None


def _is_cancelled() -> bool:
    """Whether the engine asked this attempt to end."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _log(fire: FireView, error: BaseException) -> None:
    """Log the failure, so that a program that embeds us sees the errors of its functions."""
    log.error("%s", _failed(fire, type(error).__name__), exc_info=(type(error), error, own_traceback(error)))


def _failed(fire: FireView, what: str) -> str:
    return f"{fire.slug}: attempt {fire.attempt} of run {fire.run_id} failed: {what}"


def _cancelled_result(begun: Result | Awaitable[Any]) -> Result:
    """Cancelled just as the thread returned: a finished result counts, an unstarted awaitable must not start."""
    if isinstance(begun, Result):
        return begun
    _discard(begun)
    raise asyncio.CancelledError


def _ended(leftover: "asyncio.Future[Any]") -> "asyncio.Future[None]":
    """A future that resolves when the leftover task ends."""
    ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def resolve(leftover: "asyncio.Future[Any]") -> None:
        if not leftover.cancelled() and leftover.exception() is None:
            _discard(leftover.result())
        if not ended.done():
            ended.set_result(None)

    leftover.add_done_callback(resolve)
    return ended


def _discard(begun: object) -> None:
    if inspect.iscoroutine(begun):
        begun.close()
