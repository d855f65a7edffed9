"""The clock port: the only place where time comes from (L10)."""

import asyncio
from typing import NamedTuple, Protocol

from wakeful.core.time.instants import Duration, Instant


class Moment(NamedTuple):
    """One reading of the clock: the wall for what is planned, the monotonic side for what must take a duration."""

    now: Instant
    monotonic: int
    slept: Duration = 0  # how long the machine was suspended, in all; the monotonic side does not count it


class Clock(Protocol):
    """Reads time, and waits for it."""

    def read(self) -> Moment:
        """Both sides of the clock, read together."""
        ...

    async def sleep(self, duration: Duration) -> None:
        """Return after `duration`."""
        ...

    async def wait(self, bell: asyncio.Event, duration: Duration) -> bool:
        """Return True when the bell is set, False after `duration`, whichever is first."""
        ...
