"""The write-ahead log on SQLite: who may keep it from being emptied, and for how long."""

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from wakeful.ports.meta import Meta
from wakeful.ports.store import StoreUnavailable, Tx
from wakeful.stores.sqlite import SqliteStore, connection, group, reader
from wakeful.stores.sqlite.database import SqliteDatabase

PATIENCE_S = 60.0
MOMENT_S = 0.02
WRITES_MAX = 400
ENDLESS = "WITH RECURSIVE n(i) AS (VALUES (0) UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"


def endless(tx: Tx) -> None:
    """A read that never ends by itself."""
    db = getattr(tx, "db", None)
    assert isinstance(db, SqliteDatabase)
    db.connection.execute(ENDLESS).fetchall()


async def test_a_read_that_takes_too_long_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It held a state of the database, and the log could not be emptied; the next read on its connection works."""
    monkeypatch.setattr(reader, "READ_WITHIN_S", 0.05)
    store = await SqliteStore.open(tmp_path / "wakeful.db")
    try:
        reading = [store.read(endless) for _ in range(8)]  # more than there are connections
        ended = await asyncio.wait_for(asyncio.gather(*reading, return_exceptions=True), PATIENCE_S)
        assert [type(one) for one in ended] == [StoreUnavailable] * 8
        assert "request less at a time" in str(ended[0])
        monkeypatch.setattr(reader, "READ_WITHIN_S", PATIENCE_S)
        assert await store.read(lambda tx: tx[Meta].value("nothing")) is None
        probe = sqlite3.connect(tmp_path / "wakeful.db")
        await store.write(lambda tx: tx[Meta].set("a", "b"))
        busy, _, _ = probe.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        probe.close()
        assert busy == 0, "somebody still holds an old state"
    finally:
        await store.close()


class Relay:
    """Two readers, of whom one always holds a state: each ends its own only when the other has begun the next, and
    something was written since, or a moment has passed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._turn = threading.Condition()
        self._begun = 0
        self._written = 0
        self._is_over = False
        self._threads = [threading.Thread(target=self._read, args=(number,), daemon=True) for number in range(2)]

    def written(self) -> None:
        """Something was written: what is held is an old state."""
        with self._turn:
            self._written += 1
            self._turn.notify_all()

    def __enter__(self) -> "Relay":
        for thread in self._threads:
            thread.start()
        with self._turn:
            assert self._turn.wait_for(lambda: self._begun > 1, PATIENCE_S)
        return self

    def __exit__(self, *_: object) -> None:
        with self._turn:
            self._is_over = True
            self._turn.notify_all()
        for thread in self._threads:
            thread.join(PATIENCE_S)

    def _read(self, number: int) -> None:
        mine = sqlite3.connect(self._path, isolation_level=None)
        with self._turn:
            while not self._is_over:
                self._wait(lambda: self._begun % 2 == number)
                mine.execute("BEGIN")
                mine.execute("SELECT count(*) FROM meta").fetchone()
                self._begun += 1
                begun, written = self._begun, self._written
                self._turn.notify_all()
                self._wait(partial(self._is_newer, written), MOMENT_S)
                self._wait(partial(self._is_followed, begun))
                mine.execute("ROLLBACK")
        mine.close()

    def _is_newer(self, written: int) -> bool:
        return self._written > written

    def _is_followed(self, begun: int) -> bool:
        return self._begun > begun

    def _wait(self, until: Callable[[], bool], within: float = PATIENCE_S) -> None:
        self._turn.wait_for(lambda: until() or self._is_over, within)


async def test_readers_that_take_turns_do_not_make_the_log_grow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is never a moment without a reader, so it would never be begun again from its start by itself."""
    monkeypatch.setattr(connection, "LOG_KEPT_BYTES", 256 * 1024)
    monkeypatch.setattr(connection, "CHECKPOINT_PAGES", 16)
    monkeypatch.setattr(group, "LOG_LOOKED_AT", 8)
    path = tmp_path / "wakeful.db"
    store = await SqliteStore.open(path)
    log = path.with_name("wakeful.db-wal")

    def beginning() -> bytes:
        with log.open("rb") as file:
            return file.read(32)  # changes when the log is begun again

    async def is_begun_again(relay: Relay) -> bool:
        before = beginning()
        for number in range(WRITES_MAX):
            text = f"{number} " * 2_000
            await store.write(lambda tx, text=text: tx[Meta].set("long", text))  # type: ignore[misc]
            relay.written()
            if beginning() != before:
                return True
        return False

    try:
        await store.write(lambda tx: tx[Meta].set("long", "so far"))
        with Relay(path) as relay:
            assert await is_begun_again(relay), f"{log.stat().st_size} bytes, and still growing"
    finally:
        await store.close()
