"""Group commit on SQLite: its steps, who drives them, and where a process may die."""

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from new_store import prepare
from wakeful.ports.meta import Meta
from wakeful.ports.store import StoreUnavailable, Tx
from wakeful.stores.sqlite import Crashed, SqliteStore, group
from wakeful.stores.sqlite.connection import Opened, connect, set_up_writer
from wakeful.stores.sqlite.database import SqliteDatabase
from wakeful.stores.sqlite.group import Call, GroupCommit, Operation


def connection_of(tx: Tx) -> sqlite3.Connection:
    """The connection an operation runs on."""
    db = getattr(tx, "db", None)
    assert isinstance(db, SqliteDatabase)
    return db.connection


def setting(name: str, value: str = "set") -> Operation:
    """An operation that writes one fact and answers its name."""

    def operation(tx: Tx) -> str:
        tx[Meta].set(name, value)
        return name

    return operation


def failing(name: str) -> Operation:
    """An operation that writes one fact and then raises."""

    def operation(tx: Tx) -> None:
        tx[Meta].set(name, "set")
        raise LookupError(name)

    return operation


def filling(size: int) -> Operation:
    """An operation that writes a fact too large for the disk."""
    return setting("large", "x" * size)


class Steps:
    """Group commit on a file, driven by hand; what it executes is written down."""

    def __init__(self, path: Path) -> None:
        prepare(path)
        self.path = path
        self.executed: list[str] = []
        self.commit_steps = GroupCommit(self.open(), self.open)
        self._loop = asyncio.new_event_loop()

    def open(self) -> Opened:
        connection = connect(self.path)
        connection.set_trace_callback(self.executed.append)
        return set_up_writer(connection, self.path, "OFF")

    def calls(self, *operations: Operation) -> list[Call]:
        return [Call(operation, self._loop.create_future()) for operation in operations]

    def group(self, *operations: Operation) -> list[group.Fate]:
        self.executed.clear()
        self.commit_steps.apply(self.calls(*operations))
        return self.commit_steps.commit()

    def kept(self) -> set[str]:
        """The facts another connection sees."""
        connection = connect(self.path)
        try:
            return {name for (name,) in connection.execute("SELECT name FROM meta")}
        finally:
            connection.close()

    def close(self) -> None:
        self.commit_steps.close()
        self._loop.close()


@pytest.fixture
def steps(tmp_path: Path) -> Iterator[Steps]:
    """Group commit on a temporary file."""
    made = Steps(tmp_path / "wakeful.db")
    yield made
    made.close()


def counted(executed: list[str], word: str) -> int:
    """How often a statement was executed."""
    return sum(statement.startswith(word) for statement in executed)


def test_a_group_is_one_transaction_with_a_savepoint_for_each(steps: Steps) -> None:
    """Three operations cost one begin and one commit."""
    assert steps.group(setting("a"), setting("b"), setting("c")) == [("a", None), ("b", None), ("c", None)]
    assert counted(steps.executed, "BEGIN IMMEDIATE") == counted(steps.executed, "COMMIT") == 1
    assert counted(steps.executed, "SAVEPOINT") == counted(steps.executed, "RELEASE") == 3
    assert steps.kept() == {"a", "b", "c"}


def test_a_single_operation_needs_no_savepoint(steps: Steps) -> None:
    """It is the transaction; when it raises, the transaction is rolled back."""
    assert steps.group(setting("a")) == [("a", None)]
    assert counted(steps.executed, "SAVEPOINT") == 0
    ((value, error),) = steps.group(failing("b"))
    assert value is None
    assert isinstance(error, LookupError)
    assert steps.kept() == {"a"}


def test_nothing_is_kept_before_the_commit(steps: Steps) -> None:
    """Applied is not committed, and closing in between leaves nothing."""
    steps.commit_steps.apply(steps.calls(setting("a"), setting("b")))
    assert steps.kept() == set()
    steps.commit_steps.close()
    assert steps.kept() == set()


def test_what_raises_is_undone_alone(steps: Steps) -> None:
    """The others of its group are kept."""
    fates = steps.group(setting("a"), failing("b"), setting("c"))
    assert [error is None for _, error in fates] == [True, False, True]
    assert steps.kept() == {"a", "c"}


