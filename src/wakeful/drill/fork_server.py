"""The fork server: one process that imports the daemon once, and forks the drill's processes.

Importing a daemon takes seconds, and a drill starts dozens. The fork server has no threads, so a fork of it is a whole
process. It reads requests from its standard input and reports on its standard output, a JSON object per line:

- The first line is the scratch place (`drill.scratch`).
- `{"tag": "a", "role": "daemon" or "witness", …}` starts a process. It reports `started` with its pid, what the
  process itself reports (`ready`), and `ended` with its status.
- The end of the input ends everything: the processes are killed and the scratch folder and schema are removed. So a
  drill leaves nothing behind, even if it is killed itself.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import json
import os
import pkgutil
import select
import signal
import threading
from contextlib import suppress
from typing import Any, Final

from wakeful.drill import node, witness
from wakeful.drill.scratch import Scratch

LOOK: Final = 0.02
IMPORTED: Final = ("app", "config", "engine", "features", "integrations", "observe", "server", "stores")
STDIN: Final = 0
STDOUT: Final = 1
STDERR: Final = 2


def main() -> None:
    """Fork until the input ends, then clean up."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the drill ends this by closing the input
    scratch = Scratch.read(json.loads(_first_line()))
    children: dict[int, str] = {}
    try:
        import_daemon()
        _tell({"is": "open"})
        _serve(scratch, children)
    finally:
        for pid in children:
            with suppress(ProcessLookupError, ChildProcessError):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
        scratch.remove()


def _first_line() -> bytes:
    """Read the first line byte by byte: the loop reads the rest."""
    line = b""
    while (byte := os.read(STDIN, 1)) not in (b"", b"\n"):
        line += byte
    return line


def import_daemon() -> None:
    """Import everything that a daemon may import later. Modules that are not installed are skipped."""
    for name in IMPORTED:
        package = importlib.import_module(f"wakeful.{name}")
        for module in pkgutil.walk_packages(package.__path__, f"wakeful.{name}.", onerror=lambda _: None):
            if not module.name.endswith(("__main__", ".mcp", ".tools_server")):  # imported when a request needs it
                _import(module.name)
    gc.freeze()


def _import(name: str) -> None:
    try:
        importlib.import_module(name)
    except ImportError:
        return


def _serve(scratch: Scratch, children: dict[int, str]) -> None:
    asked = b""
    while True:
        if select.select([STDIN], [], [], LOOK)[0]:
            data = os.read(STDIN, 65_536)
            if not data:
                return
            *lines, asked = (asked + data).split(b"\n")
            for line in lines:
                _start(json.loads(line), scratch, children)
        _reap(children)


def _start(request: dict[str, Any], scratch: Scratch, children: dict[int, str]) -> None:
    tag = request["tag"]
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            _become(request, scratch)
            status = 0
        except BaseException:  # a fork must not return into the loop of its parent
            import traceback

            traceback.print_exc()
        finally:
            os._exit(status)
    children[pid] = tag
    _tell({"is": "started", "tag": tag, "pid": pid})


def _reap(children: dict[int, str]) -> None:
    while children:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        _tell({"is": "ended", "tag": children.pop(pid), "pid": pid, "status": os.waitstatus_to_exitcode(status)})


def _become(request: dict[str, Any], scratch: Scratch) -> None:
    """In the child process: run as a daemon or as the witness, with errors going to a separate file."""
    tag = request["tag"]
    errors = os.open(scratch.folder / f"{tag}.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    reports = os.dup(STDOUT)
    for stream in (STDOUT, STDERR):
        os.dup2(errors, stream)
    os.dup2(os.open(os.devnull, os.O_RDONLY), STDIN)

    def ready(**more: object) -> None:
        _tell({"is": "ready", "tag": tag, **more}, reports)

    if request["role"] == "witness":
        threading.Thread(target=node.end_with, args=(os.getppid(),), daemon=True).start()
        asyncio.run(witness.serve(scratch.folder / request["file"], ready))
    else:
        node.run(scratch.folder / tag, request["url"], scratch.control(tag), ready)


def _tell(said: dict[str, Any], to: int = STDOUT) -> None:
    os.write(to, json.dumps(said).encode() + b"\n")


if __name__ == "__main__":
    main()
