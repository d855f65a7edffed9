"""The clock of a simulated machine.

Theory of operation
-------------------
True time is the loop's, or is moved by hand (`testing.hand_time`). A `Wall` is the time that the machines of one world
see: an epoch plus true time, plus any steps, plus a drift. It can be wrong, and be corrected, at any moment. A
`VirtualClock` is the view of one process: the wall time, and a monotonic time that follows true time except while the
machine is suspended. As on a real machine, timers follow monotonic time, so after a suspend they fire late by wall
time.

Nodes of one world share a wall (as they share the clock of one database) and each have their own clock.
"""

import asyncio
from typing import Final, Protocol

from wakeful.core.time.instants import Duration, Instant
from wakeful.ports.clock import Moment

EPOCH: Final[Instant] = 1_767_225_600_000
"""2026-01-01T00:00:00Z, the default start of a world."""

_MILLION: Final = 1_000_000


class TrueTime(Protocol):
    """The source of virtual time."""

    @property
    def now_ms(self) -> int:
        """Milliseconds since its start."""
        ...

    async def sleep(self, duration: Duration) -> None:
        """Return after `duration`."""
        ...

    async def wait_until_set(self, bell: asyncio.Event, duration: Duration) -> bool:
        """Whether the event was set within `duration`."""
        ...


class Wall:
    """The wall time that the machines of a world see."""

    __slots__ = ("_offset", "_time", "drift_ppm")

    def __init__(self, time: TrueTime, epoch: Instant = EPOCH, *, drift_ppm: int = 0) -> None:
        self._time = time
        self._offset = epoch
        self.drift_ppm = drift_ppm

    def read(self) -> Instant:
        true = self._time.now_ms
        return self._offset + true + true * self.drift_ppm // _MILLION

    def step(self, by: Duration) -> None:
        """Move the wall time forward, or back with a negative amount; it cannot go below 1970."""
        self.set(self.read() + by)

    def set(self, now: Instant) -> None:
        """Set the wall time."""
        self._offset += max(now, 0) - self.read()


class VirtualClock:
    """The clock port on virtual time."""

    __slots__ = ("_started_ms", "_suspended", "_time", "wall")

    def __init__(self, time: TrueTime, epoch: Instant = EPOCH, *, wall: Wall | None = None, drift_ppm: int = 0) -> None:
        self.wall = wall or Wall(time, epoch, drift_ppm=drift_ppm)
        self._time = time
        self._started_ms = time.now_ms
        self._suspended = 0

    def read(self) -> Moment:
        return Moment(self.wall.read(), self._time.now_ms - self._started_ms - self._suspended, self._suspended)

    def is_before(self, moment: Moment) -> bool:
        now = self.read()
        return now.now < moment.now and now.monotonic < moment.monotonic

    def step(self, by: Duration) -> None:
        """Step the wall time; all clocks that share it see that."""
        self.wall.step(by)

    def set(self, now: Instant) -> None:
        """Set the wall time; all clocks that share it see that."""
        self.wall.set(now)

    def suspend(self, lasted: Duration) -> None:
        """The machine was suspended for the last `lasted` of true time, which monotonic time does not include."""
        self._suspended += lasted

    async def sleep(self, duration: Duration) -> None:
        until = self.read().monotonic + duration
        left = duration
        while True:
            await self._time.sleep(left)
            left = until - self.read().monotonic
            if left <= 0:  # otherwise it was suspended in between, and has to wait for the rest
                return

    async def wait(self, bell: asyncio.Event, duration: Duration) -> bool:
        until = self.read().monotonic + duration
        left = duration
        while not bell.is_set():
            if left <= 0:
                return False
            if not await self._time.wait_until_set(bell, left):
                left = until - self.read().monotonic
        return True
