"""Starting from a restored backup: nothing is repeated that may have been done since the backup.

A backup carries a marker with its time. Runs that were open in the backup become `unknown`, because they continued
elsewhere; the instants between the backup and now become one `missed(restored)` row per schedule, because it is unknown
which of them ran. Then the marker is removed. All of this happens in small steps and may be interrupted anywhere.
"""

import logging
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from wakeful.core.run.results import Forgotten
from wakeful.core.run.runs import Run
from wakeful.core.schedule.cadence import Gap, forgo
from wakeful.core.time.instants import Instant, format_instant
from wakeful.engine.planning import taken_ahead
from wakeful.engine.settling import conclude
from wakeful.engine.store_rollback import COPIED_AT, FOUND_OLDER
from wakeful.features.schedules.alarms import decided, record
from wakeful.features.schedules.compiled import Compilations, Compiled
from wakeful.ports.handlers import EngineHooks, Forgo
from wakeful.ports.meta import Meta
from wakeful.ports.store import Store, Tx

log = logging.getLogger("wakeful.schedules")

RESTORED: Final = "restored"
STEP: Final = 200


class Adopted(NamedTuple):
    """What was adopted from a backup: open runs and missed instants."""

    copied_at: Instant
    runs: int
    instants: int


async def adopt_copy(
    store: Store, hooks: EngineHooks, compilations: Compilations, also: Sequence[Forgo], now: Instant
) -> Adopted | None:
    """Adopt the store if it carries a backup marker; None if it is not a restored backup."""
    written = await store.read(lambda tx: tx[Meta].value(COPIED_AT))
    if not written:
        return None
    copied_at = int(written)
    runs = 0
    while closed := await store.write(lambda tx: _close_open(tx, hooks, written, now)):
        runs += closed
    instants = 0
    after: str | None = ""
    while after is not None:
        step = await store.write(lambda tx, after=after: _forgo(tx, compilations, written, after, now))  # type: ignore[misc]
        after, counted = step
        instants += counted
    for forgo_its_own in also:
        instants += await store.write(partial(_unless_done, written, forgo_its_own, now))
    await store.write(partial(_clear, written))
    adopted = Adopted(copied_at, runs, instants)
    log.warning(
        "this store was restored from a backup of %s: %d open runs are now unknown, %d instants since are missed",
        _in_words(copied_at),
        runs,
        instants,
    )
    return adopted


def take_found_older(tx: Tx) -> str | None:
    """When the database was current, if it was found to be older than the one that was there; said once."""
    written = tx[Meta].value(FOUND_OLDER)
    if written:
        tx[Meta].set(FOUND_OLDER, "")
    return _in_words(int(written)) if written else None


def _in_words(copied_at: Instant) -> str:
    return format_instant(copied_at) if copied_at else "its creation"


def _is_done(tx: Tx, written: str) -> bool:
    """Whether another node has finished adopting the same backup: runs that are open now are its own."""
    return tx[Meta].value(COPIED_AT) != written


def _unless_done(written: str, forgo_its_own: Forgo, now: Instant, tx: Tx) -> int:
    return 0 if _is_done(tx, written) else forgo_its_own(tx, now)


def _clear(written: str, tx: Tx) -> None:
    if not _is_done(tx, written):
        tx[Meta].set(COPIED_AT, "")


def _close_open(tx: Tx, hooks: EngineHooks, written: str, now: Instant) -> int:
    """One step: close runs that were running or waiting when the backup was made."""
    if _is_done(tx, written):
        return 0
    copied_at = int(written)
    rows = tx.runs.page(limit=STEP, outcome="running") + tx.runs.page(limit=STEP, outcome="waiting")
    by_kind: dict[str, list[Run]] = {}
    for row in rows:
        by_kind.setdefault(row.kind, []).append(row)
    closed = 0
    ending = Forgotten(RESTORED, f"it was open in the backup of {format_instant(copied_at)}")
    for kind, of_kind in by_kind.items():
        keeper = hooks.keepers.get(kind)
        if keeper is None:
            continue  # no feature here handles this kind; a node that has it will recover the run
        locked = keeper.lock(tx, of_kind)
        held = tx.runs.lock([row.run_id for row in of_kind])
        conclude(tx, hooks, keeper, locked, [(held[row.run_id], ending) for row in of_kind], now=now)
        closed += len(of_kind)
    return closed


def _forgo(tx: Tx, compilations: Compilations, written: str, after: str, now: Instant) -> tuple[str | None, int]:
    """One step over the schedules in slug order; returns where to continue, and how many instants were missed."""
    if _is_done(tx, written):
        return None, 0
    schedules = tx.schedules.page(after=after or None, limit=STEP)
    if not schedules:
        return None, 0
    cadences = tx.cadences.lock([schedule.schedule_id for schedule in schedules])
    compiled: Mapping[int, object] = compilations.of(tx, [(c.schedule_id, c.version) for c in cadences.values()])
    plans = [
        decided(forgo(cadence, known.rules, RESTORED, now=now, taken=taken_ahead(tx, cadence, now)), known, cadence)
        for schedule_id, cadence in sorted(cadences.items())
        if isinstance(known := compiled.get(schedule_id), Compiled) and cadence.planned_through < now
    ]
    if plans:
        record(tx, plans, now=now)
    counted = sum(row.instants for plan in plans for row in plan.rows if isinstance(row, Gap))
    return schedules[-1].slug, counted
