"""One request per distinct key: what several slots ask of the same key at the same time is asked once."""

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
    """Requests under way, by what they ask of whom."""

    def __init__(self) -> None:
        self._flights: dict[tuple[str, ...], _Flight[Any]] = {}

    async def ask(self, key: tuple[str, ...], request: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """The answer of the request under way for this key, or of a new one. It ends when nobody waits any more."""
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
            await asyncio.gather(flight.task, return_exceptions=True)  # whoever is told it ended, it has
        raise
