"""An event loop in a thread of its own, for programs that have none."""

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Portal:
    """An event loop in a thread; `call` runs a coroutine there and waits for its result."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="wakeful-portal", daemon=True)
        self._thread.start()

    @property
    def is_open(self) -> bool:
        return not self._loop.is_closed()

    def call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        if threading.current_thread() is self._thread:  # it would deadlock
            coroutine.close()
            raise RuntimeError("an async handler cannot call the blocking API; make the handler a plain function")
        if not self.is_open:
            coroutine.close()
            raise RuntimeError("stopped; create a new Wakeful to continue")
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def close(self) -> None:
        """End the thread. Calling it twice is harmless."""
        if not self.is_open:
            return
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class OverPortal:
    """An app whose methods wait for their results."""

    portal: Portal
    inner: Any
