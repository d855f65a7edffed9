"""Blocking work in a thread of its own.

One daemon thread for each piece of work, not a pool: a thread that never returns can then neither hold up other work
nor keep the interpreter from exiting. How many there are is bounded by the engine's capacity, of which a stuck one
keeps its share.
"""

import asyncio
import contextvars
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TypeVar

T = TypeVar("T")


def in_thread(work: Callable[[], T], *, name: str) -> "asyncio.Future[T]":
    """Begin the work in a thread; the future is resolved on the running loop when the thread returns."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()
    context = contextvars.copy_context()

    def run() -> None:
        try:
            report = partial(_resolve, future, context.run(work))
        except BaseException as error:  # whatever it is, it belongs to the one who waits
            report = partial(_reject, future, error)
        call_on(loop, report)

    threading.Thread(target=run, name=f"wakeful-{name}", daemon=True).start()
    return future


def call_on(loop: asyncio.AbstractEventLoop, report: Callable[[], object]) -> None:
    """Hand a report to the loop, unless it is closed: then nobody is left to hear it."""
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(report)


def _resolve(future: "asyncio.Future[T]", value: T) -> None:
    if not future.done():
        future.set_result(value)


def _reject(future: "asyncio.Future[T]", error: BaseException) -> None:
    if not future.done():
        future.set_exception(error)
