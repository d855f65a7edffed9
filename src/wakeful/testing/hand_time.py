"""Time that stops until it is moved, on an ordinary event loop.

Theory of operation
-------------------
Everything that waits for time is in a list with its deadline. `move_to` sets the time and ends the waits that are due.
The code that moves the time must know what else would happen before that: `is_waiting` and `is_asleep` return that for
one task, `next_at` is the next deadline.

A guest is code that is not part of the simulation, such as a test: `has_guests` tells whether one is waiting.

A sleeping task waits only for time. A task that waits for an event with a timeout may be waiting for real work, so only
`is_asleep` proves that a task cannot continue before the time is moved.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from wakeful.core.time.instants import Duration


class _Wait:
    """One wait, and how to end it."""

    __slots__ = ("deadline", "is_guest", "is_sleep", "limit", "task")

    def __init__(self, deadline: int, limit: asyncio.Timeout, *, is_sleep: bool, is_guest: bool) -> None:
        self.deadline = deadline
        self.limit = limit
        self.is_sleep = is_sleep
        self.is_guest = is_guest
        self.task: asyncio.Task[Any] | None = asyncio.current_task()


class HandTime:
    """See `testing.virtual_clock.TrueTime`."""

    def __init__(self, is_guest: Callable[[], bool]) -> None:
        self._is_guest = is_guest  # whether the running code is a guest
        self.now_ms = 0
        self._watchers: list[asyncio.Future[None]] = []
        self._waits: dict[_Wait, None] = {}  # in the order in which they started

    def is_waiting(self, task: "asyncio.Task[Any]") -> bool:
        """Whether it waits for time, alone or together with an event."""
        return any(wait.task is task for wait in self._waits)

    def is_asleep(self, task: "asyncio.Task[Any]") -> bool:
        """Whether only time can wake it."""
        return any(wait.task is task and wait.is_sleep for wait in self._waits)

    @property
    def has_guest_waits(self) -> bool:
        return any(wait.is_guest for wait in self._waits)

    def next_wait(self) -> "asyncio.Future[None]":
        """A future that is resolved when something starts to wait."""
        watcher: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._watchers.append(watcher)
        return watcher

    def next_at(self) -> int | None:
        """When the next wait ends."""
        return min((wait.deadline for wait in self._waits), default=None)

    def move_to(self, now_ms: int) -> None:
        """Set the time, and end the waits that are due, earliest first."""
        self.now_ms = max(self.now_ms, now_ms)
        due = sorted((wait for wait in self._waits if wait.deadline <= self.now_ms), key=lambda wait: wait.deadline)
        for wait in due:
            del self._waits[wait]
            wait.limit.reschedule(asyncio.get_running_loop().time())

    async def sleep(self, duration: Duration) -> None:
        await self._wait(asyncio.Event(), duration, is_sleep=True)

    async def wait_until_set(self, bell: asyncio.Event, duration: Duration) -> bool:
        return await self._wait(bell, duration, is_sleep=False)

    async def _wait(self, bell: asyncio.Event, duration: Duration, *, is_sleep: bool) -> bool:
        if bell.is_set():
            return True
        if duration <= 0:
            await asyncio.sleep(0)
            return bell.is_set()
        try:
            async with asyncio.timeout(None) as limit:
                wait = _Wait(self.now_ms + duration, limit, is_sleep=is_sleep, is_guest=self._is_guest())
                with self._listed(wait):
                    await bell.wait()
        except TimeoutError:
            return False
        return True

    @contextmanager
    def _listed(self, wait: _Wait) -> Iterator[None]:
        self._waits[wait] = None
        watchers, self._watchers = self._watchers, []
        for watcher in watchers:
            if not watcher.done():
                watcher.set_result(None)
        try:
            yield
        finally:
            self._waits.pop(wait, None)
