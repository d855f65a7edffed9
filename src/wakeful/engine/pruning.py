"""Pruning: the ledger is added up, and what is past its retention is deleted, one small batch at a time.

A batch runs beside the ticks, because it can take a tenth of a second on a busy machine: if a tick waited for it,
nothing that becomes due meanwhile could start. A batch that fails does not stop the clock either (L9). Each one belongs
to the tick that started it and uses its time, so the clock was checked for jumps before anything is deleted by it.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, NamedTuple

from wakeful.core.time.instants import SECOND, Duration, Instant
from wakeful.engine.cancels import Cancels
from wakeful.engine.incident_rows import Incidents
from wakeful.engine.limits import TRY_AGAIN
from wakeful.engine.merged_runs import MergedRuns
from wakeful.engine.recovery import is_trusted
from wakeful.engine.run_totals import RunTotals
from wakeful.ports.backfills import BackfilledRuns, Backfills
from wakeful.ports.charges import Charges
from wakeful.ports.clock import Moment
from wakeful.ports.handlers import Prune
from wakeful.ports.inbox import Inbox
from wakeful.ports.outbox import Deliveries
from wakeful.ports.store import Store, StoreUnavailable, Tx

log = logging.getLogger("wakeful.engine")

PRUNE_STEP: Final = 500
TOTAL_STEP: Final = 2_000
PRUNE_PAUSE: Final = SECOND


class PruneRequest(NamedTuple):
    """What a batch deletes: everything before `before`; the store has nothing from before `since`."""

    before: Instant
    since: Instant
    steady_for: Duration  # how long the clock has run without a jump


class Pruner:
    """At most one batch at a time; the engine's tick starts it."""

    def __init__(
        self, store: Store, every: Duration, ring_bell: Callable[[], None], prunes: Sequence[Prune] = ()
    ) -> None:
        self._store = store
        self._prunes = prunes  # of the features
        self._every = every
        self._ring_bell = ring_bell
        self._task: asyncio.Task[None] | None = None
        self._due_at = 0  # monotonic

    @property
    def next_at(self) -> int | None:
        """The monotonic time of the next batch; None while one is in progress: its end sets the bell if there is more
        to do soon."""
        return self._due_at if self._task is None else None

    @property
    def under_way(self) -> dict[asyncio.Task[None], str]:
        """The batch in progress."""
        return {} if self._task is None else {self._task: "pruning"}

    def look_at(self, monotonic: int) -> None:
        """Start the next batch at this time, and not when it would be due."""
        self._due_at = monotonic

    def start(self, moment: Moment, request: PruneRequest) -> None:
        """Start a batch. There must be none in progress."""
        self._due_at = moment.monotonic + self._every
        self._task = asyncio.create_task(self._prune(moment, request), name="wakeful-pruning")

    async def stop(self) -> None:
        """Do not wait for the batch in progress: the next start continues."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _prune(self, moment: Moment, request: PruneRequest) -> None:
        pause = None
        try:
            if await self._store.write(partial(prune, now=moment.now, request=request, others=self._prunes)):
                pause = PRUNE_PAUSE
        except StoreUnavailable as error:
            log.warning("the ledger cannot be pruned yet, trying again: %s", error)
            pause = TRY_AGAIN
        except Exception:
            log.exception("the ledger cannot be pruned; trying again later")
        finally:
            self._task = None
        if pause is not None:
            self._due_at = min(self._due_at, moment.monotonic + pause)
        if self._due_at < moment.monotonic + self._every:
            self._ring_bell()


def prune(tx: Tx, *, now: Instant, request: PruneRequest, others: Sequence[Prune] = ()) -> int:
    """Prune one batch; more than zero: there may be more to do."""
    before, since, steady_for = request
    totalled = tx[RunTotals].advance(now=now, limit=TOTAL_STEP)
    more = totalled if totalled == TOTAL_STEP else 0
    if not is_trusted(tx, now, steady_for=steady_for):
        return more
    tx.nodes.prune(before=before)
    steps = (
        tx.runs.prune,
        *(tx[table].prune for table in (Deliveries, Inbox, Incidents, Charges, Cancels, MergedRuns)),
        *(tx[table].prune for table in (BackfilledRuns, Backfills)),
    )
    of_ledger = max(step(before=before, limit=PRUNE_STEP, since=since) for step in steps)
    return max(more, of_ledger, *(prune_other(tx, now, PRUNE_STEP) for prune_other in others))
