"""Finishing cleanup despite cancellation."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def see_through(work: Coroutine[Any, Any, T]) -> T:
    """Await the work to its end, even if cancelled again meanwhile.

    Only for ending processes and tasks: that is bounded by its own grace period, and interrupted it proves nothing.
    """
    task = asyncio.ensure_future(work)
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            continue
    return task.result()
