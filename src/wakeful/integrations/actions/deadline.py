"""How long we wait for what has to end: measured by the event loop's own clock.

Not the clock port: these are moments granted to real processes and tasks, not times that anything is planned by, and
an event loop on virtual time makes them virtual too.
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


async def happens_within(duration: Duration, bell: asyncio.Event) -> bool:
    """True when the bell is set, False after `duration`, whichever is first."""
    try:
        async with asyncio.timeout(duration / SECOND):
            await bell.wait()
    except TimeoutError:
        return bell.is_set()
    return True
