"""Calls a Python callable, and turns its result into an outcome."""

import asyncio
import inspect
import json
import traceback
from collections.abc import Awaitable, Callable, Mapping
from functools import lru_cache, partial
from types import TracebackType
from typing import Any, Final, TypeAlias

from wakeful.core.exception_names import exception_name
from wakeful.core.run.agent_reply import AgentReply
from wakeful.core.run.results import DONE, Done, Failed, Result
from wakeful.core.schedule.actions import OUTPUT_MAX
from wakeful.integrations.actions.arguments import NotCallable, fill
from wakeful.integrations.actions.fire import Fire
from wakeful.integrations.actions.registry import Target, UnknownCallable
from wakeful.integrations.system.text import cap, one_line

OnError: TypeAlias = Callable[[Fire, BaseException], None]
Read: TypeAlias = Callable[[object], Result]
"""Turns what a callable returned into a result."""

TEXT_OF: Final = ("output", "final_output", "content", "raw")
"""Where the results of agent frameworks have their text: Pydantic AI, the OpenAI Agents SDK, LangChain, CrewAI."""


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


def ignore_error(_fire: Fire, _error: BaseException) -> None:
    """The default error callback: does nothing."""


def resolve_and_begin(
    resolve: Callable[[], Target],
    fire: Fire,
    args: Mapping[str, Any],
    on_error: OnError = ignore_error,
    read: Read | None = None,
) -> Result | Awaitable[Any]:
    """Look up the callable, which may import its module, and call it. Never raises."""
    try:
        target = resolve()
    except UnknownCallable as error:
        return Failed(str(error), permanent=True)
    except BaseException as error:
        on_error(fire, error)
        return failure_of(error)
    return begin(target, fire, args, on_error, read)


def begin(
    target: Target,
    fire: Fire,
    args: Mapping[str, Any],
    on_error: OnError = ignore_error,
    read: Read | None = None,
) -> Result | Awaitable[Any]:
    """Call the callable; returns the result, or an awaitable. Never raises; `on_error` gets what the callable
    raised."""
    try:
        positional, named = fill(target, fire, args)
        value = target(*positional, **named)
        return value if inspect.isawaitable(value) else (read or outcome_of)(value)
    except NotCallable as error:
        return Failed(str(error), permanent=True)
    except BaseException as error:  # SystemExit and KeyboardInterrupt of a callable must not end the engine
        on_error(fire, error)
        return failure_of(error)


async def finish(
    awaitable: Awaitable[Any], fire: Fire, on_error: OnError = ignore_error, read: Read | None = None
) -> Result:
    """Await the awaitable; returns the result. Raises only the cancellation; `on_error` gets anything else it
    raised."""
    try:
        return (read or outcome_of)(await awaitable)
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
    if isinstance(value, AgentReply):
        done = value.as_reply()
        return Done(output=None if done.reply is None else cap(_as_text(done.reply), OUTPUT_MAX), usage=done.usage)
    if inspect.isgenerator(value) or inspect.isasyncgen(value):
        return Failed("it returned a generator, so its body never ran; return a value", permanent=True)
    return Done(output=cap(_as_text(value), OUTPUT_MAX))


def text_of(value: object) -> str | None:
    """The text of a value that is text, or the result of an agent framework; None if it has none."""
    if isinstance(value, str):
        return value
    return next((text for name in TEXT_OF if isinstance(text := attribute_of(value, name), str)), None)


def attribute_of(value: object, name: str) -> Any:
    """An attribute of an unknown object; None if it has none, or if reading it fails."""
    try:
        return getattr(value, name, None)
    except Exception:  # the call succeeded; a property that raises is not a failure
        return None


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


def _as_text(value: object) -> str:
    text = text_of(value)
    if text is not None:
        return text
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        pass
    try:
        return repr(value)
    except Exception:  # the call succeeded; an unprintable value is not a failure
        return f"<{type(value).__name__}>"
