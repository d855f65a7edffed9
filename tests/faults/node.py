"""One node as a process of its own, for fault tests: `python node.py URL NAME OBSERVED [key=value …]`.

Its target writes `began` and `ended` lines to OBSERVED, as `wakeful.drill.observed` reads them: each is one appending
write, so a kill leaves whole lines or none. What can be asked of it:

- `die=OPERATION:before|after:N`: kill -9 by its own hand at the Nth commit of that operation (claim, settle, mark, …);
- `clock=FILE`: the wall clock is off by the milliseconds in FILE, read at each look, as if somebody set it;
- `takes=SECONDS`: how long the target takes;
- `file_max=BYTES`: no file of it may grow beyond, as on a full disk, until FILE.roomy is there beside OBSERVED.
"""

import asyncio
import json
import os
import resource
import signal
import sys
import time
from pathlib import Path
from typing import Any

from wakeful.app import bootstrap
from wakeful.core.schedule.actions import Call, Command
from wakeful.drill.failpoints import FailingStore, Failpoint
from wakeful.engine.clock import SystemClock
from wakeful.engine.limits import Limits
from wakeful.engine.membership import Identity
from wakeful.integrations.actions.call import CallAction
from wakeful.integrations.actions.command import CommandAction
from wakeful.integrations.actions.processes import end_orphan
from wakeful.integrations.actions.registry import CallRegistry
from wakeful.ports.clock import Clock, Moment
from wakeful.ports.store import Store

LIMITS = Limits(concurrency_max=50, lease=4_000, renew_every=500, shutdown_grace=5_000, ending_grace=1_000, poll=100)


class SetClock:
    """The machine's clock, as set by whoever writes the file."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._clock = SystemClock()

    def read(self) -> Moment:
        moment = self._clock.read()
        try:
            return Moment(moment.now + int(self._file.read_text()), moment.monotonic)
        except (OSError, ValueError):
            return moment

    def is_before(self, moment: Moment) -> bool:
        now = self.read()
        return now.now < moment.now and now.monotonic < moment.monotonic

    def __getattr__(self, name: str) -> Any:
        return getattr(self._clock, name)


async def main(url: str, name: str, observed: Path, options: dict[str, str]) -> None:
    """Tick until told to stop."""
    file = os.open(observed, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    takes = float(options.get("takes", "0.02"))

    def write(what: str, fire: Any) -> None:
        said = {
            "what": what,
            "runId": fire.run_id,
            "attempt": fire.attempt,
            "key": fire.idempotency_key,
            "at": time.time_ns() // 1_000_000,
            "node": name,
            "slug": fire.slug,
        }
        if fire.slug.startswith("lane"):
            said["lane"] = fire.slug.partition("-")[0]
        os.write(file, (json.dumps(said) + "\n").encode())

    async def target(fire: Any) -> None:
        write("began", fire)
        await asyncio.sleep(takes)
        write("ended", fire)

    registry = CallRegistry()
    registry.register("target", target)
    opened = await bootstrap.open_store(url)
    store: Store = opened.store
    clock: Clock = opened.clock
    if "die" in options:
        store = FailingStore(store, Failpoint.parse(options["die"]))  # type: ignore[assignment]
    if "clock" in options:
        clock = SetClock(Path(options["clock"]))  # type: ignore[assignment]
    actions: dict[type[Any], Any] = {Call: CallAction(registry), Command: CommandAction()}
    identity = Identity(name, os.uname().nodename, os.getpid())
    setup = bootstrap.Setup(limits=LIMITS)
    parts = await bootstrap.assemble_with(store, clock, setup, actions, end_orphan, identity)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    if "file_max" in options:
        asyncio.create_task(_grow(observed, int(options["file_max"])))  # noqa: RUF006 - as long as the process
    await parts.engine.start()
    os.write(1, b"ready\n")
    await stop.wait()
    await parts.engine.stop()
    await opened.store.close()


async def _grow(observed: Path, size: int) -> None:
    """The disk is full until somebody makes room."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
    while not observed.with_name("roomy").exists():
        await asyncio.sleep(0.05)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


asyncio.run(main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), dict(text.split("=", 1) for text in sys.argv[4:])))
