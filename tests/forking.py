"""Programs as processes, without importing everything again for each.

Importing a daemon takes more processor time than most tests of one. So each test process starts one fork server
(`fork_server.py`), which imports it once; a program is then a fork of that. It is a real process all the same: it has
its own id, environment, folder, streams and threads, and can be killed, frozen and waited for.

What a fork does not show is the start itself (interpreter options, what is imported when, what an environment variable
of Python changes) and how an interpreter is taken down. Tests of that start an interpreter (`start_cold`).
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
from typing import IO, NamedTuple

from patience import PATIENCE

SERVER = Path(__file__).with_name("fork_server.py")

File = int | IO[str] | IO[bytes]
"""What a stream of the new process is: a file, or one of the constants of `subprocess`."""


class Forked:
    """A process that was forked, to be used like `subprocess.Popen`."""

    def __init__(
        self, args: list[str], streams: tuple[IO[str] | None, IO[str] | None, IO[str] | None], report: int
    ) -> None:
        self.args = args
        self.stdin, self.stdout, self.stderr = streams
        self._report: IO[str] = os.fdopen(report)
        self.pid = int(self._report.readline())
        self.returncode: int | None = None

    def poll(self) -> int | None:
        return self._status(0)

    def wait(self, timeout: float | None = None) -> int:
        status = self._status(timeout)
        if status is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
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

    def communicate(self, input: str | None = None, timeout: float | None = None) -> tuple[str, str]:
        """Write the input, read what is left of both streams, and wait for the end."""
        read = {"out": "", "err": ""}

        def drain(name: str, stream: IO[str]) -> None:
            with stream:
                read[name] = stream.read()

        readers = [
            threading.Thread(target=drain, args=(name, stream), daemon=True)
            for name, stream in (("out", self.stdout), ("err", self.stderr))
            if stream is not None and not stream.closed
        ]
        for reader in readers:
            reader.start()
        if self.stdin is not None and not self.stdin.closed:
            self._feed(self.stdin, input)
        for reader in readers:
            reader.join(timeout)
            if reader.is_alive():
                raise subprocess.TimeoutExpired(self.args, timeout or 0)
        self.wait(timeout)
        return read["out"], read["err"]

    @staticmethod
    def _feed(stdin: IO[str], text: str | None) -> None:
        try:
            with stdin:
                stdin.write(text or "")
        except BrokenPipeError:  # it ended without reading it
            pass


Process = Forked | subprocess.Popen[str]


class Ended(NamedTuple):
    """How a process ended, and what it wrote."""

    code: int
    out: str
    err: str


def run(
    program: str | Path, *arguments: object, feed: str | None = None, stderr: File = subprocess.PIPE, **given: object
) -> Ended:
    """Start a program and wait for its end."""
    stdin = subprocess.DEVNULL if feed is None else subprocess.PIPE
    process = start(program, *arguments, stdin=stdin, stderr=stderr, **given)  # type: ignore[arg-type]
    try:
        out, err = process.communicate(feed, timeout=PATIENCE)
    except BaseException:
        process.kill()
        process.communicate()
        raise
    return Ended(process.wait(), out, err or "")


def start(
    program: str | Path,
    *arguments: object,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
    stdin: File = subprocess.DEVNULL,
    stdout: File = subprocess.PIPE,
    stderr: File = subprocess.PIPE,
) -> Process:
    """`python -W error -m MODULE ARGUMENTS` or `python -W error SCRIPT ARGUMENTS`, as a fork where that makes no
    difference."""
    environment = os.environ if environment is None else environment
    if _is_for_python(environment):
        return start_cold(
            program, *arguments, environment=environment, folder=folder, stdin=stdin, stdout=stdout, stderr=stderr
        )
    ours, given = _streams(stdin, stdout, stderr)
    report, child_report = os.pipe()
    request = {
        "program": str(program),
        "is_script": isinstance(program, Path),
        "arguments": [str(argument) for argument in arguments],
        "environment": dict(environment),
        "folder": str(folder or Path.cwd()),
    }
    try:
        socket.send_fds(_server(), [json.dumps(request).encode()], [*given, child_report])
    finally:
        for file in (*given, child_report):
            os.close(file)
    return Forked([str(program), *request["arguments"]], ours, report)


def start_cold(
    program: str | Path,
    *arguments: object,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
    stdin: File = subprocess.DEVNULL,
    stdout: File = subprocess.PIPE,
    stderr: File = subprocess.PIPE,
) -> "subprocess.Popen[str]":
    """A process with an interpreter of its own."""
    asked = [str(program)] if isinstance(program, Path) else ["-m", program]
    return subprocess.Popen(
        [sys.executable, "-W", "error", *asked, *map(str, arguments)],
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        text=True,
        cwd=folder,
        env=None if environment is None else dict(environment),
    )


def _streams(
    stdin: File, stdout: File, stderr: File
) -> tuple[tuple[IO[str] | None, IO[str] | None, IO[str] | None], list[int]]:
    """Our ends of the pipes, and the files of the new process, to be closed here once it has them."""
    ours: list[IO[str] | None] = []
    theirs: list[int] = []
    for wanted, is_read in ((stdin, True), (stdout, False), (stderr, False)):
        end = None
        if wanted == subprocess.PIPE:
            reading, writing = os.pipe()
            end = os.fdopen(writing, "w", encoding="utf-8") if is_read else os.fdopen(reading, encoding="utf-8")
            theirs.append(reading if is_read else writing)
        elif wanted == subprocess.DEVNULL:
            theirs.append(os.open(os.devnull, os.O_RDWR))
        elif wanted == subprocess.STDOUT:
            theirs.append(os.dup(theirs[1]))
        else:
            theirs.append(os.dup(wanted if isinstance(wanted, int) else wanted.fileno()))
        ours.append(end)
    return (ours[0], ours[1], ours[2]), theirs


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
