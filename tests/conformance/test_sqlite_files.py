"""The SQLite file: made whole, looked at before it is trusted, migrated after a copy was made."""

import os
import signal
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from conformance.rows import a_schedule
from wakeful.ports.meta import Meta
from wakeful.ports.store import Tx
from wakeful.stores.sqlite import DatabaseRefused, SqliteStore, files
from wakeful.stores.sqlite import store as sqlite_store
from wakeful.stores.sqlite.connection import connect
from wakeful.stores.sqlite.migrate import Migration, migrate, migrations, version_of


@pytest.fixture
async def path(tmp_path: Path) -> Path:
    """A closed database of several pages."""
    where = tmp_path / "wakeful.db"
    store = await SqliteStore.open(where)

    def fill(tx: Tx) -> None:
        tx[Meta].set("x", "kept")
        tx.schedules.add_many([a_schedule(f"s{n:04}", definition="d" * 200) for n in range(200)])

    await store.write(fill)
    await store.close()
    return where


async def test_a_new_database_is_for_its_owner_only(tmp_path: Path) -> None:
    """Mode 0600, for what lies beside it too, whatever the umask; and no half-made file is left."""
    where = tmp_path / "wakeful.db"
    before = os.umask(0)
    try:
        store = await SqliteStore.open(where)
        await store.hold_clock()
        await store.write(lambda tx: tx[Meta].set("a", "b"))
        names = {file.name: stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}
    finally:
        os.umask(before)
    await store.close()
    assert set(names) == {"wakeful.db", "wakeful.db-wal", "wakeful.db-shm", "wakeful.db.clock", "wakeful.db.id"}
    assert set(names.values()) == {0o600}


@pytest.mark.parametrize("text", [":memory:", "", "file::memory:", "file:x.db?mode=memory"])
async def test_a_store_that_forgets_is_refused(text: str) -> None:
    """There is no in-memory store."""
    with pytest.raises(DatabaseRefused, match="the store needs a file on disk"):
        await SqliteStore.open(text)


async def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    """Nothing is made along the way."""
    with pytest.raises(DatabaseRefused, match="does not exist"):
        await SqliteStore.open(tmp_path / "no" / "wakeful.db")
    with pytest.raises(DatabaseRefused, match="is not a file"):
        await SqliteStore.open(tmp_path)
    assert list(tmp_path.iterdir()) == []


