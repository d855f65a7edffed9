"""Real processes on a real clock: starting them, watching what they leave, ending them by their id."""

import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import forking
from patience import PATIENCE

T = TypeVar("T")

PROGRAMS = Path(__file__).parent / "programs"
STEP = 0.02


def eventually(condition: Callable[[], T], *, within: float = PATIENCE) -> T:
    """Poll until the condition holds, and answer what it answered; give up after `within` seconds."""
    give_up_at = time.monotonic() + within
    while not (answer := condition()):
        if time.monotonic() > give_up_at:
            raise AssertionError(f"not within {within:g} s: {condition}")
        time.sleep(STEP)
    return answer


class Nursery:
    """The processes a test starts; whatever is left of them is ended with the test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._started: list[forking.Process] = []
        self._killed: list[forking.Process] = []

    def start(self, program: str, *arguments: object) -> forking.Process:
        """Start one of the programs, warnings being errors."""
        child = forking.start(PROGRAMS / program, *arguments, folder=self.folder)
        self._started.append(child)
        return child

    def run(self, program: str, *arguments: object, within: float = PATIENCE) -> str:
        """Start one with an interpreter of its own, and wait for its good end; returns what it printed."""
        child = forking.start_cold(PROGRAMS / program, *arguments, folder=self.folder)
        self._started.append(child)
        out, err = child.communicate(timeout=within)
        assert child.returncode == 0, err
        assert err == ""
        return out

    def eventually(self, condition: Callable[[], T], *, within: float = PATIENCE) -> T:
        """Poll until the condition holds, or one of the programs ends before its time."""
        return eventually(lambda: self._check() or condition(), within=within)

    def kill(self, child: forking.Process) -> None:
        """kill -9, and wait until it is gone."""
        self._killed.append(child)
        child.send_signal(signal.SIGKILL)
        child.wait(timeout=PATIENCE)

    def _check(self) -> None:
        for child in self._started:
            if child.poll() is not None and child not in self._killed:
                raise AssertionError(f"{child.args} ended with {child.returncode}: {child.communicate()[1]}")

    def close(self) -> None:
        for child in self._started:
            if child.poll() is None:
                child.kill()
            child.communicate(timeout=PATIENCE)


@contextmanager
def nursery(folder: Path) -> Iterator[Nursery]:
    started = Nursery(folder)
    try:
        yield started
    finally:
        started.close()


def ask(database: Path, sql: str, *values: Any) -> list[Any]:
    """A question to the database, from outside; no rows while it is not there yet."""
    if not database.exists():
        return []
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True, timeout=PATIENCE)) as connection:
        try:
            return connection.execute(sql, values).fetchall()
        except sqlite3.OperationalError:
            return []


def count(database: Path, where: str = "1") -> int:
    """How many rows of the ledger."""
    rows = ask(database, f"SELECT count(*) FROM runs WHERE {where}")
    return int(rows[0][0]) if rows else 0


def lines(file: Path) -> list[list[str]]:
    """What handlers left, a list of words a line."""
    return [line.split() for line in file.read_text().splitlines()] if file.exists() else []


def is_alive(pid: int) -> bool:
    """Whether the process runs; one that only waits to be reaped does not."""
    shown = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return bool(shown.stdout.strip()) and not shown.stdout.strip().startswith("Z")
