"""Places: a few requests are in progress at a time, and the others wait for a place.

All requests share the event loop, the interpreter and the store with the engine. With 200 busy clients and no limit,
one pass of the loop took a tenth of a second, and a claim waited behind 200 writes: nothing that was due could start in
the meantime. Requests are not slower with fewer at a time, because they use the same processor.

A request has its place until its response begins, but not longer than `KEPT_FOR`: by then it waits for something else,
such as the end of a run, and takes no time from the others. One that is not authenticated has none while it waits for
its body: hundreds that never send theirs would make all others wait.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable
from typing import Final, TypeVar

T = TypeVar("T")

PLACES: Final = 32
KEPT_FOR: Final = 0.25


class Place:
    """The place of one request."""

    __slots__ = ("_kept_for", "_places", "_timer")

    def __init__(self, places: "Places", kept_for: float) -> None:
        self._places = places
        self._kept_for = kept_for
        self._timer: asyncio.TimerHandle | None = None
        self._keep()

    def leave(self) -> None:
        """Let another request begin. Calling it twice is harmless."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._places.pass_on()

    async def without(self, awaited: Awaitable[T]) -> T:
        """Wait for this without the place, and then for a place again."""
        self.leave()
        result = await awaited
        await self._places.wait()
        self._keep()
        return result

    def _keep(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._kept_for, self.leave)


class Places:
    """Requests get their place in the order in which they arrived. Belongs to the loop on which it is used."""

    def __init__(self, n: int = PLACES, *, kept_for: float = KEPT_FOR) -> None:
        self._free = n
        self._kept_for = kept_for
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def take(self) -> Place:
        """Wait for a place, and take it."""
        await self.wait()
        return Place(self, self._kept_for)

    async def wait(self) -> None:
        """Wait until there is a place for the caller."""
        if self._free > 0:
            self._free -= 1
        else:
            turn = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                if not turn.cancelled():  # it was given the place at the same moment
                    self.pass_on()
                raise

    def pass_on(self) -> None:
        """Give a place that was left to the request that waits longest."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1
