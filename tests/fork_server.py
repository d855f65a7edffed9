"""A process that has imported Wakeful, and forks itself for each program that a test starts (see `forking`).

It gets requests on a socket, each with four file descriptors: standard input, output and error of the new process, and
a pipe to which its process id and, when it has ended, its exit status are written.
"""

import atexit
import contextlib
import dataclasses
import gc
import importlib
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

REQUEST_MAX = 1 << 20
IMPORTED = (
    "wakeful.app",
    "wakeful.cli",
    "wakeful.engine",
    "wakeful.features",
    "wakeful.integrations",
    "wakeful.observe",
    "wakeful.server",
    "wakeful.stores",
)
LATER = (
    "anyio._backends._asyncio",
    "argparse",
    "concurrent.futures.thread",
    "encodings.idna",
    "uvicorn.lifespan.off",
    "uvicorn.protocols.http.auto",
    "uvicorn.protocols.websockets.auto",
    "uvloop",
)
"""What is imported when it is first used."""
NOT_IMPORTED = ("__main__", "cli.main", "mcp.tools_server", "observe.otlp")
"""Programs, and libraries that few tests need: those of MCP and OpenTelemetry take as long as many of ours."""


def main() -> None:
    """Fork until the test process is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the tests, and they end this
    import_programs()
    gc.freeze()  # what is imported is shared with every child, and never looked at again
    request = serve(socket.socket(fileno=int(sys.argv[1])))
    if request is not None:  # in the child: from here on it is the program
        end(run(request))


def import_programs() -> None:
    """All modules a daemon or a command may need, but none that is run as a program."""
    for name in IMPORTED:
        package = importlib.import_module(name)
        for found in pkgutil.walk_packages(package.__path__, f"{name}."):
            if not found.name.endswith(NOT_IMPORTED):
                importlib.import_module(found.name)
    for name in LATER:
        importlib.import_module(name)
    http = importlib.import_module("wakeful.server.http")
    http.make_app = Routes(http.make_app)


class Late:
    """Stands for a part that exists only in the child: everything is looked up in that part."""

    part: Any

    def __getattr__(self, name: str) -> Any:
        return getattr(self.part, name)

    def __call__(self, *arguments: Any) -> Any:
        return self.part(*arguments)


class Routes:
    """`make_app`, with the routes built before the fork: that takes as long as the rest of a daemon's start.

    The parts of the daemon are filled in when it calls this. If one of them is missing there are fewer routes, and they
    are built again."""

    def __init__(self, make_app: Callable[..., Any]) -> None:
        self.make_app = make_app
        serving = importlib.import_module("wakeful.server.http.serving").Serving
        self.app, self.parts = Late(), {field.name: Late() for field in dataclasses.fields(serving)}
        self.built = make_app(self.app, serving(**self.parts))

    def __call__(self, app: Any, serving: Any) -> Any:
        given = {name: getattr(serving, name) for name in self.parts}
        if None in given.values():
            return self.make_app(app, serving)
        self.app.part = app
        for name, part in given.items():
            self.parts[name].part = part
        return self.built


def serve(requests: socket.socket) -> dict[str, Any] | None:
    """Start and watch processes. Returns None in the end, and a request in each child."""
    ended, notify = os.pipe()
    os.set_blocking(notify, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(notify, warn_on_full_buffer=False)
    reports: dict[int, int] = {}
    while True:
        ready, _, _ = select.select([requests, ended], [], [])
        if ended in ready:
            os.read(ended, 4096)
            reap(reports)
        if requests in ready:
            received, files, _, _ = socket.recv_fds(requests, REQUEST_MAX, 4)
            if not received:
                requests.close()
                return None
            request: dict[str, Any] = json.loads(received)
            pid = os.fork()
            if pid == 0:
                requests.detach()
                become(request, files)
                return request
            reports[pid] = files.pop()
            os.write(reports[pid], f"{pid}\n".encode())
            for file in files:
                os.close(file)


def reap(reports: dict[int, int]) -> None:
    """Report every child that has ended."""
    while reports:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        report = reports.pop(pid)
        with contextlib.suppress(BrokenPipeError):  # the test is over
            os.write(report, f"{os.waitstatus_to_exitcode(status)}\n".encode())
        os.close(report)


def become(request: dict[str, Any], files: list[int]) -> None:
    """Make a forked child look like a process that was started for the request."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for target, file in enumerate(files[:3]):
        os.dup2(file, target)
    os.closerange(3, 1024)
    sys.stdin, sys.stdout = os.fdopen(0, closefd=False), os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace", closefd=False)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    time.tzset()


def run(request: dict[str, Any]) -> int:
    """The program. Returns its exit status; other exceptions are left to the interpreter."""
    program = request["program"]
    sys.argv = [program, *request["arguments"]]
    try:
        if request["is_script"]:
            sys.path[0] = os.path.dirname(program)  # noqa: PTH120 - as the interpreter does
            runpy.run_path(program, run_name="__main__")
        else:
            sys.path[0] = request["folder"]
            runpy.run_module(program, run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        if ended.code is None or isinstance(ended.code, int):
            return ended.code or 0
        raise
    return 0


def end(status: int) -> None:
    """End as the interpreter does, but leave the memory to the system: it is shared, and freeing it copies it all."""
    threading._shutdown()  # type: ignore[attr-defined]  # waits for threads
    atexit._run_exitfuncs()
    gc.collect()  # what was not closed warns
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    main()
