"""Threads that run operations, with one connection each. They are started on demand."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

CLOSE_WITHIN: Final = 10.0
"""How many seconds the last operations may still take when the store is closed."""

Fate: TypeAlias = tuple[Any, BaseException | None]
"""The result of an operation: its value, or its error."""


class Call(NamedTuple):
    """An operation, and the future of its caller."""

    operation: Callable[[Any], Any]
    future: "asyncio.Future[Any]"


class ConnectionWorker(Protocol):
    """What one thread does with an operation. Used by that thread only."""

    def serve(self, operation: Callable[[Any], Any]) -> Fate: ...

    def close(self) -> None: ...


class Workers:
    """At most `n` threads on one queue; each result is set on the loop of its caller."""

    def __init__(
        self, name: str, n: int, make_worker: Callable[[], ConnectionWorker], monotonic: Callable[[], float]
    ) -> None:
        self._name = name
        self._n = n
        self._make_worker = make_worker
        self._monotonic = monotonic
        self._waiting: SimpleQueue[Call | None] = SimpleQueue()
        self._threads: list[Thread] = []
        self._lock = Lock()
        self._unanswered = 0

    def submit(self, call: Call) -> None:
        with self._lock:
            self._unanswered += 1
            is_short = self._unanswered > len(self._threads) and len(self._threads) < self._n
            if is_short:
                thread = Thread(target=self._drive, name=self._name, daemon=True)
                self._threads.append(thread)
        self._waiting.put(call)
        if is_short:
            thread.start()

    async def close(self) -> None:
        """Finish what was submitted, then close the connections."""
        with self._lock:
            threads, self._threads = self._threads, []
        for _ in threads:
            self._waiting.put(None)
        await asyncio.to_thread(_join, threads, self._monotonic)

    def _drive(self) -> None:
        worker = self._make_worker()
        while (call := self._waiting.get()) is not None:
            fate = _served(worker, call.operation)
            with self._lock:
                self._unanswered -= 1
            with suppress(RuntimeError):  # the loop is closed, so there is no caller any more
                call.future.get_loop().call_soon_threadsafe(_answer, call.future, fate)
            del call, fate  # an idle worker keeps nothing of the last operation alive
        worker.close()


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
