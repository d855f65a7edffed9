"""The slots' health check: finds and restarts stuck slots.

A slot depends on three alarms and sometimes on one run. All are derived from its row, so anything missing or wrong is
found by deriving it again. Our own code should never cause that, but a database that was repaired, edited by hand or
restored may.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from wakeful.core.slot.slot import Slot
from wakeful.core.time.instants import MINUTE, Duration, Instant
from wakeful.features.quota.registry import Defined
from wakeful.features.quota.rows import sides
from wakeful.ports.clock import Clock
from wakeful.ports.slots import ALARM_POLL, ALARM_WAKE
from wakeful.ports.store import StoreUnavailable, Tx

log = logging.getLogger("wakeful.quota")

CHECK_EVERY: Final[Duration] = 5 * MINUTE
OUT_OF_PLACE: Final[Duration] = MINUTE


def restarted(tx: Tx, slot: Slot, defined: Defined, *, now: Instant) -> Slot | None:
    """The corrected slot if something is stuck; None if nothing is."""
    after = slot
    if slot.wake_run_id is not None:
        run = tx.runs.lock([slot.wake_run_id]).get(slot.wake_run_id)
        if run is None or not (run.is_open or run.stuck):
            after = after._replace(wake_run_id=None)  # it ended without updating the slot
    at = sides(after, defined.rules, now=now, has_statistics=defined.provider.has_statistics)
    wanted = {ALARM_WAKE: at.wake_at, ALARM_POLL: at.poll_at}
    for kind, due_at in wanted.items():
        alarm = tx.alarms.by_refs(kind, [slot.slot_id]).get(slot.slot_id)
        is_there = alarm is not None and alarm.due_at is not None and alarm.parked == 0
        if due_at is not None and (not is_there or (alarm and (alarm.due_at or 0) > due_at + OUT_OF_PLACE)):
            return after
    return None if after is slot else after


class SlotWatch:
    """Checks slots periodically in the background."""

    def __init__(self, clock: Clock, check_up: Callable[[], Awaitable[None]]) -> None:
        self._clock = clock
        self._check_up = check_up
        self._ended = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._ended.clear()
        self._task = asyncio.create_task(self._run(), name="wakeful-slots")

    async def stop(self) -> None:
        self._ended.set()
        if self._task is not None:
            await asyncio.wait([self._task])
            self._task = None

    async def _run(self) -> None:
        while not await self._clock.wait(self._ended, CHECK_EVERY):
            try:
                await self._check_up()
            except StoreUnavailable as error:
                log.warning("slot health check failed: %s", error)
            except Exception:
                log.exception("slot health check failed")
