"""Makes each day's forecast, so that it can be compared with what happened."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from wakeful.core.time.instants import HOUR, MINUTE

if TYPE_CHECKING:
    from wakeful.api.python import Wakeful

log = logging.getLogger("wakeful.server.daemon")

FIRST_AFTER: Final = 10 * MINUTE
"""After a start there is more urgent work."""
LOOK_EVERY: Final = HOUR


class DailyForecast:
    """A background service that makes each day's forecast."""

    def __init__(self, app: Wakeful) -> None:
        self._app = app
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="wakeful-forecast")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None

    async def _run(self) -> None:
        await self._app.sleep(FIRST_AFTER)
        while True:
            try:
                await self._app._forecast_daily()
            except Exception:  # a forecast is never a reason to stop
                log.exception("today's forecast failed; it will be tried again later")
            await self._app.sleep(LOOK_EVERY)
