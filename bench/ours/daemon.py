"""A daemon on a scratch home, as a process of its own, and what it used of the processor."""

import json
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from bench.cpu import seconds_of

START_WITHIN: Final = 60.0
STOP_WITHIN: Final = 30.0
SETTINGS: Final = """
[limits]
every_min = "1s"
"""


class Daemon:
    """`python -m wakeful.server.daemon`, listening on a free port of loopback."""

    def __init__(self, store: str, settings: str = SETTINGS) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="wakeful-bench-home-")
        self.home = Path(self._folder.name) / "home"
        self.home.mkdir(mode=0o700)
        (self.home / "wakeful.toml").write_text(settings, encoding="utf-8")
        self._errors = (self.home.parent / "stderr").open("w+", encoding="utf-8")
        self._process = subprocess.Popen(  # noqa: S603 - our own module, with arguments made here
            [
                sys.executable,
                "-W",
                "ignore",
                "-m",
                "wakeful.server.daemon",
                str(self.home),
                "--port",
                "0",
                "--store",
                store if "://" in store else f"sqlite:///{store}",
            ],
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )
        line = self._process.stdout.readline() if self._process.stdout is not None else ""
        if "http://" not in line:
            self._errors.seek(0)
            raise RuntimeError(f"the daemon did not start: {self._errors.read()[-300:]}")
        host, _, port = line.strip().rpartition("http://")[2].rstrip("/").partition(":")
        self.host, self.port = host, int(port)
        self.token = (self.home / "token").read_text(encoding="utf-8").strip()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(STOP_WITHIN)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._errors.close()
        self._folder.cleanup()

    def cpu(self) -> float:
        """Seconds of processor time that it has used, or 0 where the system does not say."""
        return seconds_of(self._process.pid)

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """One request; the JSON of the response."""
        request = urllib.request.Request(
            f"http://{self.host}:{self.port}{path}",
            None if body is None else json.dumps(body).encode(),
            {"Authorization": f"Bearer {self.token}"},
            method=method,
        )
        with urllib.request.urlopen(request, timeout=START_WITHIN) as response:  # noqa: S310
            text = response.read()
            return json.loads(text or b"null") if "json" in response.headers.get("content-type", "") else text

    def timed(self, path: str, repeats: int) -> float:
        """The median time of a GET, in seconds."""
        samples = []
        for _ in range(repeats):
            began = time.perf_counter()
            self.ask("GET", path)
            samples.append(time.perf_counter() - began)
        return sorted(samples)[len(samples) // 2]
