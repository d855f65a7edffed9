"""The store in one SQLite file."""

import asyncio
import logging
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

from wakeful.ports.store import StoreUnavailable, Tx
from wakeful.stores.sqlite.clock_hold import ClockHold
from wakeful.stores.sqlite.connection import (
    LOG_LARGE_BYTES,
    Opened,
    Synchronous,
    connect,
    is_damage,
    set_up_writer,
    unavailable,
)
from wakeful.stores.sqlite.file_guard import FileGuard
from wakeful.stores.sqlite.files import RESTORE, WAYS_ON, check, create, faults_in, inspect, place
from wakeful.stores.sqlite.group import Call, GroupCommit
from wakeful.stores.sqlite.identity import Identity, IdentityFile, check_main_file, refuse_missing, settle_identity
from wakeful.stores.sqlite.log_check import has_lost_commits
from wakeful.stores.sqlite.migrate import DatabaseRefused, Migration, migrate, migrations
from wakeful.stores.sqlite.reader import InlineReader, Reader, ReaderThreads
from wakeful.stores.sqlite.writer import Hook, InlineWriter, Writer, WriterThread

T = TypeVar("T")

log = logging.getLogger("wakeful.store")

# Changes when another connection has written.
DATA_VERSION: Final = "PRAGMA data_version"

READERS = 2


class SqliteStore:
    """See `ports.store.Store`. Belongs to the event loop it was opened on."""

    def __init__(self, path: Path, writer: Writer, reader: Reader, clock: ClockHold | None, guard: FileGuard) -> None:
        self._path = path
        self._guard = guard
        self._writer = writer
        self._reader = reader
        self._clock = clock
        self._data_version: int | None = None
        self._is_closed = False

    @classmethod
    async def open(
        cls,
        path: str | os.PathLike[str],
        *,
        synchronous: Synchronous = "FULL",
        shared_clock: bool = False,
        readers: int = READERS,
    ) -> "SqliteStore":
        """Open the database, creating or migrating it first; raises `DatabaseRefused` on a file it must not touch."""
        where = place(path)
        opened = await asyncio.to_thread(_prepare, where, synchronous, migrations())
        guard = opened.guard
        writer = WriterThread(GroupCommit(opened, lambda: _reopen(where, synchronous, guard)))
        reader = ReaderThreads(where, readers, guard)
        return cls(where, writer, reader, None if shared_clock else ClockHold(where), guard)

    @classmethod
    def open_inline(
        cls,
        path: str | os.PathLike[str],
        *,
        hook: Hook,
        synchronous: Synchronous = "OFF",
        shared_clock: bool = True,
    ) -> "SqliteStore":
        """The same store without threads, for a simulation: the hook chooses the size of each group and may make it
        die."""
        where = place(path)
        opened = _prepare(where, synchronous, migrations())
        guard = opened.guard
        reader = InlineReader(where, guard)
        clock = None if shared_clock else ClockHold(where)

        def die() -> None:
            reader.die()
            if clock is not None:
                clock.release()

        steps = GroupCommit(opened, lambda: _reopen(where, synchronous, guard))
        return cls(where, InlineWriter(steps, hook, die), reader, clock, guard)

    async def write(self, operation: Callable[[Tx], T], *, is_urgent: bool = False) -> T:
        """Run a function in a transaction; returns after the commit. If the caller is cancelled, it may still be
        committed. Everything that waits is in the next commit, so nothing has to go ahead."""
        if self._is_closed:
            raise StoreUnavailable(f"{self._path} is closed")
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._writer.submit(Call(operation, future))
        return await future

    async def read(self, operation: Callable[[Tx], T], *, is_urgent: bool = False) -> T:
        """Run a function on a consistent snapshot, without changing anything."""
        if self._is_closed:
            raise StoreUnavailable(f"{self._path} is closed")
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._reader.submit(Call(operation, future))
        return await future

    async def hold_clock(self) -> bool:
        """Try to become the one process that ticks."""
        return self._clock is None or self._clock.hold()

    async def remember(self, mark: int) -> None:
        """Write the mark into the file beside the database, on the writer's thread: a disk may hang."""
        file, store_id = IdentityFile(self._path), self._guard.store_id
        assert store_id is not None  # noqa: S101 - it is settled when the store is opened
        try:
            await self.write(lambda _: file.write(Identity(store_id, mark)))
        except OSError as error:
            log.warning("%s cannot be written (%s); a database that went back would not be noticed", file.path, error)

    async def release_clock(self) -> None:
        """Let another process tick."""
        if self._clock is not None:
            self._clock.release()

    def clock_holder(self) -> str | None:
        """A description of the process that ticks; None if none does, or if several may."""
        return None if self._clock is None else self._clock.holder()

    @property
    def is_exclusive(self) -> bool:
        """True: while this process holds the clock, no other node is alive."""
        return self._clock is not None

    async def changed(self) -> bool:
        """Whether another process wrote since the last call.

        Read on the writing connection, because it is the only one that does not report our own writes.
        """
        try:
            ((version,),) = await self.write(lambda tx: tx.db.rows(DATA_VERSION))
        except StoreUnavailable:
            return True
        before, self._data_version = self._data_version, version
        return bool(version != before)

    async def check(self) -> list[str]:
        """Check the whole file; returns the errors found."""
        return await asyncio.to_thread(_check_whole, self._path)

    def trouble(self) -> str | None:
        """Reports a growing write-ahead log: while a program reads from an old snapshot, it cannot be truncated."""
        try:
            size = self._path.with_name(f"{self._path.name}-wal").stat().st_size
        except OSError:
            return None
        if size <= LOG_LARGE_BYTES:
            return None
        return (
            f"its write-ahead log has grown to {size // 1_048_576} MB, because a program (a backup, a shell) has been "
            "reading the database for a long time; it shrinks when that ends"
        )

    async def close(self) -> None:
        """Finish what was submitted, then close all connections. Calling it twice is harmless."""
        if self._is_closed:
            return
        self._is_closed = True
        await self._reader.close()
        await self._writer.close()
        if self._clock is not None:
            self._clock.release()


