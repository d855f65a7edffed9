"""Calls into the objects of plugins: what raises gets an answer that the engine can use, and what blocks the event loop
is measured.

Theory of operation: the event loop runs one step of a coroutine at a time, so a plugin blocks everything else exactly
while one of its steps runs. `stepwise` drives a plugin's coroutine and measures each of its steps; plain calls are
measured as a whole. Tasks that a plugin starts by itself are not seen.
"""

import asyncio
import functools
import inspect
import time
import types
from collections.abc import Callable, Coroutine, Generator, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, Final, Protocol, TypeVar

T = TypeVar("T")
Fallback = Callable[[str], Any]
"""What a method returns if the plugin raised; it gets a sentence."""

BLOCKED: Final = 1.0
"""Seconds that a plugin may hold up the event loop."""


class Report(Protocol):
    """Takes what a plugin did wrong."""

    def raised(self, method: str, error: Exception) -> str:
        """Returns a sentence for the person."""
        ...

    def blocked(self, method: str, seconds: float) -> None: ...

    def worked(self, method: str) -> None: ...


@contextmanager
def measured(report: Report, method: str) -> Iterator[None]:
    """Reports the code inside if it takes too long on the event loop; in a thread it holds nothing up."""
    began = time.perf_counter()
    try:
        yield
    finally:
        took = time.perf_counter() - began
        if took >= BLOCKED and asyncio._get_running_loop() is not None:
            report.blocked(method, took)


@types.coroutine
def stepwise(coroutine: Coroutine[Any, Any, T], report: Report, method: str) -> Generator[Any, Any, T]:
    """Await the coroutine, and measure each of its steps."""
    step: Callable[[], Any] = functools.partial(coroutine.send, None)
    while True:
        with measured(report, method):
            try:
                awaited = step()
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
        try:
            value = yield awaited
        except GeneratorExit:
            coroutine.close()
            raise
        except BaseException as error:
            step = functools.partial(coroutine.throw, error)
        else:
            step = functools.partial(coroutine.send, value)


def guarded_function(function: Callable[..., Any], report: Report, method: str) -> Callable[..., Any]:
    """The same function, with its signature. What it raises is reported and raised again; a plain function is called in
    a thread, so it cannot block."""

    @functools.wraps(function)
    async def asynchronous(*args: Any, **kwargs: Any) -> Any:
        try:
            value = await stepwise(function(*args, **kwargs), report, method)
        except Exception as error:
            report.raised(method, error)
            raise
        report.worked(method)
        return value

    @functools.wraps(function)
    def plain(*args: Any, **kwargs: Any) -> Any:
        try:
            value = function(*args, **kwargs)
        except Exception as error:
            report.raised(method, error)
            raise
        report.worked(method)
        return value

    return asynchronous if is_async(function) else plain


def is_async(function: object) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004 - its type matters


def guarded(
    target: object,
    report: Report,
    fallbacks: Mapping[str, Fallback],
    inner: Mapping[str, Mapping[str, Fallback]] = MappingProxyType({}),
) -> Any:
    """An object with the public attributes of the plugin's. A method with a fallback returns that instead of raising;
    what a method in `inner` returns is guarded in the same way.

    It gets a class of its own, because optional parts of a port are recognised by the methods of the class."""
    attributes = {
        name: _attribute(target, name, report, fallbacks.get(name), inner.get(name)) for name in _public(target)
    }
    return type(type(target).__name__, (), attributes)()


def _public(target: object) -> list[str]:
    return [name for name in dir(target) if not name.startswith("_")]


def _attribute(
    target: object, name: str, report: Report, fallback: Fallback | None, inner: Mapping[str, Fallback] | None
) -> Any:
    value = inspect.getattr_static(target, name)
    if isinstance(value, property) or not callable(getattr(target, name, None)):
        return property(lambda _: getattr(target, name))
    method = getattr(target, name)

    def answer(error: Exception) -> Any:
        sentence = report.raised(name, error)
        if fallback is None:
            raise error
        return fallback(sentence)

    async def asynchronous(_: object, /, *args: Any, **kwargs: Any) -> Any:
        try:
            value = await stepwise(method(*args, **kwargs), report, name)
        except Exception as error:
            return answer(error)
        report.worked(name)
        return value

    def plain(_: object, /, *args: Any, **kwargs: Any) -> Any:
        try:
            with measured(report, name):
                value = method(*args, **kwargs)
        except Exception as error:
            return answer(error)
        report.worked(name)
        return value if inner is None else guarded(value, report, inner)

    return asynchronous if is_async(method) else plain
