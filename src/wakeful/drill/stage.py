"""A stage: one store, the daemons on it, and their witness."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from wakeful.core.time.instants import Instant
from wakeful.drill.node import Control
from wakeful.drill.observed import Observation, read_observations
from wakeful.drill.processes import Process, Processes
from wakeful.drill.scratch import Scratch

if TYPE_CHECKING:
    from wakeful.app.bootstrap import Opened
    from wakeful.core.schedule.definition import Definition
    from wakeful.drill.proxy import Proxy
    from wakeful.ports.store import Tx

LOOK: Final = 0.05
LOG_MAX: Final = 200_000
SETTINGS: Final = """\
[server]
auth = "none"

[limits]
every_min = "100ms"
shutdown_grace = "5s"

[schedules]
mirror = "off"
"""


class DaemonFailed(Exception):
    """A daemon of the drill did not start, or exited unexpectedly."""


class Stage:
    """Starts, disturbs and heals the daemons of one store."""

    def __init__(
        self, name: str, tags: Sequence[str], scratch: Scratch, processes: Processes, proxies: dict[str, Proxy]
    ) -> None:
        self.name = name
        self.tags = tuple(tags)
        self.url = scratch.store(name)
        self.proxies = proxies
        self._scratch = scratch
        self._processes = processes
        self._daemons: dict[str, Process] = {}
        self._controls = {tag: Control() for tag in tags}
        self._witness: Process | None = None
        self._opened: Opened | None = None
        self._file = scratch.folder / f"{name}.jsonl"
        self._read_up_to = 0
        self._begun = 0

    @property
    def is_embedded(self) -> bool:
        return self._scratch.server is None

    @property
    def commands_file(self) -> Path:
        """Where commands record what they did."""
        return self._scratch.folder / f"{self.name}-commands.jsonl"

    # --- the witness -------------------------------------------------------------------------------------------------

    async def open(self) -> str:
        """Start the witness and create the store; returns the witness's address."""
        from wakeful.app.bootstrap import open_store

        self._witness = await self._processes.start(f"{self.name}-witness", "witness", file=self._file.name)
        self._opened = await open_store(self.url)
        await self._witness.until_ready()
        return f"http://127.0.0.1:{self._witness.report['port']}"

    async def kill_with_next_attempt(self, tag: str) -> None:
        """Let the witness kill this daemon in the middle of an attempt."""
        import aiohttp

        assert self._witness is not None  # noqa: S101 - it is started first
        address = f"http://127.0.0.1:{self._witness.report['port']}/arm"
        victim = {"pid": str(self._daemons[tag].pid)}
        async with aiohttp.ClientSession() as session, session.post(address, params=victim) as response:
            response.raise_for_status()

    def begun(self) -> int:
        """How many attempts the witness has seen begin."""
        if not self._file.exists():
            return 0
        with self._file.open("rb") as file:
            file.seek(self._read_up_to)
            new, _, _ = file.read().rpartition(b"\n")
        self._read_up_to += len(new) + 1 if new else 0
        self._begun += new.count(b'"began"')
        return self._begun

    async def until_more(self, number: int) -> None:
        """Wait until the witness has seen `number` more attempts."""
        wanted = self.begun() + number
        while self.begun() < wanted:
            self._check_daemons()
            await asyncio.sleep(LOOK)

    def seen(self) -> list[Observation]:
        """Everything that the witness and the commands recorded."""
        return read_observations([file for file in (self._file, self.commands_file) if file.exists()])

    # --- the store ---------------------------------------------------------------------------------------------------

    async def put(self, definitions: Sequence[Definition]) -> Instant:
        """Write these schedules; returns when they were written."""
        from wakeful.features.schedules import commands
        from wakeful.features.schedules.checks import Checked
        from wakeful.ports.handlers import EngineHooks

        hooks = EngineHooks((), {}, {}, {}, None)  # type: ignore[arg-type]  # new schedules need none
        now = self.now()
        checked = [Checked(definition) for definition in definitions]
        await self._store.write(lambda tx: commands.put_many(tx, checked, hooks=hooks, now=now))
        return now

    async def look(self, question: Any) -> Any:
        """Read from the store, past the proxies."""
        return await self._store.read(question)

    def now(self) -> Instant:
        """The time of the store's clock, without any steps."""
        assert self._opened is not None  # noqa: S101 - it is opened first
        return self._opened.clock.read().now

    @property
    def _store(self) -> Any:
        assert self._opened is not None  # noqa: S101 - it is opened first
        return self._opened.store

    async def close(self) -> None:
        """Close the drill's own connection to the store."""
        if self._opened is not None:
            await self._opened.store.close()

    # --- the daemons -------------------------------------------------------------------------------------------------

    async def start(self, tag: str, **control: Any) -> Process:
        """Start a daemon, and wait until it is ready or has ended."""
        home = self._scratch.folder / tag
        home.mkdir(mode=0o700, exist_ok=True)
        (home / "wakeful.toml").write_text(SETTINGS)
        self._controls[tag] = replace(self._controls[tag], **control)
        self._controls[tag].write(self._scratch.control(tag))
        proxy = self.proxies.get(tag)
        url = self.url if proxy is None else proxy.url(self.url)
        daemon = self._daemons[tag] = await self._processes.start(tag, "daemon", url=url)
        await daemon.until_ready()
        return daemon

    def disturb(self, tag: str, **control: Any) -> None:
        """Change a running daemon's control file."""
        self._controls[tag] = replace(self._controls[tag], **control)
        self._controls[tag].write(self._scratch.control(tag))
        self._daemons[tag].send(signal.SIGUSR1)

    def send(self, tag: str, number: signal.Signals) -> None:
        self._daemons[tag].send(number)

    async def died(self, tag: str) -> None:
        """Wait until it has ended."""
        await self._daemons[tag].ended.wait()

    async def kill_armed(self) -> None:
        """Kill daemons that have a failpoint: they might reach it while it is being removed."""
        for tag, daemon in self._daemons.items():
            if self._controls[tag].failpoint is not None:
                daemon.send(signal.SIGKILL)
                await daemon.ended.wait()

    async def stopped(self, tag: str) -> None:
        """Wait until it is frozen."""
        while not _is_stopped(self._daemons[tag].pid):  # noqa: ASYNC110 - the system reports no such event
            await asyncio.sleep(LOOK)

    async def heal(self) -> None:
        """Reverse every disturbance, and start daemons that are down."""
        for tag in self.tags:
            if tag in self.proxies:
                self.proxies[tag].reconnect()
            daemon = self._daemons.get(tag)
            clock = self._controls[tag].clock
            if daemon is None or daemon.ended.is_set():
                started = await self.start(tag, failpoint=None, file_max=None, clock=clock)
                if started.ended.is_set():
                    raise DaemonFailed(f"a daemon did not start: {self.log(tag)}")
            else:
                daemon.send(signal.SIGCONT)
                self.disturb(tag, failpoint=None, file_max=None, clock=clock)

    async def stop(self) -> list[str]:
        """Stop the daemons in order; returns what went wrong."""
        for daemon in self._daemons.values():
            daemon.send(signal.SIGTERM)
        await asyncio.gather(*(daemon.ended.wait() for daemon in self._daemons.values()))
        return [
            f"daemon {tag} did not shut down cleanly (status {daemon.status}): {self.log(tag)}"
            for tag, daemon in self._daemons.items()
            if daemon.status != 0
        ]

    def log(self, tag: str) -> str:
        """The last line that a daemon logged."""
        path = self._scratch.folder / f"{tag}.log"
        lines = path.read_text(errors="replace")[-LOG_MAX:].strip().splitlines() if path.exists() else []
        return lines[-1] if lines else "it logged nothing"

    def _check_daemons(self) -> None:
        for tag, daemon in self._daemons.items():
            if daemon.ended.is_set():
                raise DaemonFailed(f"a daemon exited unexpectedly (status {daemon.status}): {self.log(tag)}")


def _is_stopped(pid: int) -> bool:
    """Whether a process is frozen; where the system does not say, a moment is enough."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"
    except OSError:
        return True


def unfinished(tx: Tx) -> int:
    """How many schedules still have an instant to come or a run in progress."""
    from wakeful.drill.ledger import schedules_of

    return sum(
        cadence.state == "active" and (cadence.next_at is not None or cadence.open_run_id is not None)
        for _, cadence in schedules_of(tx)
    )
