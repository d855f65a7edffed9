"""The rows of the heartbeat: locked together, written together, with the alarm derived from them."""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from wakeful.core.heartbeat.heartbeat import OUTSIDE, BeatRules, Heartbeat, rings_at, timing_of
from wakeful.core.refusals import Conflict
from wakeful.core.run.runs import Run
from wakeful.core.schedule.cadence import Cadence, Gap, Start
from wakeful.core.time.instants import Instant
from wakeful.engine.planning import Decided, Planned, record
from wakeful.features.heartbeat.rules import HEARTBEAT, TURN
from wakeful.ports.handlers import Due
from wakeful.ports.heartbeats import Heartbeats
from wakeful.ports.owners import Owners
from wakeful.ports.store import ALARM_HEARTBEAT, Alarm, Tx

BEATS: Final = Planned(ALARM_HEARTBEAT, TURN, frozenset({"blocked", "busy", "budget", OUTSIDE}).__contains__)


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


def save(
    tx: Tx,
    heartbeat: Heartbeat,
    before: Cadence,
    after: Cadence,
    rules: BeatRules,
    *,
    now: Instant,
    rows: Sequence[Start | Gap] = (),
    start: Callable[[int], Run] | None = None,
) -> list[Due]:
    """Write both rows, the beats that were decided, and the alarm; returns the turn, not yet written, that `start`
    makes: for a beat, or for requests alone if no row is a beat."""
    tx[Heartbeats].save(heartbeat)
    has_beat = any(isinstance(row, Start) for row in rows)
    decided = Decided(
        before,
        after,
        rows,
        lambda cadence: rings_at(heartbeat, cadence, rules),
        start=None if start is None else lambda run_id, _: start(run_id),
        ask=None if has_beat else start,
        timing=timing_of(heartbeat),
        version=before.version,
    )
    return record(tx, BEATS, [decided], now=now)


def set_alarm(tx: Tx, heartbeat: Heartbeat, cadence: Cadence, rules: BeatRules) -> None:
    """Derive and write the alarm."""
    due_at = rings_at(heartbeat, cadence, rules)
    tx.alarms.set_many([Alarm(ALARM_HEARTBEAT, heartbeat.owner_id, due_at, 1, None, 0)])