def test_a_full_disk_fails_the_whole_group_and_the_next_one_works(steps: Steps) -> None:
    """Nothing of the group is kept, everyone in it is told the cure, and room makes it work again."""

    def limit_pages(tx: Tx) -> None:
        connection = connection_of(tx)
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages + 2}")

    steps.group(limit_pages)
    for operations in ([setting("a"), filling(1_000_000), setting("b")], [filling(1_000_000)]):
        fates = steps.group(*operations)
        assert len(fates) == len(operations)
        for value, error in fates:
            assert value is None
            assert isinstance(error, StoreUnavailable)
            assert "full" in str(error)
    assert steps.kept() == set()
    assert steps.group(setting("a"), setting("b")) == [("a", None), ("b", None)]
    steps.group(lambda tx: connection_of(tx).execute("PRAGMA max_page_count = 100000").fetchall())
    assert steps.group(filling(1_000_000)) == [("large", None)]
    assert steps.kept() == {"a", "b", "large"}


def test_an_operation_cannot_hide_that_the_disk_was_full(steps: Steps) -> None:
    """One that swallows the error does not get its group committed without what was lost."""
    steps.group(lambda tx: connection_of(tx).execute("PRAGMA max_page_count = 1").fetchall())

    def hiding(tx: Tx) -> str:
        try:
            tx[Meta].set("large", "x" * 10_000_000)
        except sqlite3.OperationalError:
            connection_of(tx).execute("ROLLBACK")  # as SQLite does by itself when it runs out of room for the rollback
        return "all is well"

    for _, error in steps.group(setting("a"), hiding):
        assert isinstance(error, StoreUnavailable)
    assert steps.kept() == set()


def test_a_commit_that_fails_keeps_nothing_and_a_broken_connection_is_replaced(steps: Steps) -> None:
    """Everyone is told, and the next group finds a working connection."""
    steps.commit_steps.apply(steps.calls(setting("a"), setting("b")))
    opened = steps.commit_steps._opened
    assert opened is not None
    opened.connection.set_authorizer(lambda action, *_: 1 if action == sqlite3.SQLITE_TRANSACTION else 0)
    assert all(isinstance(error, StoreUnavailable) for _, error in steps.commit_steps.commit())
    assert steps.kept() == set()
    assert steps.group(setting("c")) == [("c", None)]
    assert steps.kept() == {"c"}


def test_a_file_that_is_removed_or_replaced_takes_no_writes(steps: Steps, tmp_path: Path) -> None:
    """Nobody is told that something was kept in a file that is gone; put back, it works again."""
    steps.group(setting("a"))
    away = tmp_path / "away.db"
    steps.commit_steps.close()
    steps.group(setting("b"))
    steps.path.rename(away)
    for _ in range(2):
        ((_, error),) = steps.group(setting("c"))
        assert isinstance(error, StoreUnavailable)
    away.rename(steps.path)
    assert steps.group(setting("d")) == [("d", None)]
    assert {"a", "d"} <= steps.kept()
    assert "c" not in steps.kept()


