"""A hundred damaged or swapped stores: none is taken for empty, and none loses what was acknowledged without saying so.

Each is a store as a crash leaves it, with a log, and one thing done to its files or rows. It is verified as `wakeful
verify` does, then opened as at a start."""

import asyncio
import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from features.kit import Bot, World
from sampling import sampled
from wakeful import every
from wakeful.cli.verify import verify
from wakeful.ports.meta import Meta
from wakeful.ports.store import StoreUnavailable, Tx
from wakeful.stores.sqlite import DatabaseRefused, SqliteStore
from wakeful.stores.sqlite.identity import FOUND_OLDER
from wakeful.testing.virtual_loop import run

PAGE: Final = 4096
FRAME: Final = PAGE + 24
FILES: Final = ("wakeful.db", "wakeful.db-wal", "wakeful.db.id")


class Content(NamedTuple):
    """What a store has: the slugs, and the rows of the ledger with their outcomes."""

    slugs: frozenset[str]
    rows: frozenset[tuple[int, str]]
    is_older: bool = False  # it says that it is older than it was

    def lacks(self, known: "Content") -> bool:
        return not (self.slugs >= known.slugs and self.rows >= known.rows)


class Scene(NamedTuple):
    """A store, an older copy of it, another store, and what the first one has."""

    now: Path
    older: Path
    other: Path
    known: Content


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    """Thirty schedules over a day and a half, and copies of the files while they are in use."""
    folder = tmp_path_factory.mktemp("stores")
    folders = [folder / name for name in ("now", "older", "other", "used", "used-elsewhere")]
    for one in folders:
        one.mkdir()
    now, older, other, used, elsewhere = folders

    async def story(where: Path, prefix: str, copies: list[tuple[str, Path]]) -> None:
        world = World(where)
        app = await world.open(Bot(world))
        for number in range(30):
            await app.add(f"{prefix}-{number}", every("1h"), lane=f"lane-{number % 3}")
        for lasting, copy in copies:
            await world.sleep(lasting)
            if copy is not now:  # what follows is only in the log
                _checkpoint(where)
            _copy(where, copy)
        await world.close()

    run(story(used, "ours", [("10h", older), ("26h", now)]))
    run(story(elsewhere, "theirs", [("3h", other)]))
    whole = folder / "whole"
    whole.mkdir()
    _copy(now, whole)
    known = asyncio.run(_opened(whole))
    assert known is not None and len(known.slugs) == 30 and len(known.rows) == 30 * 36
    return Scene(now, older, other, known)


def _copy(source: Path, target: Path, files: tuple[str, ...] = FILES) -> None:
    for name in files:
        if (source / name).exists():
            shutil.copyfile(source / name, target / name)


async def _opened(home: Path) -> Content | None:
    """What a start finds; None: it is refused."""
    try:
        store = await SqliteStore.open(home / "wakeful.db")
    except (DatabaseRefused, StoreUnavailable):
        return None
    try:
        return await store.read(_content)
    except StoreUnavailable:
        return None
    finally:
        await store.close()


def _content(tx: Tx) -> Content:
    slugs = frozenset(schedule.slug for schedule in tx.schedules.page(after=None, limit=1_000))
    rows = frozenset((row.run_id, row.outcome) for row in tx.runs.page(limit=10_000))
    return Content(slugs, rows, tx[Meta].value(FOUND_OLDER) is not None)


# --- what is done to them ---------------------------------------------------------------------------------------------


def zeroed_page(home: Path, scene: Scene, rng: random.Random) -> None:
    """A page of the database is empty, as after a sector was lost."""
    _checkpoint(home)
    _overwrite(home / "wakeful.db", PAGE, PAGE, rng, bytes(PAGE))


def page_of_garbage(home: Path, scene: Scene, rng: random.Random) -> None:
    """A page of the database is that of another file."""
    _checkpoint(home)
    _overwrite(home / "wakeful.db", PAGE, PAGE, rng, rng.randbytes(PAGE))


