"""Reads: on separate connections, so that readers and the writer never wait for each other."""

import asyncio
import sqlite3
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Protocol

from wakeful.stores.sqlite.connection import READ_STEPS, READ_WITHIN_S, Opened, is_unavailable, open_reader, unavailable
from wakeful.stores.sqlite.group import Call, Fate, answer


class Reader(Protocol):
    """Takes read operations."""

    def submit(self, call: Call) -> None: ...

    async def close(self) -> None: ...


class ReaderThreads:
    """A few threads with one connection each, opened when first needed. Belongs to the loop it was created on."""

    def __init__(self, path: Path, n: int) -> None:
        self._path = path
        self._loop = asyncio.get_running_loop()
        self._ended = [self._loop.create_future() for _ in range(n)]
        self._waiting: SimpleQueue[Call | None] = SimpleQueue()
        self._threads = [
            Thread(target=self._drive, args=(ended,), name="wakeful-reader", daemon=True) for ended in self._ended
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, call: Call) -> None:
        self._waiting.put(call)

    async def close(self) -> None:
        for _ in self._threads:
            self._waiting.put(None)
        await asyncio.shield(asyncio.gather(*self._ended))
        for thread in self._threads:
            thread.join()

    def _drive(self, ended: asyncio.Future[None]) -> None:
        opened: Opened | None = None
        while (call := self._waiting.get()) is not None:
            try:
                opened = open_reader(self._path) if opened is None else opened
                end_when_late(opened, within=READ_WITHIN_S)
                fate = look(opened, call)
            except sqlite3.Error as error:
                fate = (None, unavailable(error))
            self._post(answer, [call], [fate])
            del call, fate
        if opened is not None:
            opened.connection.close()
        self._post(ended.set_result, None)

    def _post(self, callback: Callable[..., object], *args: object) -> None:
        with suppress(RuntimeError):  # the loop is closed, so there is no caller any more
            self._loop.call_soon_threadsafe(callback, *args)


class InlineReader:
    """Reads on the running loop, one per iteration."""

    def __init__(self, path: Path) -> None:
        self._opened: Opened | None = open_reader(path)

    def submit(self, call: Call) -> None:
        call.future.get_loop().call_soon(self._turn, call)

    async def close(self) -> None:
        self.die()

    def die(self) -> None:
        """Return no further results."""
        if self._opened is not None:
            self._opened.connection.close()
            self._opened = None

    def _turn(self, call: Call) -> None:
        if self._opened is not None:
            answer([call], [look(self._opened, call)])


def end_when_late(opened: Opened, *, within: float) -> None:
    """End a read on this connection after this many seconds: it would keep the log from being truncated."""
    until = time.monotonic() + within
    opened.connection.set_progress_handler(lambda: time.monotonic() > until, READ_STEPS)


def look(opened: Opened, call: Call) -> Fate:
    """Run the operation on one consistent snapshot. It ends with a rollback: there is nothing to commit."""
    try:
        opened.connection.execute("BEGIN")
        try:
            return call.operation(opened.tx), None
        finally:
            opened.connection.execute("ROLLBACK")
    except StopIteration as error:
        return None, RuntimeError(f"the operation raised StopIteration: {error}")  # a future cannot carry it
    except BaseException as error:
        if isinstance(error, sqlite3.Error) and is_unavailable(error):
            return None, unavailable(error)
        return None, error
