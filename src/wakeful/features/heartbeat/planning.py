"""Plans beats under the current settings: once at the beginning, at each start, and whenever they change."""

from typing import Final

from wakeful.core.delivery.incidents import failing
from wakeful.core.heartbeat.heartbeat import OUTSIDE, Heartbeat, next_beat, resumed, timing_of
from wakeful.core.refusals import Conflict
from wakeful.core.schedule.cadence import Cadence, Gap, Plan, Rules, Start, State, begin, forgo, replan, without
from wakeful.core.time.instants import Instant
from wakeful.core.time.timing import tally
from wakeful.engine.incidents import resume_incident
from wakeful.engine.planning import taken_ahead
from wakeful.features.heartbeat.events import Apply, forget_all
from wakeful.features.heartbeat.rules import HEARTBEAT, HeartbeatTerms
from wakeful.features.heartbeat.state import HeartbeatState, find, hold, save, set_alarm
from wakeful.ports.heartbeats import Heartbeats
from wakeful.ports.meta import Meta
from wakeful.ports.owners import Owners
from wakeful.ports.store import Tx

BY_SETTINGS: Final = "by the settings"
RESTORED: Final = "restored"
AGENT: Final = "heartbeat_agent"
_SWITCHED_OFF: Final = "the heartbeat is disabled in the settings; set enabled = true under [heartbeat] first"


def follow(tx: Tx, terms: HeartbeatTerms, *, now: Instant) -> None:
    """Apply the settings. Only a changed interval moves the grid."""
    owner_id = tx[Owners].named(HEARTBEAT)
    tx[Heartbeats].add_first(Heartbeat(owner_id, terms.every, now, "[]", None, None, None, None, "[]", None))
    heartbeat = tx[Heartbeats].lock([owner_id])[owner_id]
    known = tx.cadences.lock([owner_id])
    if not known:
        known[owner_id] = _begun(heartbeat, terms, now)
        tx.cadences.add_many([known[owner_id]])
    set_alarm(tx, heartbeat, known[owner_id], terms.beats)  # there is none yet, also in a copy made for a simulation
    before = HeartbeatState(heartbeat, _of_its_agent(tx, known[owner_id], terms))
    after, gaps = _followed(tx, before, terms, now)
    following = next_beat(timing_of(after.heartbeat), terms.beats.hours, after.cadence.planned_through)
    cadence = after.cadence._replace(next_at=following)
    heartbeat = after.heartbeat._replace(held_until=None)
    save(tx, heartbeat, known[owner_id], cadence, terms.beats, now=now, rows=gaps)


def pause(
    tx: Tx, terms: HeartbeatTerms, *, now: Instant, until: Instant | None = None, reason: str | None = None
) -> None:
    """Stop beats and retries until the heartbeat is resumed, or until `until`; requested turns still run."""
    heartbeat, before = hold(tx)
    if before.state == "disabled":
        raise Conflict(_SWITCHED_OFF)
    gaps, cadence = _left_out(tx, heartbeat, before, now)
    paused_at = before.state_at if before.state == "paused" else now
    cadence = cadence._replace(state="paused", state_reason=reason, state_at=paused_at, resume_at=until)
    save(tx, heartbeat._replace(retry_at=None), before, cadence, terms.beats, now=now, rows=gaps)


def resume(tx: Tx, terms: HeartbeatTerms, *, now: Instant) -> None:
    """Resume beats from now on; resets the error count."""
    heartbeat, before = hold(tx)
    if before.state == "disabled":
        raise Conflict(_SWITCHED_OFF)
    resume_incident(tx, failing(heartbeat.owner_id))
    if before.state == "active":
        save(tx, heartbeat, before, before._replace(consecutive_errors=0), terms.beats, now=now)
        return
    gaps, cadence = resumed(heartbeat, before, terms.beats, now=now, taken=taken_ahead(tx, before, now))
    save(tx, heartbeat, before, cadence, terms.beats, now=now, rows=gaps)


