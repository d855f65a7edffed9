"""Wakeful for plain scripts and threaded programs: the same methods, blocking.

There is no second implementation: a portal runs an event loop in its own thread and forwards each call.
"""

import asyncio
import inspect
import threading
from collections.abc import Callable, Coroutine
from functools import wraps
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from wakeful.app import Wakeful as AsyncWakeful
from wakeful.core.time.timing import Timing

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


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


class Blocking:
    """A blocking wrapper of an object: its coroutine methods wait for their results."""

    def __init__(self, portal: Portal, inner: Any) -> None:
        self._portal = portal
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._inner, name)
        if not inspect.iscoroutinefunction(attribute):
            return attribute

        @wraps(attribute)
        def blocking(*args: Any, **kwargs: Any) -> Any:
            return self._portal.call(attribute(*args, **kwargs))

        return blocking


class Wakeful:
    """The blocking form of `wakeful.Wakeful`, with the same methods."""

    def __init__(self, store: str | Path = "wakeful.db", **settings: Any) -> None:
        self._portal = Portal()
        try:
            self._app = self._portal.call(_make(store, settings))
        except BaseException:
            self._portal.close()
            raise

    @property
    def portal(self) -> Portal:
        """The portal that runs its event loop."""
        return self._portal

    @property
    def inner(self) -> AsyncWakeful:
        """The app on that loop."""
        return self._app

    def job(self, timing: Timing, slug: str | None = None, **options: Any) -> Callable[[F], F]:
        """Decorate a function to be called at these times."""
        return self._app.job(timing, slug, **options)

    def on_due(self, handler: F) -> F:
        """Set the function that is called for schedules without their own action."""
        return self._app.on_due(handler)

    def stop(self) -> None:
        """Stop, and end the portal's thread; this object cannot be used afterwards. Calling it twice is harmless."""
        if self._portal.is_open:
            self._portal.call(self._app.stop())
            self._portal.close()

    def __enter__(self) -> Self:
        try:
            self._portal.call(self._app.start())
        except BaseException:
            self._portal.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def workflow(self, name: str) -> Any:
        """A workflow: its decorators as they are, its other methods blocking."""
        return Blocking(self._portal, self._app.workflow(name))

    @property
    def workflows(self) -> Any:
        """All workflows."""
        return Blocking(self._portal, self._app.workflows)

    def __getattr__(self, name: str) -> Any:
        return getattr(Blocking(self._portal, self._app), name)


async def _make(store: str | Path, settings: dict[str, Any]) -> AsyncWakeful:
    """Created on the portal's loop."""
    return AsyncWakeful(store, **settings)
