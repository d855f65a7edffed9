"""A process that has imported the daemon, and forks itself for each daemon that a test asks for (see `forking`).

It gets requests on a socket, each with four file descriptors: standard input, output and error of the new process, and
a pipe to which its process id and, when it has ended, its exit status are written.
"""

import contextlib
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
import time
from typing import Any

REQUEST_MAX = 1 << 20
IMPORTED = ("wakeful.app", "wakeful.engine", "wakeful.features", "wakeful.server", "wakeful.stores.sqlite")


def main() -> None:
    """Fork until the test process is gone."""
    import_daemon()
    gc.freeze()  # what is imported is shared with every child, and never looked at again
    request = serve(socket.socket(fileno=int(sys.argv[1])))
    if request is not None:  # in the child: from here on it is `python -m MODULE ARGUMENTS`
        run(request)


def import_daemon() -> None:
    """All modules a daemon may need, but none that is run as a program."""
    for name in IMPORTED:
        package = importlib.import_module(name)
        for found in pkgutil.walk_packages(package.__path__, f"{name}."):
            if not found.name.endswith("__main__"):
                importlib.import_module(found.name)


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
    for target, file in enumerate(files[:3]):
        os.dup2(file, target)
    os.closerange(3, 1024)
    sys.stdin, sys.stdout = os.fdopen(0, closefd=False), os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace", closefd=False)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    time.tzset()


def run(request: dict[str, Any]) -> None:
    """The program; its end is the end of the process."""
    sys.argv = [request["module"], *request["arguments"]]
    sys.path[0] = request["folder"]
    runpy.run_module(request["module"], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
