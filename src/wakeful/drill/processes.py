"""The drill's processes, started through the fork server (`drill.fork_server`)."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from contextlib import suppress
from typing import Any, Final

from wakeful.drill.scratch import Scratch

CLOSED_WITHIN: Final = 30.0
_WITHHELD: Final = ("WAKEFUL_", "NOTIFY_SOCKET", "LISTEN_")
"""Variables that configure the user's own daemon; the drill's daemons must not get them."""


class ForkServerGone(Exception):
    """The process that starts the others has ended."""


class Process:
    """One process: its id, whether it is ready, and how it ended."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.ready = asyncio.Event()
        self.ended = asyncio.Event()
        self.status: int | None = None
        self.report: dict[str, Any] = {}

    def send(self, number: signal.Signals) -> None:
        """Send a signal, unless it has ended."""
        if not self.ended.is_set():
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    async def until_ready(self) -> None:
        """Wait until it is ready or has ended."""
        waits = [asyncio.create_task(event.wait()) for event in (self.ready, self.ended)]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()


class Processes:
    """Starts processes, and ends them all."""

    def __init__(self, fork_server: asyncio.subprocess.Process) -> None:
        self._fork_server = fork_server
        self._starting: dict[str, asyncio.Future[Process]] = {}
        self._alive: dict[int, Process] = {}
        self._by_tag: dict[str, Process] = {}
        self._open = asyncio.Event()
        self._reading = asyncio.create_task(self._read())

    @classmethod
    async def open(cls, scratch: Scratch) -> Processes:
        """Start the fork server. Its own session keeps Ctrl-C away from it: the drill ends everything in order."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(_WITHHELD)}
        with (scratch.folder / "fork-server.log").open("ab") as errors:
            fork_server = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "wakeful.drill.fork_server"),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=errors,
                env=kept,
                start_new_session=True,
            )
        processes = cls(fork_server)
        processes._say(scratch.as_json())
        return processes

    async def until_open(self) -> None:
        """Wait until it has imported everything."""
        await self._open.wait()
        if self._reading.done():
            raise ForkServerGone("the drill cannot start its daemons")

    async def start(self, tag: str, role: str, **request: object) -> Process:
        """Start a process, without waiting until it is ready."""
        future: asyncio.Future[Process] = asyncio.get_running_loop().create_future()
        self._starting[tag] = future
        self._say({"tag": tag, "role": role, **request})
        return await future

    async def close(self) -> None:
        """End everything; the fork server removes everything the drill created."""
        if self._fork_server.stdin is not None:
            self._fork_server.stdin.close()
        try:
            async with asyncio.timeout(CLOSED_WITHIN):
                await self._fork_server.wait()
        except TimeoutError:
            self._fork_server.kill()
            await self._fork_server.wait()
        if self._fork_server.returncode != 0:  # it was killed, and could not end the others
            for process in self._alive.values():
                with suppress(ProcessLookupError):
                    os.kill(process.pid, signal.SIGKILL)
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)

    def _say(self, request: dict[str, Any]) -> None:
        assert self._fork_server.stdin is not None  # noqa: S101 - it was opened with a pipe
        self._fork_server.stdin.write(json.dumps(request).encode() + b"\n")

    async def _read(self) -> None:
        assert self._fork_server.stdout is not None  # noqa: S101 - it was opened with a pipe
        try:
            async for line in self._fork_server.stdout:
                self._hear(json.loads(line))
        finally:
            self._open.set()
            for process in self._alive.values():
                process.ended.set()
            for future in self._starting.values():
                if not future.done():
                    future.set_exception(ForkServerGone("the drill cannot start its daemons"))

    def _hear(self, said: dict[str, Any]) -> None:
        match said["is"]:
            case "open":
                self._open.set()
            case "started":
                process = self._by_tag[said["tag"]] = self._alive[said["pid"]] = Process(said["pid"])
                self._starting.pop(said["tag"]).set_result(process)
            case "ready":
                process = self._by_tag[said["tag"]]
                process.report = said
                process.ready.set()
            case "ended":
                process = self._alive.pop(said["pid"])
                process.status = said["status"]
                process.ended.set()
