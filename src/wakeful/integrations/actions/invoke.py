"""Calls a Python callable, and turns its result into an outcome.

The fire is passed first, the definition's `args` by name. A callable that does not accept the fire (it takes nothing,
or only `args`) is called without it, so any existing function can be a target.
"""

import asyncio
import inspect
import json
import traceback
from collections.abc import Awaitable, Callable, Mapping
from functools import lru_cache, partial
from types import TracebackType
from typing import Any, TypeAlias

from wakeful.core.exception_names import exception_name
from wakeful.core.run.results import DONE, Done, Failed, Result
from wakeful.core.schedule.actions import OUTPUT_MAX
from wakeful.integrations.actions.fire import FireView
from wakeful.integrations.actions.registry import Target, UnknownCallable
from wakeful.integrations.system.text import cap, one_line

OnError: TypeAlias = Callable[[FireView, BaseException], None]


def is_async(target: Target) -> bool:
    """Whether calling it returns a coroutine immediately, without blocking."""
    try:
        return _is_async(target)
    except TypeError:  # an unhashable callable is inspected each time
        return _is_async.__wrapped__(target)


@lru_cache(maxsize=1024)
def _is_async(target: Target) -> bool:
    while isinstance(target, partial):
        target = target.func
    return inspect.iscoroutinefunction(target) or inspect.iscoroutinefunction(type(target).__call__)


class NotCallable(Exception):
    """The callable cannot be called like this; the message gives the reason and the cure."""


def ignore_error(_fire: FireView, _error: BaseException) -> None:
    """The default error callback: does nothing."""


def resolve_and_begin(
    resolve: Callable[[], Target], fire: FireView, args: Mapping[str, Any], on_error: OnError = ignore_error
) -> Result | Awaitable[Any]:
    """Look up the callable, which may import its module, and call it. Never raises."""
    try:
        target = resolve()
    except UnknownCallable as error:
        return Failed(str(error), permanent=True)
    except BaseException as error:
        on_error(fire, error)
        return failure_of(error)
    return begin(target, fire, args, on_error)


def begin(
    target: Target, fire: FireView, args: Mapping[str, Any], on_error: OnError = ignore_error
) -> Result | Awaitable[Any]:
    """Call the callable; returns the result, or an awaitable. Never raises; `on_error` gets what the callable
    raised."""
    try:
        positional, named = fill(target, fire, args)
        value = target(*positional, **named)
        return value if inspect.isawaitable(value) else outcome_of(value)
    except NotCallable as error:
        return Failed(str(error), permanent=True)
    except BaseException as error:  # SystemExit and KeyboardInterrupt of a callable must not end the engine
        on_error(fire, error)
        return failure_of(error)


async def finish(awaitable: Awaitable[Any], fire: FireView, on_error: OnError = ignore_error) -> Result:
    """Await the awaitable; returns the result. Raises only the cancellation; `on_error` gets anything else it
    raised."""
    try:
        return outcome_of(await awaitable)
    except asyncio.CancelledError:
        raise
    except BaseException as error:  # a task that lets SystemExit or KeyboardInterrupt out ends its event loop
        on_error(fire, error)
        return failure_of(error)


def outcome_of(value: object) -> Result:
    """A callable's return value as a result: a result it created itself, or its value as text."""
    if value is None:
        return DONE
    if isinstance(value, Result):
        return value
    if inspect.isgenerator(value) or inspect.isasyncgen(value):
        return Failed("it returned a generator, so its body never ran; return a value", permanent=True)
    return Done(output=cap(_as_text(value), OUTPUT_MAX))


def failure_of(error: BaseException) -> Failed:
    """An exception as a result, with the traceback from the callable on as its output."""
    try:
        said = str(error)
    except Exception:  # a broken __str__ must not hide that it failed
        said = "(its message cannot be read)"
    name = type(error).__name__
    own = own_traceback(error)
    trace = "".join(traceback.format_exception(type(error), error, own)) if own else None
    raised = tuple(exception_name(kind) for kind in type(error).__mro__ if issubclass(kind, BaseException))
    return Failed(one_line(f"{name}: {said}" if said else name), output=trace and cap(trace, OUTPUT_MAX), raised=raised)


def own_traceback(error: BaseException) -> TracebackType | None:
    """The traceback from the callable on: the first frame is ours."""
    return error.__traceback__.tb_next if error.__traceback__ else None


def fill(target: Target, fire: FireView | None, args: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments to call it with. Raises `NotCallable`."""
    names = tuple(args)
    try:
        is_fire_taken = _takes_fire(target, names)
    except TypeError:  # an unhashable callable is inspected each time
        is_fire_taken = _takes_fire.__wrapped__(target, names)
    return ((fire,) if is_fire_taken else ()), dict(args)


@lru_cache(maxsize=1024)
def _takes_fire(target: Target, names: tuple[str, ...]) -> bool:
    """Whether it accepts the fire in addition to arguments of these names. Raises `NotCallable`."""
    args = dict.fromkeys(names)
    if inspect.isgeneratorfunction(target) or inspect.isasyncgenfunction(target):
        raise NotCallable(f"{_name(target)} is a generator, so calling it runs nothing; use return instead of yield")
    try:
        signature = inspect.signature(target)
    except (TypeError, ValueError):  # some built-in callables have no signature
        return True
    wrong = _misfit(signature, (None,), args)
    if wrong is None:
        return True
    if _misfit(signature, (), args) is None:
        return False
    raise NotCallable(f"{_name(target)} cannot be called with the fire and {_names(args)} ({wrong}); correct its args")


def _misfit(signature: inspect.Signature, positional: tuple[Any, ...], named: Mapping[str, Any]) -> str | None:
    try:
        signature.bind(*positional, **named)
    except TypeError as error:
        return str(error)
    return None


def _as_text(value: object) -> str:
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        pass
    try:
        return repr(value)
    except Exception:  # the call succeeded; an unprintable value is not a failure
        return f"<{type(value).__name__}>"


def _name(target: Target) -> str:
    return getattr(target, "__qualname__", type(target).__name__)


def _names(args: Mapping[str, Any]) -> str:
    return ", ".join(map(repr, args)) or "no args"