def _prepare(path: Path, synchronous: Synchronous, steps: list[Migration]) -> Opened:
    """The writing connection to a database that exists, is ours, is intact and is up to date."""
    try:
        if not path.exists():
            refuse_missing(path)
            create(path, steps)
        inspect(path)
        is_alone = ClockHold(path).holder() is None
        expected = IdentityFile(path).read()
        check_main_file(path, None if expected is None else expected.store_id)
        if is_alone and has_lost_commits(path):
            raise DatabaseRefused(f"{path}-wal is damaged: commits that it held are lost. {WAYS_ON}")
        connection = connect(path)
        try:
            check(connection, path)
            migrate(connection, path, steps)
            opened = set_up_writer(connection, path, synchronous)
            opened.guard.recognise(settle_identity(connection, path))
            return opened
        except BaseException:
            connection.close()
            raise
    except sqlite3.Error as error:
        raise _refusal(path, error) from error


def _refusal(path: Path, error: sqlite3.Error) -> Exception:
    if is_damage(error):
        return DatabaseRefused(f"{path} is damaged ({error}). {RESTORE}")
    return unavailable(error)


def _reopen(path: Path, synchronous: Synchronous, guard: FileGuard) -> Opened:
    """A new writing connection after the old one broke, or after the file was replaced."""
    try:
        inspect(path)
        guard.check_replaced()
        connection = connect(path)
        try:
            return set_up_writer(connection, path, synchronous, guard)
        except BaseException:
            connection.close()
            raise
    except (OSError, DatabaseRefused, StoreUnavailable) as error:
        raise sqlite3.OperationalError(str(error)) from error


def _check_whole(path: Path) -> list[str]:
    connection = connect(path)
    try:
        return faults_in(connection)
    finally:
        connection.close()
