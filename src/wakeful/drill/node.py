"""A daemon of the drill: the real daemon, whose store, clock and file size this process can disturb.

The drill writes what it wants into a control file and sends SIGUSR1. None of this exists in an ordinary daemon: this
module installs the wrappers before the daemon starts.
"""

from __future__ import annotations

import json
import logging
import os
import resource
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from wakeful.core.time.instants import Duration
from wakeful.drill.failpoints import FailingStore, Failpoint
from wakeful.ports.clock import Clock, Moment

if TYPE_CHECKING:
    from wakeful.app.bootstrap import Opened, Parts, Setup
    from wakeful.ports.store import Store

LEASE: Final[Duration] = 3_000
RENEW_EVERY: Final[Duration] = 1_000
LADDER: Final[tuple[Duration, ...]] = (1_000, 2_000)
"""Shorter than in other daemons (30 s, 10 s, and 30 s to an hour): a freeze past the lease, and the pause of a schedule
after an error, must fit into a drill."""

POLL: Final[Duration] = 200
LOOK: Final = 0.5


@dataclass(frozen=True, slots=True)
class Control:
    """How a daemon is disturbed."""

    failpoint: str | None = None
    clock: Duration = 0  # how far its wall clock is off
    file_max: int | None = None  # none of its files may grow larger, as on a full disk

    def write(self, path: Path) -> None:
        """Replace the file atomically, so that it is never read half written."""
        draft = path.with_suffix(".new")
        draft.write_text(json.dumps({"failpoint": self.failpoint, "clock": self.clock, "file_max": self.file_max}))
        draft.replace(path)

    @classmethod
    def read(cls, path: Path) -> Control:
        return cls(**json.loads(path.read_text())) if path.exists() else cls()


class SteppedClock:
    """See `ports.clock.Clock`: the real clock, with a wall clock that can be stepped."""

    def __init__(self, clock: Clock, offset: Duration) -> None:
        self._clock = clock
        self.offset = offset

    def read(self) -> Moment:
        moment = self._clock.read()
        return moment._replace(now=moment.now + self.offset)

    def is_before(self, moment: Moment) -> bool:
        return self._clock.is_before(moment._replace(now=moment.now - self.offset))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._clock, name)


class Disturbed:
    """What the control file says, applied to this process."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._control = Control.read(path)
        self._stores: list[FailingStore] = []
        self._clocks: list[SteppedClock] = []

    def install(self) -> None:
        """Make the daemon open its store and its clock through this, with a short lease and short pauses."""
        from wakeful.api.python import Wakeful
        from wakeful.core.schedule import policies

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        signal.signal(signal.SIGUSR1, lambda *_: self._obey())
        vars(policies)["LADDER"] = LADDER
        Wakeful._open_store = staticmethod(self._open_store)
        Wakeful._assemble = staticmethod(self._assemble)

    async def _open_store(self, url: str) -> Opened:
        from wakeful.app import bootstrap

        opened = await bootstrap.open_store(url)
        clock = SteppedClock(opened.clock, self._control.clock)
        self._clocks.append(clock)
        return opened._replace(clock=clock, poll=POLL)

    async def _assemble(self, store: Store, clock: Clock, setup: Setup) -> Parts:
        from wakeful.app import bootstrap

        limits = replace(setup.limits, lease=LEASE, renew_every=RENEW_EVERY)
        return await bootstrap.assemble(store, clock, replace(setup, limits=limits, wrap_store=self._wrap))

    def _wrap(self, store: Store) -> Store:
        failing = FailingStore(store, _failpoint(self._control))
        self._stores.append(failing)
        return failing

    def _obey(self) -> None:
        self._control = control = Control.read(self._path)
        for store in self._stores:
            store.arm(_failpoint(control))
        for clock in self._clocks:
            clock.offset = control.clock
        limit = resource.RLIM_INFINITY if control.file_max is None else control.file_max
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))


def _failpoint(control: Control) -> Failpoint | None:
    return None if control.failpoint is None else Failpoint.parse(control.failpoint)


def run(home: Path, url: str, control: Path, ready: Callable[[], None]) -> None:
    """Run the daemon until it is told to stop, or its parent is gone."""
    from wakeful.server.daemon.process import run

    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    threading.Thread(target=end_with, args=(os.getppid(),), daemon=True).start()
    Disturbed(control).install()
    run(home, port=0, store=url, on_ready=lambda _: ready())


def end_with(parent: int) -> None:
    """End this process when its parent is gone: a drill that was killed leaves none behind."""
    while os.getppid() == parent:
        time.sleep(LOOK)
    os._exit(1)
