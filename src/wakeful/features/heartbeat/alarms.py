"""Handles the heartbeat's alarm: decides due beats, and turns waiting requests into a turn."""

import json
from collections.abc import Callable
from typing import Final

from wakeful.core.heartbeat.heartbeat import (
    WINDOW,
    Heartbeat,
    HeartbeatDecision,
    PlannedTurn,
    look,
    next_beat,
    timing_of,
    turns_within,
)
from wakeful.core.run.effects import Alert, Effect, Recovered
from wakeful.core.run.runs import PRIORITY_PERSON, PRIORITY_PLANNED, Run, unplanned
from wakeful.core.run.transitions import planned
from wakeful.core.schedule.cadence import Cadence, Rules, is_turned, turn_back
from wakeful.core.time.instants import Instant, format_instant
from wakeful.core.time.timing import tally
from wakeful.features.heartbeat.planning import taken
from wakeful.features.heartbeat.rules import HEARTBEAT, TURN, HeartbeatTerms
from wakeful.features.heartbeat.state import find, record_gaps, save, set_alarm
from wakeful.ports import events
from wakeful.ports.event_data import Tripped
from wakeful.ports.handlers import Due, RingResult
from wakeful.ports.heartbeats import Heartbeats, WaitingEvents
from wakeful.ports.store import ALARM_HEARTBEAT, Report, Tx

BUDGET: Final = "heartbeat:budget"
# With these reasons someone is waiting for the reply.
_PERSONS: Final = frozenset({"message", "manual", "hook"})


class HeartbeatAlarms:
    """Rings the heartbeat under the terms current at each ring."""

    kind = ALARM_HEARTBEAT
    brings_runs = True

    def __init__(self, terms: Callable[[], HeartbeatTerms]) -> None:
        self._terms = terms

    def ring(self, tx: Tx, *, now: Instant, due_by: Instant, limit: int, late_max: int, gap_reason: str) -> RingResult:
        """Decide the due beats, and whether a turn starts."""
        due: list[Due] = []
        effects: list[Effect] = []
        heartbeats = tx[Heartbeats].due(now=due_by, limit=limit)
        terms = self._terms()
        for heartbeat in heartbeats:
            cadence = tx.cadences.lock([heartbeat.owner_id])[heartbeat.owner_id]
            decided = look(
                heartbeat,
                cadence,
                terms.beats,
                now=now,
                gap_reason=gap_reason,
                taken=taken(tx, cadence, now),
                # Events must not wait for another beat, which may be half a day away: the turn waits for the lane.
                busy_run=None if tx[WaitingEvents].all() else tx.lanes.holders().get(terms.lane),
            )
            if decided.has_tripped:
                effects.append(_tripped(tx, decided, terms, now))
            if heartbeat.tripped_at is not None and decided.heartbeat.tripped_at is None:
                effects.append(Recovered((BUDGET,)))
            due += _record(tx, cadence, decided, terms, now)
        return RingResult(due, len(heartbeats), effects=effects)

    def turn_back(self, tx: Tx, *, now: Instant, after_id: int, limit: int) -> int | None:
        """Replan from now anything planned on a clock that ran ahead; requests made on that clock count as made now."""
        state = find(tx)
        if state is None:
            return None
        heartbeat, before = state
        cadence = before
        heartbeat = heartbeat._replace(
            asked_at=_not_after(heartbeat.asked_at, now),
            retry_at=_not_after(heartbeat.retry_at, now),
            turned_at=_not_after(heartbeat.turned_at, now),
            held_until=None,
            tripped_at=_not_after(heartbeat.tripped_at, now),
            turns=json.dumps(turns_within(heartbeat, now)),
        )
        if cadence.planned_through > now:
            _void_gaps(tx, heartbeat, cadence, now)
            heartbeat, cadence = _anchored_behind(heartbeat, cadence, now)
            cadence = turn_back(cadence, Rules(timing_of(heartbeat)), now=now)
        hours = self._terms().beats.hours
        following = next_beat(timing_of(heartbeat), hours, cadence.planned_through)
        save(tx, heartbeat, before, cadence._replace(next_at=following), self._terms().beats)
        return None

    def recover(self, tx: Tx, *, now: Instant) -> None:
        """The heartbeat has no side tasks."""


