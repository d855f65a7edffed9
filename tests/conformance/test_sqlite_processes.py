"""The SQLite store among processes: who holds the clock, and what a kill -9 leaves."""

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from patience import PATIENCE
from wakeful.ports.meta import Meta
from wakeful.stores.sqlite import SqliteStore

HOLDER = """
import asyncio, sys
from wakeful.stores.sqlite import SqliteStore

async def main():
    store = await SqliteStore.open(sys.argv[1])
    print(await store.hold_clock(), flush=True)
    sys.stdin.readline()
    await store.close()

asyncio.run(main())
"""

WRITER = """
import asyncio, sys
from wakeful.ports.meta import Meta
from wakeful.stores.sqlite import SqliteStore

async def main():
    store = await SqliteStore.open(sys.argv[1])

    async def caller(name):
        n = 0
        while True:
            n += 1
            await store.write(lambda tx: tx[Meta].set(name, str(n)))
            print(name, n, flush=True)

    await asyncio.gather(*(caller(f"caller-{i}") for i in range(8)))

asyncio.run(main())
"""


def start(script: str, path: Path) -> subprocess.Popen[str]:
    """Another process on the same file."""
    return subprocess.Popen(
        [sys.executable, "-c", script, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def next_line(process: subprocess.Popen[str]) -> str:
    """What it says next."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


def end(process: subprocess.Popen[str]) -> None:
    """Kill it, and take what it left."""
    process.kill()
    process.communicate()


async def test_the_clock_is_released_by_death(tmp_path: Path) -> None:
    """While another process holds it, it can be said who; killed, it holds nothing."""
    path = tmp_path / "wakeful.db"
    store = await SqliteStore.open(path)
    assert store.clock_holder() is None
    other = start(HOLDER, path)
    assert next_line(other) == "True"
    assert not await store.hold_clock()
    holder = store.clock_holder()
    assert holder is not None
    assert holder.startswith(f"process {other.pid} on ")
    other.send_signal(signal.SIGKILL)
    other.communicate()
    assert store.clock_holder() is None
    assert await store.hold_clock()
    third = start(HOLDER, path)
    assert next_line(third) == "False"
    end(third)
    await store.close()


async def test_the_clock_is_not_inherited(tmp_path: Path) -> None:
    """A program that was started while the clock was held does not keep it when the store is closed."""
    path = tmp_path / "wakeful.db"
    store = await SqliteStore.open(path)
    assert await store.hold_clock()
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, text=True, close_fds=False)
    await store.close()
    again = await SqliteStore.open(path)
    assert await again.hold_clock()
    await again.close()
    end(child)


async def test_a_holder_that_says_nothing_is_still_a_holder(tmp_path: Path) -> None:
    """Killed between taking the lock and writing its name, or of another release: the lock is what counts."""
    path = tmp_path / "wakeful.db"
    one, two = await SqliteStore.open(path), await SqliteStore.open(path)
    assert await one.hold_clock()
    (tmp_path / "wakeful.db.clock").write_text("")
    holder = two.clock_holder()
    assert holder is not None
    assert "an unidentified process" in holder
    await one.close()
    await two.close()


async def test_what_a_killed_process_was_told_is_there(tmp_path: Path) -> None:
    """Commit before you acknowledge (L7): kill -9 in the midst of writing loses nothing that was answered."""
    path = tmp_path / "wakeful.db"
    for _ in range(3):
        process = start(WRITER, path)
        told = dict(next_line(process).split() for _ in range(200))
        process.send_signal(signal.SIGKILL)
        assert process.stdout is not None
        for line in process.stdout.read().splitlines():
            name, _, number = line.partition(" ")
            told[name] = number or told[name]  # the last line may be cut
        process.communicate()
        store = await SqliteStore.open(path)
        for name, number in told.items():
            kept = await store.read(lambda tx, name=name: tx[Meta].value(name))
            assert kept is not None
            assert int(kept) >= int(number)
        assert await store.check() == []
        await store.close()


async def test_processes_write_side_by_side(tmp_path: Path) -> None:
    """One that writes without pause does not keep the other out."""
    path = tmp_path / "wakeful.db"
    store = await SqliteStore.open(path)
    other = start(WRITER, path)
    next_line(other)
    async with asyncio.timeout(PATIENCE):
        for n in range(20):
            await store.write(lambda tx, n=n: tx[Meta].set("ours", str(n)))
    assert await store.changed()
    assert other.poll() is None
    end(other)
    assert await store.read(lambda tx: tx[Meta].value("ours")) == "19"
    await store.close()


@pytest.mark.parametrize("is_inline", [False, True])
async def test_two_stores_in_one_process_exclude_each_other(tmp_path: Path, is_inline: bool) -> None:
    """The lock belongs to the store and not to the process."""
    path = tmp_path / "wakeful.db"
    one = await SqliteStore.open(path)
    if is_inline:
        two = SqliteStore.open_inline(path, hook=_Plain(), shared_clock=False)
    else:
        two = await SqliteStore.open(path)
    assert await one.hold_clock()
    assert not await two.hold_clock()
    await one.close()
    assert await two.hold_clock()
    await two.close()


class _Plain:
    def group_size(self, waiting: int) -> int:
        return waiting

    def before_commit(self) -> None: ...

    def after_commit(self) -> None: ...
