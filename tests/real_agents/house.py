"""A daemon with one real agent, and the model server that the agent asks. Everything is a real process on loopback."""

import asyncio
import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from agents.model_server import ModelServer, model_server
from agents.real_programs import PROGRAMS, Program

WAKEFUL: Final = (sys.executable, "-m", "wakeful.cli.main")
WITHIN: Final = 600.0
"""Seconds until a test gives up: programs retry for minutes."""


@dataclass(frozen=True, slots=True)
class Said:
    """How a command of `wakeful` ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class House:
    """A home folder of Wakeful, with the user's own home folder around it."""

    def __init__(self, folder: Path, server: ModelServer) -> None:
        self.server = server
        self.user_home = folder
        self.home = folder / ".wakeful"
        self.project = folder / "project"
        self.env: dict[str, str] = {}
        self.program = ""  # the one that moved in last
        self.home.mkdir(mode=0o700, parents=True)
        self.project.mkdir()

    def move_in(self, program: Program, *, has_subscription: bool = False) -> None:
        """Make a program usable in this home, as its user would."""
        self.program = program.name
        self.env |= program.move_in(self.user_home, self.server.url, has_subscription=has_subscription)
        self.env["WAKEFUL_HOME"] = str(self.home)

    def wakeful(self, *words: str) -> Said:
        ended = subprocess.run(
            [*WAKEFUL, *words],
            env=self.env,
            capture_output=True,
            text=True,
            timeout=WITHIN,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        return Said(ended.returncode, ended.stdout, ended.stderr)

    @contextmanager
    def up(self) -> Iterator[None]:
        """The daemon, for as long as this lasts."""
        with (self.home / "up.log").open("w") as log:
            child = subprocess.Popen([*WAKEFUL, "up", "--port", "0"], env=self.env, stdout=log, stderr=log)
        try:
            until(lambda: self.wakeful("status", "-o", "json").code != 3 or child.poll() is not None)
            assert child.poll() is None, (self.home / "up.log").read_text()
            yield
        finally:
            child.send_signal(signal.SIGTERM)
            child.wait(WITHIN)

    def settings(self, text: str) -> None:
        (self.home / "wakeful.toml").write_text(text)

    def run(self, slug: str, prompt: str, *, is_new: bool = True) -> dict[str, Any]:
        """One manual turn of a schedule, to its end; what the server is asked belongs to a turn of its own."""
        if is_new:
            added = self.wakeful("add", slug, "--manual", "--prompt", prompt, "--timeout", "9m")
        else:
            added = self.wakeful("edit", slug, "--prompt", prompt)
        assert added.code == 0, added.err
        self.server.new_turn()
        said = self.wakeful("run", slug, "--wait", "-o", "json")
        assert said.out, said.err
        run: dict[str, Any] = said.json
        return run


@contextmanager
def serving(server: ModelServer | None = None) -> Iterator[ModelServer]:
    """The model server, in a thread of its own."""
    given = server
    made: list[ModelServer] = []
    ready, over = threading.Event(), threading.Event()

    async def serve() -> None:
        async with model_server(given) as server:
            made.append(server)
            ready.set()
            await asyncio.to_thread(over.wait)

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    try:
        assert ready.wait(60)
        yield made[0]
    finally:
        over.set()
        thread.join(60)


def installed(name: str) -> Program:
    """The program; the test is skipped by name where it is not installed."""
    program = PROGRAMS[name]
    if program.path is None:
        pytest.skip(f"{name} is not installed: run make test-agents, which needs Node")
    return program


def until(condition: Callable[[], object], *, within: float = WITHIN) -> None:
    """Wait for a condition."""
    give_up_at = time.monotonic() + within
    while not condition():
        assert time.monotonic() < give_up_at, "it never came true"
        time.sleep(0.1)
