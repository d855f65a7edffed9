"""The system clock as an implementation of the `Clock` port."""

import asyncio
import time

from wakeful.core.time.instants import Duration
from wakeful.integrations.system.suspend import slept_ms
from wakeful.integrations.system.waiting import wait_until_set
from wakeful.ports.clock import Moment


class SystemClock:
    """Wall and monotonic time of this machine."""

    def read(self) -> Moment:
        monotonic_ns = time.monotonic_ns()
        return Moment(time.time_ns() // 1_000_000, monotonic_ns // 1_000_000, slept_ms(monotonic_ns))

    def is_before(self, moment: Moment) -> bool:
        return time.monotonic_ns() < moment.monotonic * 1_000_000 and time.time_ns() < moment.now * 1_000_000

    async def sleep(self, duration: Duration) -> None:
        await asyncio.sleep(duration / 1000)

    async def wait(self, bell: asyncio.Event, duration: Duration) -> bool:
        return await wait_until_set(bell, duration)
