"""Counts the calls of an empty handler."""

import asyncio
import threading


class Calls:
    """Waits for the last call; for handlers on one event loop."""

    def __init__(self, expected: int) -> None:
        self.expected = expected
        self.count = 0
        self._done = asyncio.Event()

    def note(self) -> None:
        """A call."""
        self.count += 1
        if self.count == self.expected:
            self._done.set()

    async def wait(self, within: float) -> None:
        """Wait for the last call."""
        async with asyncio.timeout(within):
            await self._done.wait()


class ThreadCalls:
    """The same for handlers that are called from several threads."""

    def __init__(self, expected: int) -> None:
        self.expected = expected
        self.count = 0
        self._lock = threading.Lock()
        self._done = threading.Event()

    def note(self) -> None:
        """A call."""
        with self._lock:
            self.count += 1
            if self.count == self.expected:
                self._done.set()

    def wait(self, within: float) -> None:
        """Wait for the last call."""
        if not self._done.wait(within):
            raise TimeoutError(f"{self.count} of {self.expected} calls came within {within} s")
