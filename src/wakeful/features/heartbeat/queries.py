"""Queries on the heartbeat. Queries never write (L1)."""

from dataclasses import dataclass
from typing import Any

from wakeful.core.heartbeat.heartbeat import (
    WINDOW,
    Wake,
    due_of,
    flush_at,
    next_beat,
    timing_of,
    turns_within,
    wakes_of,
)
from wakeful.core.run.runs import Run
from wakeful.core.schedule.upcoming import Upcoming
from wakeful.core.time.instants import Instant, format_duration, format_instant, format_optional
from wakeful.features.heartbeat.rules import HEARTBEAT, HeartbeatTerms
from wakeful.features.heartbeat.state import find
from wakeful.ports.store import SystemEvent, Tx


@dataclass(frozen=True, slots=True)
class HeartbeatView:
    """The state of the heartbeat."""

    terms: HeartbeatTerms
    status: str  # disabled | paused | idle | waiting | running
    next_beat: Instant | None
    next_turn: Instant | None  # when waiting requests become a turn, if none is open
    open_run: Run | None
    wakes: tuple[Wake, ...]
    asked_at: Instant | None
    retry_at: Instant | None
    held_until: Instant | None
    tripped_at: Instant | None
    turns_in_hour: int
    errors_in_a_row: int
    last_turn: Instant | None
    last_error: str | None
    session_id: str | None
    events: int
    paused_at: Instant | None = None
    resume_at: Instant | None = None  # when a pause ends by itself

    def to_json(self) -> dict[str, Any]:
        terms, run, hours = self.terms, self.open_run, self.terms.beats.hours
        return {
            "enabled": terms.enabled,
            "status": self.status,
            "agent": terms.agent,
            "every": format_duration(terms.every),
            "activeHours": None
            if hours is None
            else {"start": hours.start, "end": hours.end, "timezone": hours.timezone},
            "nextBeat": format_optional(self.next_beat),
            "nextTurn": format_optional(self.next_turn),
            "openRun": None if run is None else str(run.run_id),
            "pending": [{"reason": wake.reason, "own": wake.is_own, "times": wake.times} for wake in self.wakes],
            "askedAt": format_optional(self.asked_at),
            "retryAt": format_optional(self.retry_at),
            "budget": {
                "turnsPerHourMax": terms.beats.turns_per_hour_max,
                "turnsInLastHour": self.turns_in_hour,
                "trippedAt": format_optional(self.tripped_at),
                "heldUntil": format_optional(self.held_until),
            },
            "spacingMin": format_duration(terms.beats.spacing_min),
            "consecutiveErrors": self.errors_in_a_row,
            "lastTurn": format_optional(self.last_turn),
            "lastError": self.last_error,
            "sessionId": self.session_id,
            "events": self.events,
            "pausedAt": format_optional(self.paused_at),
            "resumeAt": format_optional(self.resume_at),
        }


def heartbeat_view(tx: Tx, terms: HeartbeatTerms, *, now: Instant) -> HeartbeatView:
    """The current state; a heartbeat that was never started is disabled and empty."""
    state = find(tx)
    if state is None:
        nothing: tuple[Wake, ...] = ()
        return HeartbeatView(
            terms, "disabled", None, None, None, nothing, None, None, None, None, 0, 0, None, None, None, 0
        )
    heartbeat, cadence = state
    run = None if cadence.open_run_id is None else tx.runs.lock([cadence.open_run_id]).get(cadence.open_run_id)
    held_until = heartbeat.held_until if heartbeat.held_until is not None and heartbeat.held_until > now else None
    beat = cadence.next_at if cadence.state == "active" else None
    return HeartbeatView(
        terms=terms,
        status=_status(cadence.state, run),
        next_beat=None if beat is None else due_of(terms.beats.hours, beat),
        next_turn=None if run is not None else flush_at(heartbeat, terms.beats),
        open_run=run,
        wakes=wakes_of(heartbeat),
        asked_at=heartbeat.asked_at,
        retry_at=heartbeat.retry_at,
        held_until=held_until,
        tripped_at=heartbeat.tripped_at,
        turns_in_hour=len(turns_within(heartbeat, now)),
        errors_in_a_row=cadence.consecutive_errors,
        last_turn=cadence.last_run_at,
        last_error=cadence.last_error,
        session_id=cadence.session_id,
        events=len(tx.system_events.all()),
        paused_at=cadence.state_at if cadence.state == "paused" else None,
        resume_at=cadence.resume_at if cadence.state == "paused" else None,
    )


def upcoming_beats(tx: Tx, terms: HeartbeatTerms, *, until: Instant, limit: int) -> list[Upcoming]:
    """The upcoming beats until a time; each starts at the end of its window."""
    state = find(tx)
    if state is None or state.cadence.state != "active":
        return []
    beats: list[Upcoming] = []
    beat = state.cadence.next_at
    while beat is not None and (at := due_of(terms.beats.hours, beat)) + WINDOW <= until and len(beats) < limit:
        beats.append(Upcoming(at + WINDOW, HEARTBEAT, at, "beat"))
        beat = next_beat(timing_of(state.heartbeat), terms.beats.hours, beat)
    return beats


def event_json(event: SystemEvent) -> dict[str, Any]:
    """The JSON shape of a system event."""
    return {
        "id": str(event.event_id),
        "contextKey": event.context_key,
        "source": event.source,
        "text": event.text,
        "at": format_instant(event.raised_at),
        "revision": event.revision,
        "slug": event.slug,
        "runId": None if event.run_id is None else str(event.run_id),
        "carriedBy": None if event.carried_by is None else str(event.carried_by),
    }


def _status(state: str, run: Run | None) -> str:
    if run is not None:
        return "running" if run.outcome == "running" or run.stuck else "waiting"
    return {"active": "idle", "paused": "paused"}.get(state, "disabled")
