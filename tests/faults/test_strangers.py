"""Strangers beside a real daemon: what they send changes no outcome, and the owner gets in all the time."""

import http.client
import json
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from patience import PATIENCE

ATTACKER = Path(__file__).with_name("attacker.py")
BRIEF = 6.0
LONG = 60.0


class Daemon:
    """A daemon under limits of the system, asked over the socket in its home."""

    def __init__(self, home: Path, process: "subprocess.Popen[str]", port: int) -> None:
        self.home = home
        self.process = process
        self.port = port

    def ask(self, method: str, path: str, body: object = None) -> Any:
        connection = http.client.HTTPConnection("localhost")
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.settimeout(PATIENCE)
        connection.sock.connect(str(self.home / "wakeful.sock"))
        try:
            connection.request(method, path, None if body is None else json.dumps(body))
            answer = connection.getresponse()
            read = json.loads(answer.read() or b"null")
        finally:
            connection.close()
        assert answer.status < 400, read
        return read

    def runs(self, slug: str) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.ask("GET", f"/api/schedule/{slug}/runs?limit=1000")["runs"]
        return rows

    def finding(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = next(one for one in self.ask("GET", "/healthz")["findings"] if one["name"] == name)
        return found


@contextmanager
def limited(home: Path, *limits: str) -> Iterator[Daemon]:
    """A daemon that was started by a shell with these `ulimit`s."""
    words = " && ".join(f"ulimit {limit}" for limit in limits)
    line = f'{words} && exec "$@"'
    argv = ["/bin/sh", "-c", line, "sh", sys.executable, "-m", "wakeful.server.daemon", str(home), "--port", "0"]
    with (home.parent / "errors").open("wb") as errors:
        process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=errors, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert "listening on " in line, (home.parent / "errors").read_text()
        yield Daemon(home, process, int(line.rpartition(":")[2]))
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0, (home.parent / "errors").read_text()
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(PATIENCE)
        assert process.stdout is not None
        process.stdout.close()


def until(condition: Any) -> None:
    give_up_at = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < give_up_at, "it never came true"
        time.sleep(0.1)


SECONDLY = {"type": "cron", "expression": "* * * * * *"}


@pytest.mark.parametrize("seconds", [BRIEF, pytest.param(LONG, marks=pytest.mark.torture)], ids=["brief", "long"])
@pytest.mark.parametrize(("kind", "limit"), [("headers", "-v 1500000"), ("half-open", "-n 256"), ("guesses", "-n 256")])
def test_a_stranger_changes_no_outcome(tmp_path: Path, kind: str, limit: str, seconds: float) -> None:
    """38 MB of headers killed the daemon; 400 half-open connections closed the socket in the home, made a schedule
    that runs each second fail, and disabled it."""
    with limited(tmp_path / "home", limit) as daemon:
        tick = {"schedule": SECONDLY, "command": {"argv": ["true"]}, "maxConsecutiveErrors": 1}
        daemon.ask("PUT", "/api/schedule/tick", tick)
        until(lambda: any(run["outcome"] == "succeeded" for run in daemon.runs("tick")))
        attacker = subprocess.Popen([sys.executable, str(ATTACKER), kind, str(daemon.port), str(seconds)])
        try:
            asked = 0
            while attacker.poll() is None:
                daemon.ask("GET", "/api/schedule/tick")
                asked += 1
                time.sleep(0.2)
            assert attacker.returncode == 0
            assert asked > 5
        finally:
            attacker.kill()
            attacker.wait()
        rows = daemon.runs("tick")
        done = sum(row["outcome"] == "succeeded" for row in rows)
        until(lambda: sum(row["outcome"] == "succeeded" for row in daemon.runs("tick")) > done)
        rows = daemon.runs("tick")
        bad = [row for row in rows if row["outcome"] in ("failed", "timedOut", "unknown", "missed")]
        assert bad == []
        # A busy machine may need more than a second for one: that is no outcome of the attack.
        passed = [row["reason"] for row in rows if row["outcome"] == "skipped"]
        assert set(passed) <= {"blocked", "coalesced"}
        view = daemon.ask("GET", "/api/schedule/tick")
        assert (view["enabled"], view["consecutiveErrors"], view["health"]) == (True, 0, "ok")
        if kind != "guesses":
            assert daemon.finding("connections")["level"] == "warn"
    log = (tmp_path / "errors").read_text()
    assert "Traceback" not in log, log


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="limits of other processes cannot be set here")
def test_the_limit_of_descriptors_is_raised_for_the_daemon_alone(tmp_path: Path) -> None:
    """Its programs get the one that it was started with."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 1_000:
        pytest.skip("the hard limit is low here")
    with limited(tmp_path / "home", "-S -n 300") as daemon:
        daemon.ask(
            "PUT",
            "/api/schedule/limit",
            {"schedule": {"type": "manual"}, "command": {"argv": ["sh", "-c", "ulimit -S -n"]}},
        )
        daemon.ask("POST", "/api/schedule/limit/run")
        until(lambda: daemon.runs("limit")[0]["outcome"] == "succeeded")
        (run,) = daemon.runs("limit")
        assert daemon.ask("GET", f"/api/runs/{run['runId']}")["output"] == "300\n"
        pid = daemon.process.pid
        assert resource.prlimit(pid, resource.RLIMIT_NOFILE)[0] > 300


def test_programs_that_find_no_descriptor_wait_for_one(tmp_path: Path) -> None:
    """Thirty at once where ten have room: each runs once, on its first attempt."""
    with limited(tmp_path / "home", "-n 80") as daemon:
        slugs = [f"job-{n}" for n in range(30)]
        for slug in slugs:
            job = {"schedule": {"type": "manual"}, "command": {"argv": ["sleep", "2"]}, "maxConsecutiveErrors": 1}
            daemon.ask("PUT", f"/api/schedule/{slug}", job)
        for slug in slugs:
            daemon.ask("POST", f"/api/schedule/{slug}/run")
        waited = set()

        def are_done() -> bool:
            rows = daemon.ask("GET", "/api/runs?limit=100")["runs"]
            waited.update(row["slug"] for row in rows if row["reason"] == "resources")
            return sum(row["outcome"] == "succeeded" for row in rows) == len(slugs)

        until(are_done)
        rows = daemon.ask("GET", "/api/runs?limit=100")["runs"]
        assert len(rows) == len(slugs)
        assert {row["attempt"] for row in rows} == {1}
        assert waited, "this machine has room for all of them"
