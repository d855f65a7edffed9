"""The real OpenClaw writes its store, and says when its jobs run next: our reader sees the same jobs and times.

It needs Node 24 and 300 MB, so `make test-agents` does not install it; otherwise this is skipped by name. To install it
with a Node of its own, in `.agents/openclaw`:

    npm install node@24
    PATH="$PWD/node_modules/.bin:$PATH" npm install openclaw@2026.9.6
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from agents.real_programs import FOLDER, plain_environment
from moving.kit import read
from real_agents.house import WITHIN, until

pytestmark = [pytest.mark.agents, pytest.mark.timeout(1800)]

TOKEN: Final = "a-long-random-secret"
JOBS: Final[dict[str, tuple[str, ...]]] = {
    "nightly": ("--cron", "30 3 * * *", "--tz", "Europe/Berlin", "--exact", "--command", "echo hi"),
    "odd": ("--cron", "20 2 * * *", "--tz", "Australia/Lord_Howe", "--exact", "--command", "echo odd"),
    "often": ("--every", "90m", "--session", "isolated", "--message", "Look at the inbox"),
    "once": ("--at", "2029-03-28T01:30:00Z", "--session", "main", "--system-event", "Check"),
}


def openclaw() -> list[str]:
    """The program; the test is skipped where it is not installed, or cannot be started."""
    modules = FOLDER / "openclaw" / "node_modules"
    script, node = modules / "openclaw" / "openclaw.mjs", modules / ".bin" / "node"
    own = [str(node) if node.exists() else "node", str(script)]
    found = own if script.exists() else [shutil.which("openclaw") or ""]
    if not found[-1]:
        pytest.skip("openclaw is not installed in .agents/openclaw; it needs Node 24")
    if subprocess.run([*found, "--version"], capture_output=True, check=False).returncode != 0:
        pytest.skip("openclaw cannot be started with this version of Node")
    return found


def free_port() -> int:
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        return int(door.getsockname()[1])


@contextmanager
def gateway(program: list[str], home: Path, port: int) -> Iterator[dict[str, str]]:
    """Its server, with a home of its own and no way out of this machine."""
    env = {**plain_environment(home), "HTTPS_PROXY": "http://127.0.0.1:9", "NO_PROXY": "127.0.0.1,localhost"}
    options = ("--allow-unconfigured", "--bind", "loopback", "--auth", "token", "--token", TOKEN, "--port", str(port))
    with (home / "gateway.log").open("w") as log:
        child = subprocess.Popen([*program, "gateway", "run", *options], env=env, stdout=log, stderr=log)
    try:
        until(lambda: _is_open(port) or child.poll() is not None)
        assert child.poll() is None, (home / "gateway.log").read_text()
        yield env
    finally:
        child.send_signal(signal.SIGTERM)
        child.wait(120)


def _is_open(port: int) -> bool:
    with socket.socket() as door:
        return door.connect_ex(("127.0.0.1", port)) == 0


class Cron:
    """Its commands for jobs. On a busy machine a command can give up although the gateway did what it was told, so
    what counts is what the gateway lists."""

    def __init__(self, program: list[str], env: dict[str, str], port: int) -> None:
        self._program = program
        self._env = env
        self._reach = ("--url", f"ws://127.0.0.1:{port}", "--token", TOKEN, "--timeout", "300000")

    def add(self, name: str, *options: str) -> None:
        """Add a job, and try again if the gateway did not hear it."""
        give_up_at = time.monotonic() + WITHIN
        while True:
            ended = self._run("add", "--name", name, *options)
            if ended.returncode == 0 or name in self.jobs():
                return
            assert time.monotonic() < give_up_at, ended.stdout + ended.stderr

    def jobs(self) -> dict[str, Any]:
        """All jobs by name."""
        give_up_at = time.monotonic() + WITHIN
        while True:
            ended = self._run("list", "--all", "--json")
            if ended.returncode == 0:
                return {job["name"]: job for job in json.loads(ended.stdout)["jobs"]}
            assert time.monotonic() < give_up_at, ended.stdout + ended.stderr

    def _run(self, *words: str) -> subprocess.CompletedProcess[str]:
        verb, *rest = words
        argv = [*self._program, "cron", verb, *self._reach, *rest]
        return subprocess.run(argv, env=self._env, capture_output=True, text=True, check=False)


def test_its_own_jobs_and_next_times(tmp_path: Path) -> None:
    """Every kind of schedule it has; what it made for itself is skipped."""
    program, port = openclaw(), free_port()
    with gateway(program, tmp_path, port) as env:
        cron = Cron(program, env, port)
        for name, options in JOBS.items():
            cron.add(name, *options)
        told = {name: job for name, job in cron.jobs().items() if name in JOBS}
        now = time.time_ns() // 1_000_000
        entries = read("openclaw", tmp_path / ".openclaw", now=now, zone="UTC", environ=dict(os.environ))
    taken = {entry.name: entry for entry in entries if entry.refused is None}
    assert set(taken) == set(JOBS), [entry.source for entry in entries]
    for name, job in told.items():
        times = taken[name].times
        assert times is not None and list(times(now, 1)) == [job["state"]["nextRunAtMs"]], name
        assert taken[name].ref == job["id"]
    assert taken["nightly"].action == {"command": {"argv": ["sh", "-lc", "echo hi"]}}
    assert taken["often"].action["prompt"] == "Look at the inbox"
    assert taken["once"].action == {"event": {"text": "Check"}}
    assert all(entry.is_skipped for entry in entries if entry.refused is not None)
