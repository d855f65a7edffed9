"""Waiting for an event, by the event loop's clock."""

import asyncio

from wakeful.core.time.instants import Duration


async def wait_until_set(bell: asyncio.Event, duration: Duration) -> bool:
    """Whether the event was set within `duration`."""
    if bell.is_set():
        return True
    try:
        async with asyncio.timeout(duration / 1000):
            await bell.wait()
    except TimeoutError:
        return False
    return True
