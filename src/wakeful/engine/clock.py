"""The system's clock behind the port."""

import asyncio
import time

from wakeful.adapters.bell import rung_within
from wakeful.core.instants import Duration
from wakeful.ports.clock import Moment


class SystemClock:
    """Wall and monotonic time of this machine."""

    def read(self) -> Moment:
        return Moment(time.time_ns() // 1_000_000, time.monotonic_ns() // 1_000_000)

    async def sleep(self, duration: Duration) -> None:
        await asyncio.sleep(duration / 1000)

    async def wait(self, bell: asyncio.Event, duration: Duration) -> bool:
        return await rung_within(bell, duration)
