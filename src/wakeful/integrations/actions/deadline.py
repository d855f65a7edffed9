"""Time limits for ending processes and tasks, measured by the event loop's clock.

Not the clock port: these limits apply to real processes and tasks and are not used for planning, and an event loop on
virtual time makes them virtual too.
"""

import asyncio

from wakeful.core.time.instants import SECOND, Duration


class Deadline:
    """A duration that runs out."""

    def __init__(self, duration: Duration) -> None:
        self._over_at = asyncio.get_running_loop().time() + duration / SECOND

    @property
    def is_over(self) -> bool:
        return asyncio.get_running_loop().time() >= self._over_at


async def pause(duration: Duration) -> None:
    """Return after `duration`."""
    await asyncio.sleep(duration / SECOND)
