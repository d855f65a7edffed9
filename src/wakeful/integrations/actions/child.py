"""Runs a child process from its start to its proven end.

Theory of operation
-------------------
One daemon thread starts the child, waits for it and reaps it, so nothing depends on the event loop's child watcher:
that differs between Python versions, event loops and embedding programs, and some implementations need the main
thread. The exit status is collected by pid; if other code took it (a program that ignores SIGCHLD, or waits for all
children) it is lost, and a lost status never counts as success.

The child does nothing until its standard input says so (see `gate`), which is written only after the process has been
recorded.

When the leader has ended, so has the run. Processes it left behind in its session and group get a moment to finish and
are then killed: a free lane must not contain leftovers of an earlier run. A program that is meant to outlive the run
creates its own session (`setsid`, a service manager) and is left alone; it should not keep the output open, because
nothing reads it any more.
"""

import asyncio
import errno
import os
import subprocess
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from io import FileIO
from typing import IO, Final, NamedTuple, cast

from wakeful.core.run.resources import is_lack
from wakeful.core.time.instants import SECOND, Duration
from wakeful.integrations.actions.cancellation import Deadline, pause, run_to_end
from wakeful.integrations.actions.processes import identify
from wakeful.integrations.actions.sessions import END_GRACE, end_session, group_exists, is_session_gone
from wakeful.integrations.system.descriptors import give_back, is_room_for_child
from wakeful.integrations.system.threads import call_on
from wakeful.integrations.system.waiting import wait_until_set
from wakeful.ports.action import CannotBegin, Ladder, Process, StillRunning

LEFTOVER_GRACE: Final[Duration] = 1 * SECOND
"""How long leftover processes may take to finish on their own."""

_WATCH_EVERY: Final[Duration] = 1 * SECOND
_POLL: Final[Duration] = 20


class Spawn(NamedTuple):
    """What to start."""

    argv: list[str]
    env: Mapping[str, str]
    stdin: bytes  # the line that opens the gate, and everything after it
    cwd: str | None = None
    merges_stderr: bool = True
    stderr_sink: Callable[[bytes], None] | None = None  # where stderr goes if it is not merged; None: to our stderr


class Exit(NamedTuple):
    """How a child ended."""

    code: int | None  # negative: the signal that killed it; None: lost
    is_clean: bool  # whether no process is left behind


class CannotStart(Exception):
    """The system refuses to start it, now and later."""


class Children:
    """Runs child processes, and keeps watching those that could not be ended."""

    def __init__(self, *, grace: Duration = END_GRACE) -> None:
        self._grace = grace
        self._watches: set[asyncio.Task[None]] = set()

    async def run(self, spawn: Spawn, ladder: Ladder, sink: Callable[[bytes], None]) -> Exit:
        """Start a child, record it, open its gate and wait for its end; its output goes to `sink`.

        Raises `CannotStart`; `CannotBegin` if the system has no room for it now; `StillRunning` if it had to be ended
        and could not be.
        """
        child = _Child(spawn, sink, self._grace)
        is_open = False
        try:
            process = await child.start()
            await ladder.climb("started", process=process)
            await child.open_gate()
            is_open = True
            code = await child.wait()
            return Exit(code, await run_to_end(child.clear_away()))
        except (CannotStart, CannotBegin, GeneratorExit):
            raise
        except BaseException as error:  # cancelled, fenced off, or recording failed: no process may be left in any case
            if not await run_to_end(child.end()):
                message = f"process {child.pid} could not be killed, even with SIGKILL; check what it is waiting for"
                raise StillRunning(message, self._watch(child.pid)) from None
            if not is_open and is_lack(error):
                raise CannotBegin(_cause(error)) from None
            raise
        finally:
            child.close()

    async def close(self) -> None:
        """Stop watching."""
        for watch in self._watches:
            watch.cancel()

    def _watch(self, leader: int) -> "asyncio.Future[None]":
        ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        watch = asyncio.ensure_future(self._until_gone(leader, ended))
        self._watches.add(watch)
        watch.add_done_callback(self._watches.discard)
        return ended

    async def _until_gone(self, leader: int, ended: "asyncio.Future[None]") -> None:
        while not await is_session_gone(leader):
            await pause(_WATCH_EVERY)
        if not ended.done():
            ended.set_result(None)


