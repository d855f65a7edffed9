"""The rows of the heartbeat: locked together, written together, with the alarm derived from them."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from wakeful.core.heartbeat.heartbeat import OUTSIDE, BeatRules, Heartbeat, rings_at
from wakeful.core.refusals import Conflict
from wakeful.core.run.runs import Run
from wakeful.core.schedule.cadence import Cadence, Gap, is_turned, stretch_of
from wakeful.core.time.instants import Instant
from wakeful.features.heartbeat.rules import HEARTBEAT, TURN
from wakeful.ports.heartbeats import Heartbeats
from wakeful.ports.owners import Owners
from wakeful.ports.store import ALARM_HEARTBEAT, Alarm, Tx

# Gaps that repeat beat after beat extend one row instead of adding one each.
REPEATING: Final = frozenset({"blocked", "busy", "budget", OUTSIDE})


class HeartbeatState(NamedTuple):
    """The heartbeat's rows."""

    heartbeat: Heartbeat
    cadence: Cadence


def hold(tx: Tx) -> HeartbeatState:
    """The heartbeat's rows, locked (in a read transaction, only read). Its own row comes first: it locks the others."""
    state = find(tx)
    if state is None:
        cure = "give this program an agent (@app.agent), or run the daemon on this store"
        raise Conflict(f"the heartbeat cannot be woken: no process with an agent has ever used this store; {cure}")
    return state


def find(tx: Tx) -> HeartbeatState | None:
    """The heartbeat's rows, or None if they were never written."""
    owner_id = tx[Owners].find(HEARTBEAT)
    if owner_id is None:
        return None
    heartbeat = tx[Heartbeats].lock([owner_id]).get(owner_id)
    return None if heartbeat is None else HeartbeatState(heartbeat, tx.cadences.lock([owner_id])[owner_id])


def save(tx: Tx, heartbeat: Heartbeat, before: Cadence, cadence: Cadence, rules: BeatRules) -> None:
    """Write both rows and their alarm."""
    tx[Heartbeats].save(heartbeat)
    tx.cadences.save_many([cadence], turned=[cadence] if is_turned(before, cadence) else [])
    set_alarm(tx, heartbeat, cadence, rules)


def set_alarm(tx: Tx, heartbeat: Heartbeat, cadence: Cadence, rules: BeatRules) -> None:
    """Derive and write the alarm."""
    due_at = rings_at(heartbeat, cadence, rules)
    tx.alarms.set_many([Alarm(ALARM_HEARTBEAT, heartbeat.owner_id, due_at, 1, None, 0)])


def record_gaps(tx: Tx, before: Cadence, gaps: Sequence[Gap], *, now: Instant) -> int | None:
    """Write beats that did not run; returns the id of the newest ledger row."""
    rest = list(gaps)
    if rest and rest[0].reason in REPEATING and (grown := _grown(tx, before, rest[0])) is not None:
        tx.runs.save_many([grown], grown=[rest[0].instants])
        del rest[0]
    if not rest:
        return before.last_row_id
    ids = tx.runs.reserve_ids(len(rest))
    tx.runs.add_many([_row(run_id, before, gap, now) for run_id, gap in zip(ids, rest, strict=True)])
    return ids[-1]


def _grown(tx: Tx, before: Cadence, gap: Gap) -> Run | None:
    """The newest row extended by this gap, if it is of the same kind and nothing lies in between."""
    if before.last_row_id is None or before.planned_through < before.ran_through:
        return None  # the clock was set back: later runs may lie in between
    row = tx.runs.lock([before.last_row_id]).get(before.last_row_id)
    if row is None or (row.outcome, row.reason, row.blocked_by) != (gap.outcome, gap.reason, gap.blocked_by):
        return None
    if (row.planned_until or row.planned_at) != before.planned_through or row.version != before.version:
        return None
    return row._replace(planned_until=gap.last, instants=row.instants + gap.instants)


def _row(run_id: int, before: Cadence, gap: Gap, now: Instant) -> Run:
    return stretch_of(
        gap,
        run_id=run_id,
        kind=TURN,
        schedule_id=before.schedule_id,
        version=before.version,
        now=now,
    )
