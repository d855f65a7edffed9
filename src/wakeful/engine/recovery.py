"""Recovery: runs of dead nodes, and schedules that were planned while the clock was wrong.

Both work in small steps, one transaction each, and may stop anywhere: the same query finds what is left (which voided
nodes still own runs? which cadences are planned beyond now?).
"""

import asyncio
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from wakeful.core.run.effects import Alert
from wakeful.core.run.results import Ending, Lost, StuckRunEnded
from wakeful.core.run.runs import Run, rung_index
from wakeful.core.run.settlement import CRASH
from wakeful.core.schedule.policies import GRACE
from wakeful.core.time.instants import DAY, Duration, Instant
from wakeful.engine.orphans import OrphanInquiry
from wakeful.engine.settling import OfKind, conclude_all, lock_all
from wakeful.ports.action import NeverReceived, OrphanFate, Process, StillWorking, Told
from wakeful.ports.changes import RunsLost
from wakeful.ports.handlers import AlarmHandler, EngineHooks
from wakeful.ports.meta import Meta
from wakeful.ports.store import Store, StoreUnavailable, Tx

log = logging.getLogger("wakeful.engine")

STEP: Final = 200
CLOCK_HIGH: Final = "clock_high"
CLOCK_TRUSTED: Final = "clock_trusted"
LEAP_MAX: Final = 30 * DAY
STEADY_MIN: Final = DAY


class Rescued(NamedTuple):
    """One step of a rescue."""

    runs: int
    alerts: list[Alert]


async def rescue(store: Store, hooks: EngineHooks, inquiry: OrphanInquiry, *, now: Instant) -> list[Alert]:
    """Settle every run that a voided node still owns, after ending the processes it left on this machine.

    Runs whose target can report the result are asked about first, in the background: they stay as they are until the
    target has replied, and the next rescue settles them."""
    alerts: list[Alert] = []
    awaited: frozenset[int] = frozenset()
    while True:
        leftovers = await store.read(partial(_leftovers, limit=STEP + len(awaited)))
        awaited = await inquiry.ask(leftovers, now=now)
        lost = [run for run in leftovers if run.run_id not in awaited]
        if not lost:
            return alerts
        orphans = await _end_orphans(hooks, lost)
        results = inquiry.take(lost)
        settle_lost = partial(
            _settle_lost, hooks=hooks, now=now, limit=len(leftovers), orphans=orphans, results=results
        )
        try:
            step = await store.write(partial(settle_lost, wanted=frozenset(run.run_id for run in lost)))
        except StoreUnavailable:
            raise
        except Exception:  # one run is at fault; the others and the engine must continue (L9)
            return alerts + await _settle_each(store, settle_lost, lost)
        alerts += step.alerts
        if step.runs == 0:
            return alerts


async def _settle_each(store: Store, settle_lost: Callable[..., Rescued], lost: Sequence[Run]) -> list[Alert]:
    """Settle runs one by one; a run that fails stays as it is and is tried again at the next renewal."""
    alerts: list[Alert] = []
    for run in lost:
        try:
            alerts += (await store.write(partial(settle_lost, wanted=frozenset((run.run_id,))))).alerts
        except StoreUnavailable:
            raise
        except Exception:
            log.exception("cannot settle run %d of a dead node", run.run_id)
    return alerts


def _leftovers(tx: Tx, limit: int) -> list[Run]:
    nodes = tx.nodes.with_leftovers()
    return tx.runs.of_nodes(nodes, limit=limit) if nodes else []


async def _end_orphans(hooks: EngineHooks, lost: Sequence[Run]) -> Mapping[int, OrphanFate]:
    """End processes that dead nodes left, so that nothing runs twice in parallel. Returns the state of each process, by
    run."""
    started = [(run.run_id, process) for run in lost if (process := _process_of(run)) is not None]
    fates = await asyncio.gather(*(hooks.end_orphan(process) for _, process in started))
    return {run_id: fate for (run_id, _), fate in zip(started, fates, strict=True)}


def _process_of(run: Run) -> Process | None:
    """The process it started; None if the record cannot be read, because then there is nothing to end."""
    try:
        return None if run.process is None else Process(**json.loads(run.process))
    except (TypeError, ValueError):
        log.exception("run %d: cannot read the record of the process it started", run.run_id)
        return None


