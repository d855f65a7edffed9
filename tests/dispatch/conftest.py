"""A Redis server and Celery workers of a test's own, as real processes."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from patience import PATIENCE

pytest.importorskip("celery")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _is_listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def wait_for(question: Callable[[], object], within: float = PATIENCE) -> None:
    """Wait for something to become true."""
    until = time.monotonic() + within
    while not question():
        assert time.monotonic() < until, "it did not become true"
        time.sleep(0.05)


class Redis:
    """A Redis server that can be stopped and started again."""

    def __init__(self, folder: Path) -> None:
        self.port = _free_port()
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        options = ["--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--dir", str(self._folder)]
        self._process = subprocess.Popen(["redis-server", *options], stdout=subprocess.DEVNULL)
        wait_for(lambda: _is_listening(self.port))

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


class Workers:
    """Celery workers, each with its own process group."""

    def __init__(self, redis: Redis, folder: Path) -> None:
        self.log = folder / "effects"
        self.log.touch()
        self._redis = redis
        self._folder = folder
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str, concurrency: int = 2, pool: str = "prefork") -> None:
        """Start a worker, and wait until it is ready."""
        said = self._folder / f"{name}.log"
        env = {**os.environ, "FLEET_BROKER": self._redis.url, "FLEET_LOG": str(self.log)}
        env["PYTHONPATH"] = str(Path(__file__).parent)
        options = [
            f"--concurrency={concurrency}",
            f"--pool={pool}",
            f"--hostname={name}@test",
            "--without-gossip",
            "--without-mingle",
        ]
        argv = [sys.executable, "-m", "celery", "-A", "fleet_tasks", "worker", "--loglevel=INFO", *options]
        with said.open("wb") as file:
            self._processes[name] = subprocess.Popen(
                argv, env=env, stdout=file, stderr=file, cwd=self._folder, start_new_session=True
            )
        wait_for(lambda: "ready." in said.read_text(errors="replace"), 2 * PATIENCE)

    def kill(self, name: str) -> None:
        """Kill a worker with all its processes, as a power cut does."""
        process = self._processes.pop(name)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def lines(self, word: str) -> list[list[str]]:
        """What tasks wrote: word, key, attempt, task id."""
        lines = [line.split() for line in self.log.read_text().splitlines()]
        return [line for line in lines if line[0] == word]

    def stop(self) -> None:
        for name in list(self._processes):
            self.kill(name)


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[Redis]:
    """A server that runs."""
    if shutil.which("redis-server") is None:
        pytest.skip("redis-server is not installed")
    server = Redis(tmp_path)
    server.start()
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture
def workers(redis: Redis, tmp_path: Path) -> Iterator[Workers]:
    """No worker yet."""
    fleet = Workers(redis, tmp_path)
    try:
        yield fleet
    finally:
        fleet.stop()
