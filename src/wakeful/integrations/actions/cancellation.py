"""Cancellation: finishing cleanup in spite of it, and recording that it proves nothing about a remote target."""

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

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