def _of_its_agent(tx: Tx, cadence: Cadence, terms: HeartbeatTerms) -> Cadence:
    """A session belongs to the agent that created it: another agent starts its own."""
    known = tx[Meta].value(AGENT)
    if known == terms.agent:
        return cadence
    tx[Meta].set(AGENT, terms.agent)
    return cadence if known is None else cadence._replace(session_id=None, session_node=None)


def forgo_all(tx: Tx, terms: HeartbeatTerms, *, now: Instant, apply: Apply) -> int:
    """The store is a restored backup: beats since the backup are missed and waiting events dropped; returns how many
    beats."""
    state = find(tx)
    if state is None:
        return 0
    heartbeat, before = state
    plan = forgo(before, Rules(timing_of(heartbeat)), RESTORED, now=now, taken=taken_ahead(tx, before, now))
    gaps = _gaps(plan)
    following = next_beat(timing_of(heartbeat), terms.beats.hours, plan.cadence.planned_through)
    heartbeat = heartbeat._replace(wakes="[]", asked_at=None, retry_at=None)
    save(tx, heartbeat, before, plan.cadence._replace(next_at=following), terms.beats, now=now, rows=gaps)
    forget_all(tx, now=now, apply=apply)
    return sum(gap.instants for gap in gaps)


def _begun(heartbeat: Heartbeat, terms: HeartbeatTerms, now: Instant) -> Cadence:
    state: State = "active" if terms.enabled else "disabled"
    reason = None if terms.enabled else BY_SETTINGS
    return begin(heartbeat.owner_id, 1, Rules(timing_of(heartbeat)), now=now, state=state, reason=reason)


def _followed(tx: Tx, before: HeartbeatState, terms: HeartbeatTerms, now: Instant) -> tuple[HeartbeatState, list[Gap]]:
    heartbeat, cadence = before
    gaps, cadence = _left_out(tx, heartbeat, cadence, now)
    if terms.every != heartbeat.every:
        changed = heartbeat._replace(every=terms.every, anchor_at=now)
        old, new = Rules(timing_of(heartbeat)), Rules(timing_of(changed))
        plan = replan(cadence, old, new, now=now, taken=taken_ahead(tx, cadence, now))
        gaps += _gaps(plan)
        heartbeat, cadence = changed, plan.cadence._replace(version=cadence.version + 1)
    if terms.enabled and cadence.state == "disabled":
        errors = cadence.consecutive_errors
        halted, cadence = resumed(heartbeat, cadence, terms.beats, now=now, taken=taken_ahead(tx, cadence, now))
        gaps += halted
        cadence = cadence._replace(consecutive_errors=errors)
    elif not terms.enabled and cadence.state in ("active", "paused"):
        halted_at = cadence.state_at if cadence.state == "paused" else now
        cadence = cadence._replace(state="disabled", state_reason=BY_SETTINGS, state_at=halted_at, resume_at=None)
    return HeartbeatState(heartbeat, cadence), gaps


def _left_out(tx: Tx, heartbeat: Heartbeat, cadence: Cadence, now: Instant) -> tuple[list[Gap], Cadence]:
    """Beats outside the active hours in force until now: changed hours do not bring them back."""
    until = now if cadence.next_at is None else min(cadence.next_at - 1, now)
    counted = tally(timing_of(heartbeat), cadence.planned_through, until)
    if cadence.state != "active" or counted.first is None or counted.last is None:
        return [], cadence
    gap = Gap(counted.first, counted.last, counted.count, "skipped", OUTSIDE)
    rows = without([gap], taken_ahead(tx, cadence, now), timing_of(heartbeat))
    return [row for row in rows if isinstance(row, Gap)], cadence._replace(planned_through=counted.last)


def _gaps(plan: Plan) -> list[Gap]:
    return [row for row in plan.rows if not isinstance(row, Start)]
