"""The run's PostgreSQL server, in a process of the peers' environment; see `bench.peers.postgres_server`."""

import json
import subprocess
from pathlib import Path
from typing import Final

from bench.process import ROOT, command, surroundings

STOP_WITHIN: Final = 30


class NoPostgres(Exception):
    """There is no server; the message says why."""


class Postgres:
    """Creates databases until it is closed."""

    def __init__(self, folder: Path) -> None:
        argv = command("peers", "peers.postgres_server", "--folder", str(folder))
        self._process = subprocess.Popen(  # noqa: S603 - our own module, with arguments made here
            argv, cwd=ROOT, env=surroundings(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.version = self._ask("version")

    def new_database(self) -> str:
        """The address of an empty database."""
        if self._process.stdin is not None:
            self._process.stdin.write("\n")
            self._process.stdin.flush()
        return self._ask("url")

    def close(self) -> None:
        """Drop the databases and stop the server."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(STOP_WITHIN)
        except subprocess.TimeoutExpired:
            self._process.terminate()
            self._process.wait(STOP_WITHIN)

    def _ask(self, field: str) -> str:
        line = self._process.stdout.readline() if self._process.stdout is not None else ""
        if not line:
            raise NoPostgres(f"the PostgreSQL server ended with {self._process.wait(STOP_WITHIN)}")
        return str(json.loads(line)[field])