def test_a_database_locked_by_another_is_waited_for_within_a_bound(
    steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then the group is given up; when the other lets go it works."""
    monkeypatch.setattr(group, "BEGINS_MAX", 2)
    other = connect(steps.path)
    other.execute("BEGIN IMMEDIATE")
    for _, error in steps.group(setting("a"), setting("b")):
        assert isinstance(error, StoreUnavailable)
        assert "another process" in str(error)
    assert counted(steps.executed, "BEGIN IMMEDIATE") == 2
    other.execute("ROLLBACK")
    other.close()
    assert steps.group(setting("a")) == [("a", None)]


# -- the thread -------------------------------------------------------------------------------------------------------


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    """A store with its threads."""
    prepare(tmp_path / "wakeful.db")
    opened = await SqliteStore.open(tmp_path / "wakeful.db")
    yield opened
    await opened.close()


async def test_what_arrives_during_a_commit_shares_the_next_one(store: SqliteStore) -> None:
    """At most two hundred in a group: 450 that wait behind one are three commits."""
    executed: list[str] = []
    loop, has_begun, may_go_on = asyncio.get_running_loop(), asyncio.Event(), threading.Event()

    def first(tx: Tx) -> None:
        connection_of(tx).set_trace_callback(executed.append)
        loop.call_soon_threadsafe(has_begun.set)
        may_go_on.wait()

    waiting: list[asyncio.Task[Any]] = [asyncio.create_task(store.write(first))]
    await has_begun.wait()
    waiting += [asyncio.create_task(store.write(setting(f"k{n}"))) for n in range(450)]
    await asyncio.sleep(0)
    may_go_on.set()
    await asyncio.gather(*waiting)
    await store.write(lambda tx: connection_of(tx).set_trace_callback(None))
    assert counted(executed, "COMMIT") == 4
    assert counted(executed, "SAVEPOINT") == 450


async def test_a_read_keeps_its_moment_while_others_write(store: SqliteStore) -> None:
    """A write that commits while a read goes on is not seen by it, and does not wait for it."""
    await store.write(setting("x", "old"))
    is_written = threading.Event()
    seen: list[str | None] = []

    def look(tx: Tx) -> None:
        seen.append(tx[Meta].value("x"))
        loop.call_soon_threadsafe(has_looked.set)
        is_written.wait()
        seen.append(tx[Meta].value("x"))

    loop, has_looked = asyncio.get_running_loop(), asyncio.Event()
    reading = asyncio.create_task(store.read(look))
    await has_looked.wait()
    await store.write(setting("x", "new"))
    is_written.set()
    await reading
    assert seen == ["old", "old"]
    assert await store.read(lambda tx: tx[Meta].value("x")) == "new"


async def test_our_own_writes_are_no_news(store: SqliteStore, tmp_path: Path) -> None:
    """Only another process makes the store look again."""
    await store.changed()
    await store.write(setting("a"))
    assert not await store.changed()
    other = await SqliteStore.open(tmp_path / "wakeful.db")
    await other.write(setting("b"))
    await other.close()
    assert await store.changed()
    assert not await store.changed()


async def test_whatever_an_operation_raises_reaches_its_caller(store: SqliteStore) -> None:
    """Also what a future cannot carry, and the writer goes on."""

    def stop(_: Tx) -> None:
        raise StopIteration("enough")

    with pytest.raises(RuntimeError, match="StopIteration"):
        await store.write(stop)
    with pytest.raises(RuntimeError, match="StopIteration"):
        await store.read(stop)
    assert await store.write(setting("a")) == "a"


# -- a simulated death ------------------------------------------------------------------------------------------------


class Script:
    """A hook that follows a script: group sizes, and the commit at which the process dies."""

    def __init__(self, *sizes: int, dies: tuple[int, str] | None = None) -> None:
        self.sizes = list(sizes)
        self.seen: list[int] = []
        self._dies = dies

    def group_size(self, waiting: int) -> int:
        self.seen.append(waiting)
        return self.sizes.pop(0) if self.sizes else waiting

    def before_commit(self) -> None:
        if self._dies == (len(self.seen), "before"):
            raise Crashed

    def after_commit(self) -> None:
        if self._dies == (len(self.seen), "after"):
            raise Crashed


async def settle_down() -> None:
    """Let the loop take the turns it has."""
    for _ in range(20):
        await asyncio.sleep(0)


async def test_the_hook_sizes_the_groups(tmp_path: Path) -> None:
    """In order, one group for each turn of the loop; sizes that cannot be are brought within bounds."""
    script = Script(2, 0, 99)
    store = SqliteStore.open_inline(tmp_path / "wakeful.db", hook=script)
    assert await asyncio.gather(*(store.write(setting(f"k{n}")) for n in range(6))) == [f"k{n}" for n in range(6)]
    assert script.seen == [6, 4, 3]
    await store.close()


@pytest.mark.parametrize(("point", "kept"), [("before", {"k0", "k1"}), ("after", {"k0", "k1", "k2", "k3"})])
async def test_a_death_at_a_commit_answers_nobody(tmp_path: Path, point: str, kept: set[str]) -> None:
    """Before it the group is lost, after it the group is kept; either way no caller of it hears anything again."""
    script = Script(2, 2, 2, dies=(2, point))
    store = SqliteStore.open_inline(tmp_path / "wakeful.db", hook=script, shared_clock=False)
    assert await store.hold_clock()
    tasks: list[asyncio.Task[Any]] = [asyncio.create_task(store.write(setting(f"k{n}"))) for n in range(6)]
    await settle_down()
    assert [task.done() for task in tasks] == [True, True, False, False, False, False]
    tasks.append(asyncio.create_task(store.read(lambda tx: tx[Meta].value("k0"))))
    tasks.append(asyncio.create_task(store.write(setting("late"))))
    await settle_down()
    assert not any(task.done() for task in tasks[2:])
    after = SqliteStore.open_inline(tmp_path / "wakeful.db", hook=Script(), shared_clock=False)
    assert await after.hold_clock()  # the dead hold nothing
    found = await after.read(
        lambda tx: {name for name in ("k0", "k1", "k2", "k3", "k4", "late") if tx[Meta].value(name)}
    )
    assert found == kept
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    await after.close()
    await store.close()