def _settle_lost(
    tx: Tx,
    hooks: EngineHooks,
    now: Instant,
    limit: int,
    orphans: Mapping[int, OrphanFate],
    results: Mapping[int, Told],
    wanted: frozenset[int],
) -> Rescued:
    # Only the runs that were prepared above: more may have been lost since.
    lost = [run for run in _leftovers(tx, limit) if run.run_id in wanted]
    locked = lock_all(tx, hooks, lost)
    rows = tx.runs.lock([run.run_id for run in lost])
    pairs = [
        (row, _ending(row, orphans.get(row.run_id), results.get(row.run_id), is_asked=row.run_id in results))
        for row in (rows[run.run_id] for run in lost)
        if (row.outcome == "running" or row.stuck) and not (row.stuck and orphans.get(row.run_id) == "remains")
    ]
    tx.changes.append(RunsLost([row.run_id for row, _ in pairs if row.outcome == "running"]))
    kinds = [
        OfKind(hooks.keepers[kind], kept, [pair for pair in pairs if pair[0].kind == kind])
        for kind, kept in locked.items()
    ]
    return Rescued(len(pairs), conclude_all(tx, hooks, kinds, now=now))


def _ending(row: Run, orphan: OrphanFate | None, result: Told, *, is_asked: bool) -> Ending:
    if row.stuck and (result is None or isinstance(result, StillWorking | NeverReceived)):
        # A process that was stuck is gone with its node; a remote run may still be working.
        return StuckRunEnded(is_seen=not is_asked)
    if orphan == "remains":
        return Lost(CRASH, "its node died, and the process it left behind could not be ended", is_over=False)
    match result:
        case None | StillWorking():
            return Lost(CRASH, "the node that ran it died or lost its lease", is_ended=orphan == "gone")
        case NeverReceived():
            # A request that was accepted and cannot be found now may still be on its way: no proof that it was lost.
            is_reached = rung_index(row.rung) >= rung_index("accepted")
            return Lost(CRASH, "the node that ran it died before its target received it", is_reached=is_reached)
        case _:
            return result


def read_clock_high(tx: Tx) -> Instant | None:
    """The latest time recorded in this store."""
    written = tx[Meta].value(CLOCK_HIGH)
    return None if written is None else int(written)


def is_trusted(tx: Tx, now: Instant, *, steady_for: Duration) -> bool:
    """Whether this clock may be used to delete data for good.

    Yes if it continues from where it was last trusted. After a leap (a machine that booted in 2036, or slept for
    months) only once it has run steadily for a day."""
    written = tx[Meta].value(CLOCK_TRUSTED)
    leap = 0 if written is None else abs(now - int(written))
    if leap > LEAP_MAX and steady_for < STEADY_MIN:
        return False
    tx[Meta].set(CLOCK_TRUSTED, str(now))
    return True


def note_clock(tx: Tx, now: Instant) -> None:
    """Record how far the clock got; the recorded value never decreases here."""
    high = read_clock_high(tx)
    if high is None or now > high:
        tx[Meta].set(CLOCK_HIGH, str(now))


async def turn_back(store: Store, hooks: EngineHooks, *, now: Instant, by: Duration) -> None:
    """The clock was ahead by `by` and went back: plan from now, bring waiting runs closer, reset the recorded high."""

    def finish(tx: Tx) -> None:
        # Retries that were planned on the wrong clock are due beyond its high.
        tx.alarms.shift_waiting(by=by, beyond=now + by - GRACE, now=now)
        tx[Meta].set(CLOCK_HIGH, str(now))

    for handler in hooks.alarms:
        try:
            await _turn_back(store, handler, now)
        except StoreUnavailable:
            raise
        except Exception:  # this handler's alarms stay as they are; the engine continues for all others (L9)
            log.exception("cannot replan alarms of kind %s", handler.kind)
    await store.write(finish)


async def _turn_back(store: Store, handler: AlarmHandler, now: Instant) -> None:
    after_id: int | None = 0
    while after_id is not None:
        after_id = await store.write(partial(handler.turn_back, now=now, after_id=after_id, limit=STEP))
