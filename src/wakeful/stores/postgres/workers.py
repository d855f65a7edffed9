"""Threads that run operations, with one connection each. They are started on demand."""

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from threading import Condition, Lock, Thread
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

CLOSE_WITHIN: Final = 10.0
"""How many seconds the last operations may still take when the store is closed."""

Fate: TypeAlias = tuple[Any, BaseException | None]
"""The result of an operation: its value, or its error."""


class Call(NamedTuple):
    """An operation, and the future of its caller."""

    operation: Callable[[Any], Any]
    future: "asyncio.Future[Any]"
    is_urgent: bool = False


class ConnectionWorker(Protocol):
    """What one thread does with an operation. Used by that thread only."""

    def serve(self, operation: Callable[[Any], Any]) -> Fate: ...

    def close(self) -> None: ...


class Workers:
    """At most `n` threads, which take urgent calls first, and others in the order they came; each result is set on the
    loop of its caller. `kept_free` of the threads take urgent calls only: even if all others wait for a lock, a claim
    or the renewal of a lease does not."""

    def __init__(
        self,
        name: str,
        n: int,
        make_worker: Callable[[], ConnectionWorker],
        monotonic: Callable[[], float],
        *,
        kept_free: int = 0,
    ) -> None:
        self._name = name
        self._n = n
        self._others_max = n - kept_free
        self._make_worker = make_worker
        self._monotonic = monotonic
        self._urgent: deque[Call] = deque()
        self._others: deque[Call] = deque()
        self._threads: list[Thread] = []
        self._unanswered = 0
        self._serving_others = 0
        self._idle = 0
        self._is_closing = False
        self._lock = Lock()
        self._news = Condition(self._lock)

    def submit(self, call: Call) -> None:
        thread = None
        with self._lock:
            self._unanswered += 1
            (self._urgent if call.is_urgent else self._others).append(call)
            if not call.is_urgent and self._serving_others >= self._others_max:
                pass  # one of those that serve others takes it next
            elif self._idle > 0:
                self._idle -= 1
                self._news.notify()
            elif len(self._threads) < self._n:
                thread = Thread(target=self._drive, name=self._name, daemon=True)
                self._threads.append(thread)
        if thread is not None:
            thread.start()

    async def close(self) -> None:
        """Finish what was submitted, then close the connections."""
        with self._lock:
            self._is_closing = True
            threads, self._threads = self._threads, []
            self._news.notify_all()
        await asyncio.to_thread(_join, threads, self._monotonic)

    def _drive(self) -> None:
        worker = self._make_worker()
        while (call := self._next()) is not None:
            fate = _served(worker, call.operation)
            with self._lock:
                self._unanswered -= 1
                self._serving_others -= not call.is_urgent
            with suppress(RuntimeError):  # the loop is closed, so there is no caller any more
                call.future.get_loop().call_soon_threadsafe(_answer, call.future, fate)
            del call, fate  # an idle worker keeps nothing of the last operation alive
        worker.close()

    def _next(self) -> Call | None:
        """Wait for the next call that this thread may take; None: the store is closed, and there is none left."""
        with self._lock:
            while True:
                if self._urgent:
                    return self._urgent.popleft()
                if self._others and self._serving_others < self._others_max:
                    self._serving_others += 1
                    return self._others.popleft()
                if self._is_closing:
                    return None
                self._idle += 1  # the caller that wakes this thread subtracts it again, so that it is counted once
                self._news.wait()


def _served(worker: ConnectionWorker, operation: Callable[[Any], Any]) -> Fate:
    try:
        return worker.serve(operation)
    except StopIteration as error:
        return None, RuntimeError(f"the operation raised StopIteration: {error}")  # a future cannot carry it
    except BaseException as error:  # a bug here must not leave the caller waiting forever
        return None, error


def _answer(future: "asyncio.Future[Any]", fate: Fate) -> None:
    """Set the result for the caller, unless it was cancelled in the meantime."""
    value, error = fate
    if future.done():
        return
    if error is None:
        future.set_result(value)
    else:
        future.set_exception(error)


def _join(threads: list[Thread], monotonic: Callable[[], float]) -> None:
    """Wait for the threads, but not forever: one that waits for a server which is gone ends with the process."""
    until = monotonic() + CLOSE_WITHIN
    for thread in threads:
        thread.join(max(0.0, until - monotonic()))