def cut(home: Path, scene: Scene, rng: random.Random) -> None:
    """The end of the database is missing, at a page or in the middle of one."""
    _checkpoint(home)
    file = home / "wakeful.db"
    at = rng.randrange(1, file.stat().st_size)
    _cut(file, at if rng.random() < 0.5 else at // PAGE * PAGE)


def damaged_log(home: Path, scene: Scene, rng: random.Random) -> None:
    """A frame of the log is damaged, and commits follow it."""
    log = home / "wakeful.db-wal"
    frame = rng.randrange(log.stat().st_size // FRAME // 2)
    _write_at(log, 32 + frame * FRAME + rng.randrange(FRAME - 64), rng.randbytes(64))


def log_without_header(home: Path, scene: Scene, rng: random.Random) -> None:
    """Something was written over the log, from its beginning."""
    _write_at(home / "wakeful.db-wal", 0, rng.randbytes(rng.randrange(32, 3 * FRAME)))


def no_log(home: Path, scene: Scene, rng: random.Random) -> None:
    """Only the database was copied, or the log was removed."""
    (home / "wakeful.db-wal").unlink()


def older(home: Path, scene: Scene, rng: random.Random) -> None:
    """An older copy was put back by hand, with or without its log."""
    (home / "wakeful.db-wal").unlink()
    _copy(scene.older, home, FILES[: rng.choice((1, 2))])


def swapped(home: Path, scene: Scene, rng: random.Random) -> None:
    """The database of another store lies there, beside its own log, ours or none."""
    kept = rng.randrange(3)
    if kept == 2:
        (home / "wakeful.db-wal").unlink()
    _copy(scene.other, home, FILES[: 2 if kept else 1])


def gone(home: Path, scene: Scene, rng: random.Random) -> None:
    """The database is missing, empty, or something else."""
    file, what = home / "wakeful.db", rng.randrange(4)
    file.unlink()
    if what:
        file.write_bytes((b"", bytes(8 * PAGE), rng.randbytes(8 * PAGE))[what - 1])
    if rng.random() < 0.5:
        (home / "wakeful.db-wal").unlink()


def _checkpoint(home: Path) -> None:
    with closing(sqlite3.connect(home / "wakeful.db")) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()


def _overwrite(file: Path, unit: int, length: int, rng: random.Random, content: bytes) -> None:
    _write_at(file, rng.randrange(file.stat().st_size // unit) * unit, content[:length])


def _write_at(file: Path, at: int, content: bytes) -> None:
    with file.open("r+b") as opened:
        opened.seek(at)
        opened.write(content)


def _cut(file: Path, size: int) -> None:
    with file.open("r+b") as opened:
        opened.truncate(size)


Deed = Callable[[Path, Scene, random.Random], None]
DEEDS: Final[tuple[Deed, ...]] = (
    zeroed_page, page_of_garbage, cut, damaged_log, log_without_header, no_log, older, swapped, gone,
)  # fmt: skip
CASES: Final = [(deed, seed) for seed in range(10) for deed in DEEDS]


@pytest.mark.parametrize(("deed", "seed"), sampled(CASES, every=4), ids=lambda value: getattr(value, "__name__", None))
def test_what_was_lost_is_said(scene: Scene, tmp_path: Path, deed: Deed, seed: int) -> None:
    """What is verified as intact is complete; what starts is complete, or says that it is older."""
    _copy(scene.now, tmp_path)
    deed(tmp_path, scene, random.Random(f"{deed.__name__} {seed}"))
    faults = verify(tmp_path / "wakeful.db", tmp_path)["faults"]
    found = asyncio.run(_opened(tmp_path))
    is_ours = found is None or bool(found.slugs & scene.known.slugs)
    assert is_ours, "it was taken for empty, or for another one"
    is_whole = found is not None and not found.lacks(scene.known)
    assert faults or is_whole, "something is missing, and it was verified as intact"
    is_said = found is None or found.is_older or is_whole
    assert is_said, f"it started without what is missing: {faults}"


TAMPERED: Final = (
    ("ledger", "DELETE FROM runs WHERE run_id = 300"),
    ("ledger", "DELETE FROM runs WHERE run_id IN (SELECT last_row_id FROM cadences LIMIT 3)"),
    ("ledger", "UPDATE runs SET planned_at = planned_at + 60000 WHERE run_id = 500"),
    ("ledger", "UPDATE cadences SET planned_through = planned_through + 7200000 WHERE schedule_id = 7"),
    ("references", "UPDATE cadences SET open_run_id = 3 WHERE schedule_id = 5"),
    ("references", "DELETE FROM cadences WHERE schedule_id = 9"),
    ("references", "DELETE FROM alarms WHERE kind = 'schedule' AND ref = 11"),
    ("references", "INSERT INTO lanes (lane, holder) VALUES ('lane-1', 200)"),
    ("references", "UPDATE runs SET outcome = 'running' WHERE run_id = 600"),
    ("references", "UPDATE schedules SET definition = substr(definition, 1, 40) WHERE schedule_id = 4"),
)


@pytest.mark.parametrize(("check", "sql"), TAMPERED)
def test_rows_that_were_changed_are_found(scene: Scene, tmp_path: Path, check: str, sql: str) -> None:
    """With the `sqlite3` shell, or by a bug."""
    _copy(scene.now, tmp_path)
    with closing(sqlite3.connect(tmp_path / "wakeful.db")) as connection, connection:
        assert connection.execute(sql).rowcount > 0
    assert check in {fault["check"] for fault in verify(tmp_path / "wakeful.db", tmp_path)["faults"]}


def test_an_undamaged_one_is_intact(scene: Scene, tmp_path: Path) -> None:
    """And verifying it changes none of its files."""
    _copy(scene.now, tmp_path)
    before = {name: (tmp_path / name).read_bytes() for name in FILES}
    verified = verify(tmp_path / "wakeful.db", tmp_path)
    assert verified["faults"] == []
    assert (verified["schedules"], verified["instants"]) == (30, 30 * 36)
    assert {name: (tmp_path / name).read_bytes() for name in FILES} == before
