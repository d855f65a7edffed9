"""Handles the heartbeat's alarm: decides due beats, and turns waiting requests into a turn."""

import json
from collections.abc import Callable
from functools import partial
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
from wakeful.core.schedule.cadence import Cadence, Gap, Rules, Start
from wakeful.core.time.instants import Instant, format_instant
from wakeful.core.time.timing import anchor_behind
from wakeful.engine.planning import shortened, taken_ahead, turned_back, void_ahead
from wakeful.features.heartbeat.rules import HEARTBEAT, TURN, HeartbeatTerms
from wakeful.features.heartbeat.state import find, save
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
                taken=taken_ahead(tx, cadence, now),
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
            cadence = turned_back(tx, cadence, Rules(timing_of(heartbeat)), now=now)
        hours = self._terms().beats.hours
        following = next_beat(timing_of(heartbeat), hours, cadence.planned_through)
        save(tx, heartbeat, before, cadence._replace(next_at=following), self._terms().beats, now=now)
        return None

    def recover(self, tx: Tx, *, now: Instant) -> None:
        """The heartbeat has no side tasks."""


def _record(tx: Tx, before: Cadence, decided: HeartbeatDecision, terms: HeartbeatTerms, now: Instant) -> list[Due]:
    """Write the decision; returns the turn to start, not yet in the ledger."""
    heartbeat, turning = decided.heartbeat, decided.turning
    if turning is None:
        return save(tx, heartbeat, before, decided.cadence, terms.beats, now=now, rows=decided.gaps)
    rows: list[Start | Gap] = [*decided.gaps] if turning.beat is None else [*decided.gaps, turning.beat]
    start = partial(_run, turning=turning, cadence=decided.cadence, terms=terms)
    return save(tx, heartbeat, before, decided.cadence, terms.beats, now=now, rows=rows, start=start)


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
    moved = heartbeat._replace(anchor_at=anchor_behind(timing_of(heartbeat), now))
    return moved, cadence._replace(version=cadence.version + 1)


def _void_gaps(tx: Tx, heartbeat: Heartbeat, cadence: Cadence, now: Instant) -> None:
    """The interval of an earlier version is no longer known, so the number of its past beats is not either."""
    timing, ahead = timing_of(heartbeat), tx.runs.gaps_ahead(heartbeat.owner_id, after=now)
    void_ahead(tx, ahead, lambda row: shortened(row, timing if row.version == cadence.version else None, now), now=now)


def _not_after(at: Instant | None, now: Instant) -> Instant | None:
    return None if at is None else min(at, now)