async def refused(path: Path, match: str) -> None:
    """Opening it is refused, and not a byte of it changes."""
    before = path.read_bytes()
    with pytest.raises(DatabaseRefused, match=match):
        await SqliteStore.open(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("size", [0, 50, 100, 4_095, 4_096, 10_000, -1])
async def test_a_file_cut_short_is_refused(path: Path, size: int) -> None:
    """Wherever it was cut, also to nothing: an empty file is never taken for a new store."""
    content = path.read_bytes()
    path.write_bytes(content[:size])
    await refused(path, "empty" if size == 0 else "damaged")


async def test_a_damaged_page_is_refused(path: Path) -> None:
    """Whichever page it is."""
    content = path.read_bytes()
    assert len(content) > 10 * 4_096
    for page in range(len(content) // 4_096):
        start = page * 4_096 + (100 if page == 0 else 0)
        path.write_bytes(
            content[:start] + bytes(byte ^ 0xFF for byte in content[start : start + 8]) + content[start + 8 :]
        )
        await refused(path, "damaged")
    path.write_bytes(content)
    store = await SqliteStore.open(path)
    assert await store.check() == []
    await store.close()


async def test_a_large_file_is_checked_where_a_loss_would_be_misread(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its facts, counters, nodes and lanes at every start; all of it when asked."""
    monkeypatch.setattr(files, "CHECKED_WHOLE_BYTES", 0)
    content = path.read_bytes()
    roots = sqlite3.connect(path)
    root = dict(roots.execute("SELECT name, rootpage FROM sqlite_schema WHERE type = 'table'"))
    roots.close()

    def damage(table: str) -> None:
        start = (root[table] - 1) * 4_096
        path.write_bytes(content[:start] + b"\xff" * 8 + content[start + 8 :])

    for table in ("meta", "counters", "nodes", "lanes"):
        damage(table)
        await refused(path, "damaged")
    damage("attempts")
    store = await SqliteStore.open(path)
    assert await store.check() != []
    await store.close()


async def test_what_is_not_ours_is_refused(tmp_path: Path) -> None:
    """A text, a picture of zeros, somebody else's database, an empty database of nobody."""
    (tmp_path / "notes.txt").write_text("buy milk\n" * 100)
    await refused(tmp_path / "notes.txt", "not a database")
    (tmp_path / "zeros").write_bytes(bytes(8_192))
    await refused(tmp_path / "zeros", "not a database")
    for name, script in (("theirs.db", "CREATE TABLE t (x); PRAGMA application_id = 7"), ("nobody.db", "VACUUM")):
        connection = sqlite3.connect(tmp_path / name)
        connection.executescript(script)
        connection.close()
        await refused(tmp_path / name, "another application")


async def test_two_that_make_it_at_once_share_one(tmp_path: Path) -> None:
    """The second finds the first one's database, and nothing is left of its own."""
    where = tmp_path / "wakeful.db"
    files.create(where, migrations())
    first = where.read_bytes()
    files.create(where, migrations())
    assert where.read_bytes() == first
    assert [file.name for file in tmp_path.iterdir()] == ["wakeful.db"]


# -- migrations -------------------------------------------------------------------------------------------------------

NEWEST = migrations()[-1].number
SECOND = Migration(
    NEWEST + 1,
    "CREATE TABLE second (x TEXT) STRICT;\n-- a remark; with a semicolon\nINSERT INTO second VALUES (';');\n",
)
THIRD = Migration(NEWEST + 2, "ALTER TABLE second ADD COLUMN y TEXT;\n")


def tables(path: Path) -> set[str]:
    """The names of its tables."""
    connection = sqlite3.connect(path)
    try:
        return {name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    finally:
        connection.close()


def test_migrations_are_numbered_without_a_gap() -> None:
    """The files in the package are the steps, in order."""
    steps = migrations()
    assert [step.number for step in steps] == list(range(1, len(steps) + 1))


def test_a_database_is_copied_before_it_is_migrated(path: Path) -> None:
    """One copy, as it was, for its owner only; then every missing step, and the data is still there."""
    connection = connect(path)
    migrate(connection, path, [*migrations(), SECOND, THIRD])
    assert version_of(connection) == NEWEST + 2
    assert connection.execute("SELECT x, y FROM second").fetchall() == [(";", None)]
    assert connection.execute("SELECT value FROM meta WHERE name <> 'store_id'").fetchall() == [("kept",)]
    connection.close()
    copies = [file for file in path.parent.iterdir() if "before" in file.name]
    assert [copy.name for copy in copies] == [f"wakeful.db.before-{NEWEST + 1}"]
    assert stat.S_IMODE(copies[0].stat().st_mode) == 0o600
    assert "second" not in tables(copies[0])
    copy = connect(copies[0])
    assert version_of(copy) == NEWEST
    assert copy.execute("SELECT value FROM meta WHERE name <> 'store_id'").fetchall() == [("kept",)]
    assert copy.execute("SELECT count(*) FROM schedules").fetchall() == [(200,)]
    copy.close()


def test_what_is_in_the_log_is_in_the_copy(path: Path) -> None:
    """The copy is of the database and not of its main file."""
    writer = connect(path)
    writer.execute("PRAGMA journal_mode = WAL")
    writer.execute("INSERT INTO meta VALUES ('logged', 'yes')")
    connection = connect(path)
    migrate(connection, path, [*migrations(), SECOND])
    connection.close()
    writer.close()
    copy = connect(path.with_name(f"wakeful.db.before-{NEWEST + 1}"))
    assert copy.execute("SELECT value FROM meta WHERE name = 'logged'").fetchall() == [("yes",)]
    copy.close()


def test_nothing_is_copied_when_nothing_is_migrated(path: Path) -> None:
    """Neither a new database nor one that is up to date leaves a copy."""
    connection = connect(path)
    migrate(connection, path, migrations())
    connection.close()
    assert {file.name for file in path.parent.iterdir()} == {"wakeful.db", "wakeful.db.id"}


def test_a_step_that_fails_changes_nothing(path: Path) -> None:
    """Steps before it stay, its own statements are undone, and it can be tried again."""
    broken = Migration(NEWEST + 2, "CREATE TABLE half (x TEXT) STRICT;\nINSERT INTO nowhere VALUES (1);\n")
    connection = connect(path)
    with pytest.raises(sqlite3.OperationalError):
        migrate(connection, path, [*migrations(), SECOND, broken])
    assert version_of(connection) == NEWEST + 1
    migrate(connection, path, [*migrations(), SECOND, THIRD])
    assert version_of(connection) == NEWEST + 2
    connection.close()
    assert "half" not in tables(path)


KILLED = """
import os, signal, sys
from pathlib import Path
from wakeful.stores.sqlite.connection import connect
from wakeful.stores.sqlite.migrate import Migration, migrate, migrations
path = Path(sys.argv[1])
connection = connect(path)
connection.create_function("die", 0, lambda: os.kill(os.getpid(), signal.SIGKILL))
number = migrations()[-1].number + 1
step = Migration(number, "CREATE TABLE half (x TEXT) STRICT;\\nDELETE FROM meta;\\nINSERT INTO half VALUES (die());\\n")
migrate(connection, path, [*migrations(), step])
"""


async def test_a_process_killed_half_way_leaves_the_database_as_it_was(path: Path) -> None:
    """The next one opens it and finds everything."""
    died = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    assert died.returncode == -signal.SIGKILL
    store = await SqliteStore.open(path)
    assert await store.read(lambda tx: tx[Meta].value("x")) == "kept"
    await store.close()
    assert "half" not in tables(path)


def test_a_step_another_process_has_taken_is_not_taken_again(path: Path) -> None:
    """Two that start at once migrate once: the version is read again under the lock."""
    steps = [*migrations(), SECOND]
    late = connect(path)
    first = connect(path)
    taken_meanwhile = [False]

    def first_is_faster(statement: str) -> None:
        if statement.startswith("BEGIN") and not taken_meanwhile[0]:
            taken_meanwhile[0] = True
            migrate(first, path, steps)

    late.set_trace_callback(first_is_faster)
    migrate(late, path, steps)
    assert late.execute("SELECT count(*) FROM second").fetchall() == [(1,)]
    first.close()
    late.close()


@pytest.mark.parametrize(("ahead", "is_accepted"), [(0, True), (1, True), (2, False), (9, False)])
async def test_one_schema_ahead_is_accepted_and_two_are_not(path: Path, ahead: int, is_accepted: bool) -> None:
    """Release N runs on schema N+1; from further ahead it is refused, untouched, with what to do."""
    version = migrations()[-1].number + ahead
    connection = connect(path)
    connection.execute(f"PRAGMA user_version = {version}")
    connection.close()
    if is_accepted:
        store = await SqliteStore.open(path)
        assert await store.read(lambda tx: tx[Meta].value("x")) == "kept"
        await store.close()
    else:
        await refused(path, f"has schema {version}")


async def test_a_log_that_cannot_be_emptied_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody reads an old state and the write-ahead log grows: it is said, and when the reader ends it is emptied."""
    monkeypatch.setattr(sqlite_store, "LOG_LARGE_BYTES", 1_000_000)
    store = await SqliteStore.open(tmp_path / "wakeful.db")
    try:
        with closing(sqlite3.connect(tmp_path / "wakeful.db")) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM meta").fetchone()
            for n in range(400):
                await store.write(lambda tx, n=n: tx[Meta].set(f"n{n}", "x" * 3_000))  # type: ignore[misc]
            assert "write-ahead log has grown" in (store.trouble() or "")
        await store.write(lambda tx: tx[Meta].set("last", "1"))
        with closing(sqlite3.connect(tmp_path / "wakeful.db")) as other:
            assert other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
        assert store.trouble() is None
    finally:
        await store.close()
