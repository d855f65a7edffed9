"""One request per distinct key: concurrent identical requests of several slots are sent once."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class _Flight(Generic[T]):
    __slots__ = ("task", "waiting")

    def __init__(self, task: "asyncio.Task[T]") -> None:
        self.task = task
        self.waiting = 0


class Sharing:
    """Requests in flight, by key."""

    def __init__(self) -> None:
        self._flights: dict[tuple[str, ...], _Flight[Any]] = {}

    async def ask(self, key: tuple[str, ...], request: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """The result of the request in flight for this key, or of a new one. It is cancelled when no caller waits."""
        flight = self._flights.get(key)
        if flight is None:
            flight = self._flights[key] = _Flight(asyncio.ensure_future(request()))
            flight.task.add_done_callback(lambda _: self._flights.pop(key, None))
        flight.waiting += 1
        try:
            return await _unless_cancelled(flight)
        finally:
            flight.waiting -= 1


async def _unless_cancelled(flight: _Flight[T]) -> T:
    waiting: Awaitable[T] = asyncio.shield(flight.task)
    try:
        return await waiting
    except asyncio.CancelledError:
        if flight.waiting == 1 and not flight.task.done():
            flight.task.cancel()
            await asyncio.gather(flight.task, return_exceptions=True)  # do not return before it has ended
        raise
