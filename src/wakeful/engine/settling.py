"""Settling: writes outcome, lane, alarm and effects of ended attempts in one transaction, if the fence is valid."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from wakeful.core.run.effects import Alert, Effect
from wakeful.core.run.results import Ending, StuckRunEnded, masked
from wakeful.core.run.runs import Attempt, Run, RunKind
from wakeful.core.run.settlement import Close, Wait
from wakeful.core.run.transitions import closed, ended_attempt, waiting
from wakeful.core.time.instants import Instant
from wakeful.ports.handlers import EngineHooks, RunKeeper
from wakeful.ports.store import ALARM_RUN, Alarm, Tx


class Ended(NamedTuple):
    """An attempt of this node that ended: the row as claimed, and how it ended."""

    run: Run
    ending: Ending


class SettleResult(NamedTuple):
    """For each ending, whether it still counted; and the alerts to send."""

    counted: list[bool]
    alerts: list[Alert]


class OfKind(NamedTuple):
    """Ended runs of one kind, locked, and their owners, which were locked before them."""

    keeper: RunKeeper
    locked: Any
    pairs: Sequence[tuple[Run, Ending]]


def settle(tx: Tx, hooks: EngineHooks, ended: Sequence[Ended], *, node_id: int, now: Instant) -> SettleResult:
    """Settle the runs this node still holds; a run that another node took is left alone (L6)."""
    locked = lock_all(tx, hooks, [item.run for item in ended])
    rows = _held(tx, ended, node_id)
    kinds = [
        OfKind(
            hooks.keepers[kind],
            kept,
            [(rows[run.run_id], ending) for run, ending in ended if run.kind == kind and run.run_id in rows],
        )
        for kind, kept in locked.items()
    ]
    alerts = conclude_all(tx, hooks, kinds, now=now)
    return SettleResult([item.run.run_id in rows for item in ended], alerts)


def lock_all(tx: Tx, hooks: EngineHooks, runs: Sequence[Run]) -> dict[RunKind, Any]:
    """Lock the owners of these runs before any run: kind by kind, in the same order everywhere."""
    kinds = sorted({run.kind for run in runs})
    return {kind: hooks.keepers[kind].lock(tx, [run for run in runs if run.kind == kind]) for kind in kinds}


def conclude(
    tx: Tx, hooks: EngineHooks, keeper: RunKeeper, locked: Any, pairs: Sequence[tuple[Run, Ending]], *, now: Instant
) -> list[Alert]:
    """Conclude runs of one kind."""
    return conclude_all(tx, hooks, [OfKind(keeper, locked, pairs)], now=now)


def conclude_all(tx: Tx, hooks: EngineHooks, kinds: Sequence[OfKind], *, now: Instant) -> list[Alert]:
    """Let the keepers decide, then write rows, attempts, alarms and lanes, and apply the effects. All keepers come
    before the first lane: they may lock further runs, and lanes are locked after all runs."""
    if hooks.redact is not None:
        kinds = [group._replace(pairs=_masked(group.pairs, hooks.redact)) for group in kinds]
    pairs = [pair for group in kinds for pair in group.pairs]
    if not pairs:
        return []
    settled = [
        fate for keeper, locked, of_kind in kinds if of_kind for fate in keeper.settle(tx, locked, of_kind, now=now)
    ]
    rows: list[Run] = []
    done: list[Run] = []
    attempts: list[Attempt] = []
    alarms: list[Alarm] = []
    freed: list[tuple[str, int]] = []
    silenced: list[int] = []
    for (run, _), decision in zip(pairs, settled, strict=True):
        is_stuck = False
        match decision.settlement:
            case Close(stuck=is_stuck) as close:
                (rows if is_stuck else done).append(closed(run, close, now=now, result=decision.result))
                if run.outcome == "waiting":
                    silenced.append(run.run_id)
            case Wait(until=until) as wait:
                rows.append(waiting(run, wait, result=decision.result))
                attempts.append(ended_attempt(run, wait, now=now))
                alarms.append(Alarm(ALARM_RUN, run.run_id, until, run.priority, run.lane, 0))
        if run.lane is not None and not is_stuck:
            freed.append((run.lane, run.run_id))
    if done:
        tx.runs.close_many(sorted(done))
    if rows:
        tx.runs.save_many(sorted(rows))
    if attempts:
        tx.runs.add_attempts(sorted(attempts))
        tx.alarms.set_many(sorted(alarms, key=lambda alarm: alarm.ref))
    if silenced:
        tx.alarms.remove_many(ALARM_RUN, sorted(silenced))
    if freed:
        tx.lanes.free_many(sorted(freed))
    return apply(tx, hooks, [effect for decision in settled for effect in decision.effects], now)


def apply(tx: Tx, hooks: EngineHooks, effects: Sequence[Effect], now: Instant) -> list[Alert]:
    """Apply effects in the transaction of what caused them. Returns the alerts, to be sent after the commit."""
    alerts: list[Alert] = []
    for effect in effects:
        if isinstance(effect, Alert):
            alerts.append(effect)
        applier = hooks.appliers.get(type(effect))
        if applier is not None:
            applier(tx, effect, now)
    return alerts


def _held(tx: Tx, ended: Sequence[Ended], node_id: int) -> dict[int, Run]:
    """The rows that are still ours under the fence of the claim."""
    running = {item.run.run_id: item.run for item in ended if not isinstance(item.ending, StuckRunEnded)}
    rows = tx.runs.held(node_id, running) if running else {}
    stuck = {item.run.run_id: item.run.fence for item in ended if isinstance(item.ending, StuckRunEnded)}
    if stuck:
        for row in tx.runs.lock(sorted(stuck)).values():
            if row.stuck and row.owner == node_id and row.fence == stuck[row.run_id]:
                rows[row.run_id] = row
    return rows


def _masked(pairs: Sequence[tuple[Run, Ending]], redact: Callable[[str], str]) -> list[tuple[Run, Ending]]:
    return [(run, masked(ending, redact)) for run, ending in pairs]
