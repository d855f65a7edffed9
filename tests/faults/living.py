"""A daemon that is killed and started again, and the outside that hears of it: two real processes."""

import json
import sqlite3
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import forking
from access import HEADERS
from edges.http.kit import Daemon, daemon
from patience import PATIENCE

OUTSIDE = Path(__file__).with_name("outside.py")


class Outside(NamedTuple):
    """Where the outside listens, and what it heard."""

    url: str
    file: Path

    def heard(self, method: str = "POST") -> list[dict[str, Any]]:
        lines = self.file.read_text().splitlines() if self.file.exists() else []
        return [one for one in map(json.loads, lines) if one["method"] == method]


@contextmanager
def outside(folder: Path) -> Iterator[Outside]:
    """A server as a process; ended when the test is over."""
    file = folder / "heard.jsonl"
    process = forking.start(OUTSIDE, file)
    try:
        assert process.stdout is not None
        yield Outside(f"http://127.0.0.1:{int(process.stdout.readline())}", file)
    finally:
        process.kill()
        process.communicate(timeout=PATIENCE)


class Home:
    """A home folder, and the daemons that live there one after another."""

    def __init__(self, folder: Path, settings: str) -> None:
        self.folder = folder
        folder.mkdir()
        (folder / "wakeful.toml").write_text(settings)
        self.running: Daemon | None = None

    @contextmanager
    def daemon(self) -> Iterator[Daemon]:
        """A daemon until the end of the block, and then kill -9."""
        with daemon(self.folder) as running:
            self.running = running
            yield running
            running.process.kill()
            running.process.wait(PATIENCE)

    def ask(self, method: str, path: str, body: object = None) -> Any:
        assert self.running is not None
        data = None if body is None else json.dumps(body).encode()
        headers = {**HEADERS, "Content-Type": "application/json"}
        request = urllib.request.Request(self.running.address + path, data=data, method=method, headers=headers)
        with urllib.request.urlopen(request, timeout=PATIENCE) as response:
            text = response.read()
        return json.loads(text) if text else None

    def query(self, sql: str) -> list[Any]:
        """Ask the database itself, whether a daemon runs or not."""
        with closing(sqlite3.connect(self.folder / "wakeful.db", timeout=PATIENCE)) as connection:
            return connection.execute(sql).fetchall()

    def log(self) -> list[dict[str, Any]]:
        """The lines of the log, oldest first."""
        files = sorted((self.folder / "logs").glob("*.jsonl"))
        return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def until(condition: Callable[[], object], *, within: float = PATIENCE, pause: float = 0.05) -> None:
    """Wait for a condition."""
    give_up_at = time.monotonic() + within
    while not condition():
        assert time.monotonic() < give_up_at, f"not within {within:g} s"
        time.sleep(pause)
