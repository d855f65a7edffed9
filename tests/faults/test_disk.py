"""The disk under the embedded store: full, locked by another, damaged, and dead between two syncs (L7, L9)."""

import random
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from faults.kit import Field, steady
from patience import PATIENCE
from sampling import sampled
from wakeful.app import bootstrap

HOLD = """
import sqlite3, sys, time
database = sqlite3.connect(sys.argv[1], isolation_level=None)
database.execute("BEGIN IMMEDIATE")
print("held", flush=True)
time.sleep(float(sys.argv[2]))
database.execute("ROLLBACK")
"""


def test_a_full_disk_stops_nothing_for_good(field: Field) -> None:
    """While nothing can be written nothing is said to have happened; when there is room again, it goes on."""
    field.put(steady(6))
    size = sum(file.stat().st_size for file in field.folder.glob("wakeful.db"))
    node = field.start(file_max=size + 200_000)
    field.until(lambda: "the store is unavailable" in field.errors() or "cannot write to the store" in field.errors())
    assert node.poll() is None
    stuck_at = field.closed()
    (field.folder / "roomy").touch()
    field.until_closed(stuck_at + 12)
    field.stop(node)
    verdict = field.audit()
    assert verdict.is_clean, verdict.in_words()


@pytest.mark.parametrize("seconds", [8.0, pytest.param(30.0, marks=pytest.mark.torture)])
def test_a_database_locked_by_another_process(field: Field, seconds: float) -> None:
    """Somebody has it open in a shell and forgot to end the transaction: late, and complete."""
    field.put(steady(6, every=1_000))
    node = field.start()
    field.until_closed(6)
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(field.folder / "wakeful.db"), str(seconds)], stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    before = field.closed()
    assert holder.wait(timeout=seconds + PATIENCE) == 0
    holder.stdout.close()
    assert node.poll() is None
    field.until_closed(before + 12)
    field.stop(node)
    verdict = field.audit()
    assert verdict.is_clean, verdict.in_words()


@pytest.mark.parametrize("harm", ["truncated", "flipped"])
def test_a_damaged_file_is_refused_and_not_touched(field: Field, harm: str) -> None:
    """The node does not start, says why, and leaves the file as it found it: somebody may still read it."""
    field.put(steady(50))
    path = field.folder / "wakeful.db"
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    content = bytearray(path.read_bytes())
    if harm == "truncated":
        del content[len(content) // 2 :]
    else:
        for place in range(4_096 + 100, len(content), 4_096):
            content[place] ^= 0xFF
    path.write_bytes(content)
    node = field.start(is_ready=False)
    assert node.wait(timeout=PATIENCE) not in (0, None)
    assert "DatabaseRefused" in field.errors() or "damaged" in field.errors()
    assert path.read_bytes() == content


WRITER = """
import asyncio, os, sys
from wakeful import Wakeful, every

async def main():
    app = Wakeful(sys.argv[1], tick=False)
    async with app:
        for number in range(40):
            await app.add(f"s{number}", every("1h"), command=["true"])
            print(number, os.stat(sys.argv[1] + "-wal").st_size, flush=True)
        os.kill(os.getpid(), 9)

asyncio.run(main())
"""


@pytest.mark.parametrize("seed", sampled(range(6), every=3))
def test_power_loss_takes_nothing_that_was_answered(tmp_path: Path, seed: int) -> None:
    """Writes after the last sync are dropped, torn or garbage; whatever was answered before is there. They belong to
    one transaction, because each is synced before the next begins; damage before that is refused."""
    path = tmp_path / "wakeful.db"
    writer = subprocess.run(
        [sys.executable, "-c", WRITER, str(path)], capture_output=True, text=True, timeout=120, check=False
    )
    acked = [tuple(map(int, line.split())) for line in writer.stdout.splitlines()]
    assert len(acked) == 40, writer.stderr
    dice = random.Random(seed)
    place = dice.randrange(5, 39)
    (number, size), (_, end) = acked[place], acked[place + 1]
    log = path.with_name("wakeful.db-wal")
    written = log.read_bytes()
    # All up to the answered commit was synced. Of the next one, a part reached the disk, and not all of it whole.
    lost = bytearray(written[: dice.randrange(size, end + 1)])
    for _ in range(dice.randrange(4)):
        if len(lost) > size:
            lost[dice.randrange(size, len(lost))] ^= 0xFF
    log.write_bytes(lost)
    path.with_name("wakeful.db-shm").unlink(missing_ok=True)
    field = Field(str(path), tmp_path)
    slugs = {row.slug for row in field.look(lambda tx: tx.schedules.page(after=None, limit=100))}
    assert {f"s{n}" for n in range(number + 1)} <= slugs
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)


async def test_every_commit_is_synced(tmp_path: Path) -> None:
    """What the test above takes for granted: the writer's connection asks for a sync with each commit."""
    opened = await bootstrap.open_store(str(tmp_path / "wakeful.db"))
    try:
        said = await opened.store.write(lambda tx: [_pragma(tx, name) for name in ("synchronous", "journal_mode")])
    finally:
        await opened.store.close()
    assert said == [2, "wal"]


def _pragma(tx: Any, name: str) -> object:
    (value,) = tx.db.connection.execute(f"PRAGMA {name}").fetchone()
    return value
