"""Cancellation: finishing cleanup in spite of it, and recording that it proves nothing about a remote target."""

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from wakeful.core.time.instants import SECOND, Duration
from wakeful.ports.action import Detached

T = TypeVar("T")


async def run_to_end(work: Coroutine[Any, Any, T]) -> T:
    """Await the work to its end, even if cancelled again meanwhile.

    Only for ending processes and tasks: that work has its own grace period, and proves nothing if interrupted.
    """
    task = asyncio.ensure_future(work)
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            continue
    return task.result()


@contextmanager
def remote() -> Iterator[None]:
    """While a remote target works: cancellation closes the connection, and does not prove that the target stopped."""
    try:
        yield
    except asyncio.CancelledError:
        raise Detached from None


class Deadline:
    """A duration that runs out, by the event loop's clock and not by the clock port: it is the time that real processes
    and tasks get to end, no part of a plan. An event loop on virtual time makes it virtual too."""

    def __init__(self, duration: Duration) -> None:
        self._over_at = asyncio.get_running_loop().time() + duration / SECOND

    @property
    def is_over(self) -> bool:
        return asyncio.get_running_loop().time() >= self._over_at


async def pause(duration: Duration) -> None:
    """Return after `duration`."""
    await asyncio.sleep(duration / SECOND)
