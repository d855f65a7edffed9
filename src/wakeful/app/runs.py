"""Runs: wait for their end, and the receipts that prove how far they got."""

from datetime import timedelta
from typing import Any, Final

from wakeful.app.lifecycle import AppLifecycle
from wakeful.core.refusals import Conflict
from wakeful.core.run.runs import OPEN
from wakeful.core.time.instants import SECOND, Duration
from wakeful.core.time.timing_builders import as_duration
from wakeful.features.schedules import queries
from wakeful.features.schedules.run_views import RunView
from wakeful.integrations.actions.receipts import Posted, Receipts

LOOK_EVERY: Final[Duration] = 20
"""How often the row of a run is read whose end this process does not hear of, because another one ticks."""
LOOK_ANYWAY: Final[Duration] = SECOND // 2
"""The same where this process ticks, and no other can."""
LOOK_AT_OTHERS: Final[Duration] = SECOND // 10
"""The same where this process ticks, and another one may have the run."""


class Runs(AppLifecycle):
    """What is more than an operation on the ledger."""

    async def wait_for(self, run_id: int, *, within: str | timedelta = "60s") -> RunView:
        """Return the run when it has ended; raises `Conflict` if that takes longer than `within`."""
        give_up = self._clock.read().monotonic + as_duration(within, "within")
        with self._run_endings.bell_of(run_id, self._bus.fan_out) as ended:
            while True:
                ended.clear()
                run = await self._open.store.read(lambda tx: queries.run(tx, run_id))
                if run.outcome not in OPEN:
                    return run
                left = give_up - self._clock.read().monotonic
                if left <= 0:
                    raise Conflict(f"run {run_id} is still {run.outcome} after {within}")
                await self._clock.wait(ended, min(left, self._looks_every()))

    def _looks_every(self) -> Duration:
        if not self._is_ticking or not self._bus.is_connected:
            return LOOK_EVERY
        return LOOK_ANYWAY if self._open.store.is_exclusive else LOOK_AT_OTHERS

    async def _post_receipt(
        self, run_id: int, token: str, rung: Any, text: object = None, usage: object = None, error: object = None
    ) -> Posted:
        """Accept what the target of a run reports; a final receipt also corrects a run that was closed without one."""
        parts = self._ending or self._open
        if parts.receipts is None:
            return "forged"
        return await parts.receipts.post(run_id, token, rung, text, usage, error, late=parts.prove_late)

    @property
    def _receipts(self) -> Receipts | None:
        return (self._ending or self._open).receipts  # a run that gets its grace may be waiting for just this