def _record(tx: Tx, before: Cadence, decided: HeartbeatDecision, terms: HeartbeatTerms, now: Instant) -> list[Due]:
    """Write the decision; returns the turn to start, not yet in the ledger."""
    cadence = decided.cadence._replace(last_row_id=record_gaps(tx, before, decided.gaps, now=now))
    if decided.turning is None:
        _write(tx, before, decided.heartbeat, cadence, terms)
        return []
    run = _run(tx.runs.reserve_ids(1)[0], decided.turning, cadence, terms)
    cadence = cadence._replace(open_run_id=run.run_id)
    if decided.turning.beat is not None:
        cadence = cadence._replace(last_row_id=run.run_id)
    _write(tx, before, decided.heartbeat, cadence, terms)
    return [Due(run)]


def _write(tx: Tx, before: Cadence, heartbeat: Heartbeat, cadence: Cadence, terms: HeartbeatTerms) -> None:
    tx[Heartbeats].save(heartbeat)
    if cadence != before:
        tx.cadences.save_many([cadence], turned=[cadence] if is_turned(before, cadence) else [])
    set_alarm(tx, heartbeat, cadence, terms.beats)


def _run(run_id: int, turning: PlannedTurn, cadence: Cadence, terms: HeartbeatTerms) -> Run:
    """A turn's ledger row: for its beat, or for a request."""
    beat = turning.beat
    run = planned(
        run_id=run_id,
        kind=TURN,
        schedule_id=cadence.schedule_id,
        version=cadence.version,
        planned_at=turning.asked_at if beat is None else beat.planned_at,
        due_at=(turning.asked_at if beat is None else min(turning.asked_at, beat.due_at)) + WINDOW,
        trigger="wake" if beat is None else beat.trigger,
        lane=terms.lane,
    )
    kept = {"reason": turning.reason, "reasons": list(turning.reasons), "agent": terms.agent}
    return run._replace(
        occurrence=unplanned(run_id, turning.asked_at) if beat is None else beat.planned_at,
        priority=PRIORITY_PERSON if turning.reason in _PERSONS else PRIORITY_PLANNED,
        definition=json.dumps(kept),
    )


def _tripped(tx: Tx, decided: HeartbeatDecision, terms: HeartbeatTerms, now: Instant) -> Alert:
    held_until = decided.heartbeat.held_until or now
    most, until = terms.beats.turns_per_hour_max, format_instant(held_until)
    text = f"the heartbeat had {most} turns within an hour and waits until {until}; check if its agent wakes itself"
    tx.report(
        Report(events.HEARTBEAT_TRIPPED, Tripped(most, held_until), f"{HEARTBEAT}: {text}", "warn", slug=HEARTBEAT)
    )
    return Alert(BUDGET, text)


def _anchored_behind(heartbeat: Heartbeat, cadence: Cadence, now: Instant) -> tuple[Heartbeat, Cadence]:
    """An interval that was set while the clock was ahead starts in the future and would be silent until then: move its
    anchor back along its grid, as a new version."""
    if heartbeat.anchor_at <= now:
        return heartbeat, cadence
    steps = -((now - heartbeat.anchor_at) // heartbeat.every)
    moved = heartbeat._replace(anchor_at=heartbeat.anchor_at - steps * heartbeat.every)
    return moved, cadence._replace(version=cadence.version + 1)


def _void_gaps(tx: Tx, heartbeat: Heartbeat, cadence: Cadence, now: Instant) -> None:
    """Void gaps beyond now: one that reaches past now is shortened, one that starts after now is removed."""
    void: list[int] = []
    cut: list[Run] = []
    for row in tx.runs.gaps_ahead(heartbeat.owner_id, after=now):
        counted = tally(timing_of(heartbeat), row.planned_at - 1, now)
        if row.occurrence < 0 or row.planned_at > now:
            void.append(row.run_id)
        elif row.version != cadence.version:
            continue  # of another interval: the number of its past beats is no longer known, so it is kept
        else:
            until = counted.last if counted.count > 1 else None
            cut.append(row._replace(planned_until=until, instants=counted.count))
    if void:
        tx.runs.remove_many(void)
    if cut:
        tx.runs.save_many(cut, grown=[0] * len(cut))


def _not_after(at: Instant | None, now: Instant) -> Instant | None:
    return None if at is None else min(at, now)
