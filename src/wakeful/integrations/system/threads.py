"""Blocking work in daemon threads.

A thread that never returns must neither block other work nor prevent the interpreter from exiting. So nothing queues
behind busy threads: work goes to an idle thread, or to a new one. Their number is bounded by the engine's capacity; a
stuck thread keeps occupying its share.

Idle threads are reused because starting one costs five times as much as passing work to it (300 against 60
microseconds).
"""

import asyncio
import contextvars
import queue
import threading
from collections.abc import Callable
from functools import partial
from typing import Final, TypeAlias, TypeVar

T = TypeVar("T")
_Inbox: TypeAlias = "queue.SimpleQueue[Callable[[], bool] | None]"

IDLE_MAX: Final = 64
"""As many as the engine runs concurrently by default."""


class Threads:
    """The threads of one event loop. The list of idle ones is used only on the loop, so it needs no lock."""

    def __init__(self) -> None:
        self._idle: list[_Inbox] = []
        self._idle_max = IDLE_MAX

    def run(self, work: Callable[[], T]) -> "asyncio.Future[T]":
        """Start the work; the future is resolved on the running loop when it returns."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        context = contextvars.copy_context()
        inbox = self._idle.pop() if self._idle else _start()

        def job() -> bool:
            report = _outcome(partial(context.run, work), future)
            return call_on(loop, partial(self._report, inbox, report))

        inbox.put(job)
        return future

    def close(self) -> None:
        """End idle threads, and busy ones as soon as they are idle."""
        self._idle_max = 0
        while self._idle:
            self._idle.pop().put(None)

    def _report(self, inbox: _Inbox, report: Callable[[], None]) -> None:
        if len(self._idle) < self._idle_max:
            self._idle.append(inbox)
        else:
            inbox.put(None)
        report()


def in_thread(work: Callable[[], T], *, name: str) -> "asyncio.Future[T]":
    """Start rarely needed work in a new thread."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def run() -> None:
        call_on(loop, _outcome(work, future))

    try:
        threading.Thread(target=run, name=f"wakeful-{name}", daemon=True).start()
    except RuntimeError:  # the system has no thread left; cleanup must not fail because of that
        run()
    return future


def call_on(loop: asyncio.AbstractEventLoop, report: Callable[[], object]) -> bool:
    """Schedule a callback on the loop; False if the loop is closed."""
    try:
        loop.call_soon_threadsafe(report)
    except RuntimeError:
        return False
    return True


def _start() -> _Inbox:
    inbox: _Inbox = queue.SimpleQueue()
    threading.Thread(target=_work, args=(inbox,), name="wakeful-call", daemon=True).start()
    return inbox


def _work(inbox: _Inbox) -> None:
    while (job := inbox.get()) is not None:
        if not job():
            return
        job = None  # otherwise an idle thread would keep the last work alive


def _outcome(work: Callable[[], T], future: "asyncio.Future[T]") -> Callable[[], None]:
    """Do the work; returns the callback that resolves the future."""
    try:
        return partial(_resolve, future, work())
    except BaseException as error:  # any exception belongs to the caller
        return partial(_reject, future, error)


def _resolve(future: "asyncio.Future[T]", value: T) -> None:
    if not future.done():
        future.set_result(value)


def _reject(future: "asyncio.Future[T]", error: BaseException) -> None:
    if not future.done():
        future.set_exception(error)
