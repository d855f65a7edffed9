"""Whether the clock runs and the store can be written, asked often and answered at a bounded cost."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from wakeful.core.time.instants import SECOND, Duration, format_duration
from wakeful.features.schedules.health import Finding
from wakeful.features.schedules.health_view import FAILING, HealthView, view_of
from wakeful.ports.store import StoreUnavailable

if TYPE_CHECKING:
    from wakeful.api.python import Wakeful

PATIENCE: Final[Duration] = 5 * SECOND
"""A store that has not responded within this time counts as unusable."""


class Writable:
    """Whether the store can be written. Anybody may ask, and each answer costs a write, so they share one a second."""

    def __init__(self, monotonic: Callable[[], int], probe: Callable[[], Awaitable[Finding]]) -> None:
        self._monotonic, self._probe = monotonic, probe
        self._lock = asyncio.Lock()
        self._found: tuple[int, Finding] | None = None  # monotonic

    async def look(self) -> Finding:
        async with self._lock:
            now = self._monotonic()
            if self._found is None or now - self._found[0] >= SECOND:
                self._found = now, await self._probe()
            return self._found[1]


async def health_of(app: "Wakeful") -> HealthView:
    """The health of an app that has started."""
    writable = await app._writable.look()
    try:
        async with asyncio.timeout(PATIENCE / SECOND):
            pulse, health = await app._pulse(), await app._health()
    except (StoreUnavailable, TimeoutError) as error:
        silent = f"no response within {format_duration(PATIENCE)}; another session may hold a lock on its tables"
        wrong = [f"the store cannot be read: {str(error) or silent}"]
        return HealthView(FAILING, wrong, is_store_writable=writable.level != "bad")
    return view_of(health, pulse.stuck, writable)