class _Child:
    """One child; used on the event loop, except for the thread that starts and reaps it."""

    def __init__(self, spawn: Spawn, sink: Callable[[bytes], None], grace: Duration) -> None:
        self._spawn = spawn
        self._grace = grace
        self._loop = asyncio.get_running_loop()
        self._started: asyncio.Future[_Started] = self._loop.create_future()
        self._exited: asyncio.Future[int | None] = self._loop.create_future()
        self._output = _Output(sink)
        self._errors = None if spawn.stderr_sink is None else _Output(spawn.stderr_sink)
        self._reader: asyncio.ReadTransport | None = None
        self._error_reader: asyncio.ReadTransport | None = None
        self._writer: asyncio.WriteTransport | None = None

    @property
    def pid(self) -> int:
        return self._started.result().popen.pid

    async def start(self) -> Process:
        """Start the gate, and start reading its output."""
        try:
            threading.Thread(target=self._live, name="wakeful-child", daemon=True).start()
        except RuntimeError as error:
            raise CannotBegin(f"{error}; lower the concurrency, or raise the limit") from None
        popen, process = await asyncio.shield(self._started)
        if popen.stdout is not None:
            output = taken_over(popen.stdout, "rb", self._loop)
            self._reader, _ = await self._loop.connect_read_pipe(lambda: self._output, output)
        if self._errors is not None and popen.stderr is not None:
            errors, error_output = self._errors, taken_over(popen.stderr, "rb", self._loop)
            self._error_reader, _ = await self._loop.connect_read_pipe(lambda: errors, error_output)
        return process

    async def open_gate(self) -> None:
        stdin = self._started.result().popen.stdin
        if stdin is None:
            return
        self._writer, _ = await self._loop.connect_write_pipe(asyncio.BaseProtocol, taken_over(stdin, "wb", self._loop))
        self._writer.write(self._spawn.stdin)
        self._writer.close()  # once everything is written

    async def wait(self) -> int | None:
        """The exit code of the leader."""
        try:
            return await asyncio.shield(self._exited)
        except asyncio.CancelledError:
            if self._exited.done():  # it ended at the same moment: that result counts
                return self._exited.result()
            raise

    async def clear_away(self) -> bool:
        """After the leader ended: read the remaining output, end the rest of the group; True if nothing is left."""
        patience = Deadline(LEFTOVER_GRACE)
        await wait_until_set(self._output.ended, LEFTOVER_GRACE)
        if self._error_reader is not None and self._errors is not None:
            await wait_until_set(self._errors.ended, LEFTOVER_GRACE)
        if not group_exists(self.pid):  # the usual case, at the cost of one system call
            return True
        while not await is_session_gone(self.pid):
            if patience.is_over:
                return await end_session(self.pid, self._grace)
            await pause(_POLL)
        return True

    async def end(self) -> bool:
        """End the child in any state; True if nothing is left."""
        try:
            await asyncio.shield(self._started)
        except (CannotStart, CannotBegin):
            return True
        if not await end_session(self.pid, self._grace):
            return False
        await asyncio.shield(self._exited)  # reaped
        return True

    def close(self) -> None:
        """Close the pipes; a gate that is still waiting exits."""
        if not self._started.done() or self._started.exception() is not None:
            return
        popen = self._started.result().popen
        if self._reader is not None:
            self._reader.close()
        elif popen.stdout is not None:
            popen.stdout.close()
        if self._error_reader is not None:
            self._error_reader.close()
        elif popen.stderr is not None:
            popen.stderr.close()
        if self._writer is None and popen.stdin is not None:
            popen.stdin.close()
        elif self._writer is not None and self._writer.get_write_buffer_size():  # else it closes by itself
            self._writer.abort()

    def _live(self) -> None:
        """In the thread: start, wait, reap."""
        popen: subprocess.Popen[bytes] | None = None
        try:
            if not is_room_for_child():
                raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
            popen = self._popen()
            give_back(popen.pid)
            process = identify(popen.pid)
        except Exception as error:
            if popen is not None:
                _discard(popen)
            refusal = (CannotBegin if is_lack(error) else CannotStart)(_cause(error))
            call_on(self._loop, partial(self._started.set_exception, refusal))
            return
        call_on(self._loop, partial(self._started.set_result, _Started(popen, process)))
        call_on(self._loop, partial(self._exited.set_result, _reap(popen)))

    def _popen(self) -> "subprocess.Popen[bytes]":
        argv, env, _, cwd, merges_stderr, stderr_sink = self._spawn
        pipe = subprocess.PIPE
        apart = None if stderr_sink is None else pipe
        stderr = subprocess.STDOUT if merges_stderr else apart
        return subprocess.Popen(  # noqa: S603 - running what the definition names is the purpose; never a shell line
            argv, bufsize=0, stdin=pipe, stdout=pipe, stderr=stderr, cwd=cwd, env=env, start_new_session=True
        )


class _Started(NamedTuple):
    popen: "subprocess.Popen[bytes]"
    process: Process


class _Output(asyncio.Protocol):
    """Passes output to the sink."""

    def __init__(self, sink: Callable[[bytes], None]) -> None:
        self._sink = sink
        self.ended = asyncio.Event()

    def data_received(self, data: bytes) -> None:
        self._sink(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self.ended.set()


def taken_over(pipe: IO[bytes], mode: str, loop: asyncio.AbstractEventLoop) -> IO[bytes]:
    """A pipe for a transport of this loop, which closes it once.

    uvloop closes the descriptor itself, and then the file too. By then another thread may have opened something else
    under the same number, such as a pipe of another child or the database. So there the file does not own it."""
    is_owner = type(loop).__module__.partition(".")[0] != "uvloop"
    descriptor = os.dup(pipe.fileno())
    pipe.close()
    return cast("IO[bytes]", FileIO(descriptor, mode, closefd=is_owner))


def _reap(popen: "subprocess.Popen[bytes]") -> int | None:
    # Not `popen.wait()`: it reports a status collected by other code as 0, which is success.
    code: int | None = None
    with suppress(ChildProcessError):
        code = os.waitstatus_to_exitcode(os.waitpid(popen.pid, 0)[1])
    popen.returncode = 255 if code is None else code  # otherwise it would count as still running when garbage-collected
    return code


def _discard(popen: "subprocess.Popen[bytes]") -> None:
    """End a gate that nobody opens, because it could not be identified."""
    popen.kill()
    for pipe in (popen.stdin, popen.stdout, popen.stderr):
        if pipe is not None:
            pipe.close()
    _reap(popen)


def _cause(error: BaseException) -> str:
    if isinstance(error, OSError) and error.errno == errno.E2BIG:
        return "its arguments and environment are longer than the system allows; pass the text over stdin"
    if isinstance(error, OSError):
        return f"it cannot be started: {error.strerror}" + (f" ({error.filename})" if error.filename else "")
    return f"it cannot be started: {error}; correct argv, cwd or env"
