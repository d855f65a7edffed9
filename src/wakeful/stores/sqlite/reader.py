"""Reads: on separate connections, so that readers and the writer never wait for each other."""

import asyncio
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Final, Protocol

from wakeful.ports.store import StoreUnavailable
from wakeful.stores.sqlite.connection import READ_STEPS, READ_WITHIN_S, Opened, is_unavailable, open_reader, unavailable
from wakeful.stores.sqlite.file_guard import FileGuard
from wakeful.stores.sqlite.group import Call, Fate, answer
from wakeful.stores.sqlite.migrate import DatabaseRefused

TOGETHER_MAX: Final = 8
"""How many operations that wait share a snapshot: beginning and ending one costs as much as a small read."""
ANSWER_WITHIN_S: Final = 0.002


class Reader(Protocol):
    """Takes read operations."""

    def submit(self, call: Call) -> None: ...

    async def close(self) -> None: ...


class ReaderThreads:
    """A few threads with one connection each, opened when first needed. Belongs to the loop it was created on."""

    def __init__(self, path: Path, n: int, guard: FileGuard) -> None:
        self._path = path
        self._guard = guard
        self._loop = asyncio.get_running_loop()
        self._ended = [self._loop.create_future() for _ in range(n)]
        self._gathered: list[Call] = []
        self._waiting: SimpleQueue[list[Call] | None] = SimpleQueue()
        self._threads = [
            Thread(target=self._drive, args=(ended,), name="wakeful-reader", daemon=True) for ended in self._ended
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, call: Call) -> None:
        """Operations of one pass of the loop are handed over together, because each hand-over wakes a thread."""
        self._gathered.append(call)
        if len(self._gathered) == 1:
            self._loop.call_soon(self._hand_over)

    def _hand_over(self) -> None:
        calls, self._gathered = self._gathered, []
        for first in range(0, len(calls), TOGETHER_MAX):
            self._waiting.put(calls[first : first + TOGETHER_MAX])

    async def close(self) -> None:
        self._hand_over()
        for _ in self._threads:
            self._waiting.put(None)
        await asyncio.shield(asyncio.gather(*self._ended))
        for thread in self._threads:
            thread.join()

    def _drive(self, ended: asyncio.Future[None]) -> None:
        opened: Opened | None = None
        while calls := self._gather():
            try:
                opened = self._current(opened)
                self._serve(opened, calls)
            except sqlite3.Error as error:
                self._post(answer, calls, [(None, unavailable(error))] * len(calls))
            except (OSError, DatabaseRefused) as error:
                self._post(answer, calls, [(None, StoreUnavailable(str(error)))] * len(calls))
            del calls
        if opened is not None:
            opened.close()
        self._post(ended.set_result, None)

    def _current(self, opened: Opened | None) -> Opened:
        """A connection to the file at the path: one to a file that was removed or replaced would read the old one."""
        if opened is not None and opened.is_in_place():
            return opened
        if opened is not None:
            self._guard.check_replaced()
        fresh = open_reader(self._path, self._guard)
        if opened is not None:
            opened.close()
        return fresh

    def _gather(self) -> list[Call]:
        """Wait for operations, and take others that wait already; empty at the end."""
        calls: list[Call] = []
        with suppress(Empty):
            while len(calls) < TOGETHER_MAX:
                handed = self._waiting.get_nowait() if calls else self._waiting.get()
                if handed is None:
                    if calls:
                        self._waiting.put(None)
                    break
                calls += handed
        return calls

    def _serve(self, opened: Opened, calls: Sequence[Call]) -> None:
        """Run the operations, and deliver the results of fast ones together, because each delivery wakes the loop."""
        fates: list[Fate] = []
        answered, since = 0, time.monotonic()
        for number, fate in enumerate(looks(opened, calls, within=READ_WITHIN_S), 1):
            fates.append(fate)
            if number == len(calls) or time.monotonic() - since > ANSWER_WITHIN_S:
                self._post(answer, calls[answered:number], fates)
                fates, answered, since = [], number, time.monotonic()

    def _post(self, callback: Callable[..., object], *args: object) -> None:
        with suppress(RuntimeError):  # the loop is closed, so there is no caller any more
            self._loop.call_soon_threadsafe(callback, *args)


class InlineReader:
    """Reads on the running loop, one per iteration."""

    def __init__(self, path: Path, guard: FileGuard) -> None:
        self._opened: Opened | None = open_reader(path, guard)

    def submit(self, call: Call) -> None:
        call.future.get_loop().call_soon(self._turn, call)

    async def close(self) -> None:
        self.die()

    def die(self) -> None:
        """Return no further results."""
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    def _turn(self, call: Call) -> None:
        if self._opened is not None:
            answer([call], list(looks(self._opened, [call], within=None)))


def end_when_late(opened: Opened, *, within: float) -> None:
    """End a read on this connection after this many seconds: a long read would keep the log from being truncated."""
    until = time.monotonic() + within
    opened.connection.set_progress_handler(lambda: time.monotonic() > until, READ_STEPS)


def looks(opened: Opened, calls: Sequence[Call], *, within: float | None) -> Iterator[Fate]:
    """Run operations on one consistent snapshot, which is not older than any of them. It ends with a rollback: there is
    nothing to commit."""
    try:
        for call in calls:
            if within is not None:
                end_when_late(opened, within=within)
            yield _look(opened, call)
    finally:
        _end_snapshot(opened)


def _look(opened: Opened, call: Call) -> Fate:
    try:
        if not opened.connection.in_transaction:
            opened.connection.execute("BEGIN")
        return call.operation(opened.tx), None
    except StopIteration as error:
        return None, RuntimeError(f"the operation raised StopIteration: {error}")  # a future cannot carry it
    except sqlite3.Error as error:
        _end_snapshot(opened)  # the next operation gets a new one
        return None, unavailable(error) if is_unavailable(error) else error
    except BaseException as error:
        return None, error


def _end_snapshot(opened: Opened) -> None:
    if opened.connection.in_transaction:
        opened.connection.execute("ROLLBACK")
