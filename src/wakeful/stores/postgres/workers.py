"""Threads that serve operations, a connection each. They are started when there is work for one more."""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

CLOSE_WITHIN: Final = 10.0
"""Seconds that what was asked for last may still take when the store is closed."""

Fate: TypeAlias = tuple[Any, BaseException | None]
"""What became of an operation: its value, or its error."""


class Call(NamedTuple):
    """An operation, and who waits for it."""

    operation: Callable[[Any], Any]
    future: "asyncio.Future[Any]"


class ConnectionWorker(Protocol):
    """What one thread does with an operation. Used by that thread alone."""

    def serve(self, operation: Callable[[Any], Any]) -> Fate: ...

    def close(self) -> None: ...


class Workers:
    """At most `n` threads on one queue; each operation is answered on the loop of whoever waits for it."""

    def __init__(self, name: str, n: int, make_hand: Callable[[], ConnectionWorker]) -> None:
        self._name = name
        self._n = n
        self._make_hand = make_hand
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
        """Finish what was submitted, then let the connections go."""
        with self._lock:
            threads, self._threads = self._threads, []
        for _ in threads:
            self._waiting.put(None)
        await asyncio.to_thread(_join, threads)

    def _drive(self) -> None:
        hand = self._make_hand()
        while (call := self._waiting.get()) is not None:
            fate = _served(hand, call.operation)
            with self._lock:
                self._unanswered -= 1
            with suppress(RuntimeError):  # the loop is closed: nobody listens any more
                call.future.get_loop().call_soon_threadsafe(_answer, call.future, fate)
            del call, fate  # an idle worker keeps nothing of the last operation alive
        hand.close()


def _served(hand: ConnectionWorker, operation: Callable[[Any], Any]) -> Fate:
    try:
        return hand.serve(operation)
    except StopIteration as error:
        return None, RuntimeError(f"the operation raised StopIteration: {error}")  # a future cannot carry it
    except BaseException as error:  # a fault of ours must not leave the caller waiting for ever
        return None, error


def _answer(future: "asyncio.Future[Any]", fate: Fate) -> None:
    """Tell the caller; one that was cancelled meanwhile hears nothing."""
    value, error = fate
    if future.done():
        return
    if error is None:
        future.set_result(value)
    else:
        future.set_exception(error)


def _join(threads: list[Thread]) -> None:
    """Wait for them, but not for ever: one that waits for a server which is gone ends with the process."""
    until = time.monotonic() + CLOSE_WITHIN
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
