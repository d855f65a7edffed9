"""Commits that are held back: all of it is written, nothing of it is visible, and its caller waits."""

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from patience import PATIENCE
from postgres.server import Server, server
from wakeful.drill.held import before_commit
from wakeful.ports.meta import Meta
from wakeful.ports.store import Tx
from wakeful.stores.postgres.store import PostgresStore
from wakeful.stores.sqlite.store import SqliteStore

__all__ = ["server"]


@pytest.fixture
async def file(tmp_path: Path) -> AsyncIterator[Any]:
    store = await SqliteStore.open(tmp_path / "wakeful.db")
    yield store
    await store.close()


@pytest.fixture
async def schema(server: Server) -> AsyncIterator[Any]:
    with server.schema() as url:
        store = await PostgresStore.open(url)
        yield store
        await store.close()


@pytest.fixture(params=["file", "schema"])
def store(request: pytest.FixtureRequest) -> Any:
    return request.getfixturevalue(request.param)


async def test_a_held_commit_is_neither_visible_nor_acknowledged(store: Any) -> None:
    """The moment between the last statement and the commit, seen from another connection."""
    held, go_on = threading.Event(), threading.Event()

    def hold() -> None:
        held.set()
        assert go_on.wait(PATIENCE)

    def write(tx: Tx) -> str:
        tx[Meta].set("held", "yes")
        before_commit(tx, hold)
        return "written"

    writing = asyncio.create_task(store.write(write))
    assert await asyncio.to_thread(held.wait, PATIENCE)
    assert await store.read(lambda tx: tx[Meta].value("held")) is None
    assert not writing.done()
    go_on.set()
    assert await writing == "written"
    assert await store.read(lambda tx: tx[Meta].value("held")) == "yes"
    go_on.clear()
    await store.write(lambda tx: tx[Meta].set("held", "no"))  # only that one was held


async def test_what_is_rolled_back_is_not_held(store: Any) -> None:
    """The transaction that was to be held ended without a commit; the next one on its connection is another."""
    seen: list[str] = []

    def fail(tx: Tx) -> None:
        before_commit(tx, lambda: seen.append("committed"))
        raise ZeroDivisionError

    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            await store.write(fail)
        await store.write(lambda tx: tx[Meta].set("other", "yes"))
    assert seen == []
