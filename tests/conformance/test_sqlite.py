"""The conformance suite on SQLite: with its threads, and inline as the simulation and the tests of features use it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from conformance.suite import *  # noqa: F403 - whatever a store must do, also what is added tomorrow
from conformance.suite import MANY, MakeStore, TestTheClock, TestTransactions
from new_store import prepare
from sampling import sampled
from wakeful.stores.sqlite import SqliteStore
from wakeful.stores.sqlite.rows import ROWS_TOGETHER


class Alternating:
    """Groups of one and of three in turn; nothing ever crashes."""

    def __init__(self) -> None:
        self._groups = 0

    def group_size(self, waiting: int) -> int:
        self._groups += 1
        return min(waiting, 1 + self._groups % 2 * 2)

    def before_commit(self) -> None: ...

    def after_commit(self) -> None: ...


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """`make test` runs all of it with threads, and inline what differs there: transactions and the clock."""
    if "make_store" in metafunc.fixturenames:
        is_different = metafunc.cls in (TestTransactions, TestTheClock)
        ways = ["threads", "inline", "inline, shared clock"]
        metafunc.parametrize("make_store", ways if is_different else sampled(ways, every=3), indirect=True)


@pytest.fixture
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


def test_the_suite_writes_as_many_rows_as_share_a_statement() -> None:
    """Otherwise it would only try statements for single rows."""
    assert MANY >= ROWS_TOGETHER
