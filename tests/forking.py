"""Daemons as processes, without importing everything again for each.

Importing a daemon takes more processor time than most tests of one. So each test process starts one fork server
(`fork_server.py`), which imports it once; a daemon is then a fork of that. It is a real process all the same: it has
its own id, environment, folder, streams and threads, and can be killed, frozen and waited for.

What a fork does not show is the start itself: interpreter options, what is imported when, what an environment variable
of Python changes. Tests of that start `python -m` (`start_cold`).
"""

import atexit
import functools
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import IO

SERVER = Path(__file__).with_name("fork_server.py")


class Forked:
    """A process that was forked, to be used like `subprocess.Popen`."""

    def __init__(self, stdout: int, stderr: int, report: int) -> None:
        self.stdout: IO[str] = os.fdopen(stdout, encoding="utf-8")
        self.stderr: IO[str] = os.fdopen(stderr, encoding="utf-8")
        self._report: IO[str] = os.fdopen(report)
        self.pid = int(self._report.readline())
        self.returncode: int | None = None

    def poll(self) -> int | None:
        return self._status(0)

    def wait(self, timeout: float | None = None) -> int:
        status = self._status(timeout)
        if status is None:
            raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
        return status

    def _status(self, timeout: float | None) -> int | None:
        if self.returncode is None and select.select([self._report], [], [], timeout)[0]:
            self.returncode = int(self._report.readline())
            self._report.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """What is left to read of both streams, and the end."""
        read = {"out": "", "err": ""}

        def drain(name: str, stream: IO[str]) -> None:
            with stream:
                read[name] = stream.read()

        readers = [
            threading.Thread(target=drain, args=(name, stream), daemon=True)
            for name, stream in (("out", self.stdout), ("err", self.stderr))
            if not stream.closed
        ]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join(timeout)
            if reader.is_alive():
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
        self.wait(timeout)
        return read["out"], read["err"]


Process = Forked | subprocess.Popen[str]


def start(module: str, *arguments: str, environment: Mapping[str, str], has_errors: bool = True) -> Process:
    """`python -W error -m MODULE ARGUMENTS`, as a fork where that makes no difference.

    Without `has_errors` nothing needs to read its standard error.
    """
    if _is_for_python(environment):
        return start_cold(module, *arguments, environment=environment, has_errors=has_errors)
    out, child_out = os.pipe()
    err, child_err = os.pipe() if has_errors else (os.open(os.devnull, os.O_RDONLY), os.open(os.devnull, os.O_WRONLY))
    report, child_report = os.pipe()
    none = os.open(os.devnull, os.O_RDONLY)
    given = [none, child_out, child_err, child_report]
    request = {
        "module": module,
        "arguments": arguments,
        "environment": dict(environment),
        "folder": str(Path.cwd()),
    }
    try:
        socket.send_fds(_server(), [json.dumps(request).encode()], given)
    finally:
        for file in given:
            os.close(file)
    return Forked(out, err, report)


def start_cold(
    module: str, *arguments: str, environment: Mapping[str, str], has_errors: bool = True
) -> "subprocess.Popen[str]":
    """A process with an interpreter of its own."""
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-m", module, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE if has_errors else subprocess.DEVNULL,
        text=True,
        env=dict(environment),
    )


def _is_for_python(environment: Mapping[str, str]) -> bool:
    """Whether it has something that an interpreter reads when it starts, and the fork server has not."""
    names = {name for name in {*environment, *os.environ} if name.startswith("PYTHON")}
    return any(environment.get(name) != os.environ.get(name) for name in names)


@functools.cache
def _server() -> socket.socket:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-W", "error", str(SERVER), str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
        )

    def end() -> None:
        ours.close()
        process.wait()

    atexit.register(end)
    return ours
