"""The conformance suite on SQLite: with its threads, and inline as the simulation uses it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from conformance.suite import *  # noqa: F403 - whatever a store must do, also what is added tomorrow
from conformance.suite import MakeStore
from new_store import prepare
from wakeful.stores.sqlite import SqliteStore


class Alternating:
    """Groups of one and of three in turn; nothing ever crashes."""

    def __init__(self) -> None:
        self._groups = 0

    def group_size(self, waiting: int) -> int:
        self._groups += 1
        return min(waiting, 1 + self._groups % 2 * 2)

    def before_commit(self) -> None: ...

    def after_commit(self) -> None: ...


@pytest.fixture(params=["threads", "inline", "inline, shared clock"])
async def make_store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[MakeStore]:
    """Stores on one file in a temporary folder."""
    opened: list[SqliteStore] = []

    async def make() -> SqliteStore:
        path = tmp_path / "wakeful.db"
        prepare(path)
        if request.param == "threads":
            store = await SqliteStore.open(path)
        else:
            is_shared = request.param == "inline, shared clock"
            store = SqliteStore.open_inline(path, hook=Alternating(), shared_clock=is_shared)
        opened.append(store)
        return store

    yield make
    for store in opened:
        await store.close()
