"""The command line as a process and inside this one, over a daemon that really runs."""

import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tzlocal
from click.testing import CliRunner

import forking
from access import write_token
from patience import PATIENCE
from wakeful.cli import times
from wakeful.cli.main import root

PROGRAM = "wakeful.cli.main"
ZONE = "Europe/Berlin"
WITHIN = PATIENCE


@dataclass(frozen=True, slots=True)
class Said:
    """How a command ended, and what it said."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Cli:
    """`wakeful --home HOME`, for a person in Berlin with a terminal of 80 columns."""

    def __init__(self, home: Path) -> None:
        self.home = home

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "WAKEFUL_TOKEN")}
        return {**kept, "TZ": ZONE, "COLUMNS": "80", "WAKEFUL_HOME": str(self.home)}

    def run(self, *arguments: str, feed: str | None = None, **environment: str) -> Said:
        """As a process of its own, as users do; warnings are errors."""
        return Said(*forking.run(PROGRAM, *arguments, feed=feed, environment={**self.environment, **environment}))

    def ask(self, *arguments: str, feed: str | None = None, **environment: str) -> Said:
        """Inside this process: the same commands, ten times as fast."""
        given = {**self.environment, **environment}
        with _in_zone(given["TZ"]):
            ended = CliRunner().invoke(root, list(arguments), input=feed, env=given)
        if ended.exception is not None and not isinstance(ended.exception, SystemExit):
            raise ended.exception
        return Said(ended.exit_code, ended.stdout, ended.stderr)

    def start(self, *arguments: str, stdout: int = subprocess.PIPE, **environment: str) -> forking.Process:
        """A process that goes on."""
        return forking.start(PROGRAM, *arguments, environment={**self.environment, **environment}, stdout=stdout)

    @staticmethod
    def until(condition: Callable[[], object]) -> None:
        """Wait for a condition."""
        give_up_at = time.monotonic() + WITHIN
        while not condition():
            assert time.monotonic() < give_up_at, "it never came true"
            time.sleep(0.15)

    def on_terminal(self, *arguments: str, columns: int = 80, typed: str = "") -> str:
        """What a terminal of that width gets, with this typed ahead."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        environment = {name: value for name, value in self.environment.items() if name != "COLUMNS"}
        child = forking.start(
            PROGRAM,
            *arguments,
            environment={**environment, "TERM": "xterm"},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
        )
        os.close(theirs)
        os.write(ours, typed.encode())
        received = b"".join(_received(ours))
        os.close(ours)
        child.wait(WITHIN)
        return received.decode().replace("\r\n", "\n")


@contextmanager
def _in_zone(zone: str) -> Iterator[None]:
    """This process in a zone: the C library, tzlocal and the command line each remember theirs."""
    before = os.environ.get("TZ")
    try:
        _move_to(zone)
        yield
    finally:
        _move_to(before)


def _move_to(zone: str | None) -> None:
    os.environ.pop("TZ", None)
    if zone is not None:
        os.environ["TZ"] = zone
    time.tzset()
    tzlocal.reload_localzone()
    times.user_zone.cache_clear()


def _received(terminal: int) -> Iterator[bytes]:
    while select.select([terminal], [], [], WITHIN)[0]:
        try:
            piece = os.read(terminal, 65_536)
        except OSError:  # the other end is closed: it has ended
            return
        if not piece:
            return
        yield piece


@contextmanager
def daemon(home: Path, *options: str, environ: Mapping[str, str] | None = None) -> Iterator[Cli]:
    """A daemon of that home on a free port, ended by its process id."""
    write_token(home)
    cli = Cli(home)
    environment = {**cli.environment, **(environ or {})}
    child = forking.start(PROGRAM, "up", "--port", "0", "-o", "json", *options, environment=environment)
    try:
        assert child.stdout is not None and child.stderr is not None
        told = child.stdout.readline()
        assert told, child.stderr.read()
        assert json.loads(told)["running"] is True
        yield cli
    finally:
        child.send_signal(signal.SIGTERM)
        child.communicate(timeout=WITHIN)
    assert child.returncode == 0


@contextmanager
def holding(home: Path, address: str | None) -> Iterator[Cli]:
    """A home that is held by this process, with whatever answers at the address."""
    home.mkdir(parents=True, exist_ok=True)
    file = os.open(home / "wakeful.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        told = {"pid": os.getpid(), "host": "here", "address": address, "startedAt": "2026-01-30T09:00:00.000Z"}
        os.pwrite(file, json.dumps(told).encode(), 0)
        yield Cli(home)
    finally:
        os.close(file)
