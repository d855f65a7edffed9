"""A daemon of either release as a real process, driven over REST."""

import json
import os
import re
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

import forking

WITHIN = 120.0
"""Seconds until a wait is given up: only something broken takes so long."""
_ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+(?=[\s/])")


class Daemon:
    """A daemon on a home folder; `wakeful` is the command of the old release, and empty for this one."""

    def __init__(self, wakeful: Sequence[str], home: Path, store: str) -> None:
        self._wakeful = wakeful
        self._arguments = ["up", "--port", "0", "--home", str(home), "--store", store]
        self._token = home / "token"
        self._log = home / "up.log"
        self._child: forking.Process | None = None
        self._address = ""

    def start(self) -> None:
        with self._log.open("wb") as log:
            self._child = self._begin(log, os.environ | {"TZ": "UTC"})
        child = self._child
        until(lambda: _ADDRESS.search(self.said()) or child.poll() is not None)
        found = _ADDRESS.search(self.said())
        assert child.poll() is None and found is not None, self.said()
        self._address = found[0]
        until(lambda: self.get("/readyz") is not None)

    def _begin(self, log: IO[bytes], environment: Mapping[str, str]) -> forking.Process:
        if not self._wakeful:
            return forking.start("wakeful.cli.main", *self._arguments, environment=environment, stdout=log, stderr=log)
        argv = [*self._wakeful, *self._arguments]
        return subprocess.Popen(argv, stdout=log, stderr=log, env=environment, text=True)

    def kill(self) -> None:
        """As a power failure ends it; nothing happens if it does not run."""
        if self._child is not None and self._child.poll() is None:
            self._child.send_signal(signal.SIGKILL)
            self._child.wait()

    def freeze(self) -> None:
        """As a suspended machine holds it, until `thaw`."""
        assert self._child is not None
        self._child.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        assert self._child is not None
        self._child.send_signal(signal.SIGCONT)

    def end(self) -> int:
        """Ask it to stop; returns its exit code."""
        assert self._child is not None
        self._child.send_signal(signal.SIGTERM)
        return self._child.wait(WITHIN)

    def said(self) -> str:
        return self._log.read_text()

    def get(self, path: str) -> Any:
        return self._ask("GET", path, None)

    def put(self, path: str, body: Any) -> Any:
        return self._ask("PUT", path, body)

    def post(self, path: str, body: Any = None, **headers: str) -> Any:
        return self._ask("POST", path, {} if body is None else body, headers)

    def delete(self, path: str) -> Any:
        return self._ask("DELETE", path, None)

    def schedule(self, slug: str, when: dict[str, Any], **what: Any) -> None:
        self.put(f"/api/schedule/{slug}", {"schedule": when, **what})

    def run(self, slug: str) -> Any:
        return self.post(f"/api/schedule/{slug}/run?wait=true&timeout=60")

    def outcomes(self, slug: str) -> list[str]:
        return [run["outcome"] for run in self.get("/api/runs?limit=500")["runs"] if run["slug"] == slug]

    def _ask(self, method: str, path: str, body: Any, headers: dict[str, str] | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        known = {"Authorization": f"Bearer {self._token.read_text().strip()}"} if self._token.exists() else {}
        asked = urllib.request.Request(self._address + path, data, known | (headers or {}), method=method)
        try:
            with urllib.request.urlopen(asked, timeout=WITHIN) as answer:
                text = answer.read()
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{method} {path}: {error.code} {error.read()!r}") from None
        return json.loads(text) if text else None


def until(condition: Callable[[], object]) -> None:
    give_up_at = time.monotonic() + WITHIN
    while True:
        try:
            if condition():
                return
        except (OSError, IndexError):
            pass
        assert time.monotonic() < give_up_at, "it never came true"
        time.sleep(0.1)


def pages(daemon: Daemon, path: str, name: str) -> list[Any]:
    """A list of the API, all of its pages."""
    found: list[Any] = []
    cursor = ""
    while True:
        page = daemon.get(f"{path}?limit=100{cursor}")
        found += page[name]
        if not page.get("next"):
            return found
        cursor = f"&cursor={quote(str(page['next']))}"
