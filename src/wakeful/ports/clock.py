"""The clock port: the only source of time (L10)."""

import asyncio
from typing import NamedTuple, Protocol

from wakeful.core.time.instants import Duration, Instant


class Moment(NamedTuple):
    """One reading of the clock: wall time for planning, monotonic time for measuring durations."""

    now: Instant
    monotonic: int
    slept: Duration = 0  # total time the machine was suspended, which monotonic time does not include


class Clock(Protocol):
    """Reads the time, and waits."""

    def read(self) -> Moment:
        """Wall and monotonic time, read together."""
        ...

    def is_before(self, moment: Moment) -> bool:
        """Whether wall and monotonic time are both before this moment: `read`, without making a `Moment`."""
        ...

    async def sleep(self, duration: Duration) -> None:
        """Return after `duration`."""
        ...

    async def wait(self, bell: asyncio.Event, duration: Duration) -> bool:
        """Return True when the bell is set, False after `duration`, whichever is first."""
        ...
