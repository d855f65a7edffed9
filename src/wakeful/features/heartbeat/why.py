"""Explains the heartbeat's state, a past turn or an upcoming one: one sentence, and the facts."""

import json
from typing import Any, Final

from wakeful.core.run.runs import ERRORS, Run
from wakeful.core.time.active_hours import is_active
from wakeful.core.time.instants import MINUTE, Instant, format_duration, format_instant, format_optional
from wakeful.features.heartbeat.queries import STATE, HeartbeatView, heartbeat_view
from wakeful.features.heartbeat.rules import HeartbeatTerms
from wakeful.features.heartbeat.state import find
from wakeful.ports.rows import at_text as _at
from wakeful.ports.rows import row_at
from wakeful.ports.store import Tx

_VERDICTS: Final = {
    "ok-empty": "and the agent's reply was empty",
    "ok-ack": "and the agent acknowledged that nothing needs attention",
    "sent": "and the agent's reply was queued for delivery",
    "no-reply": "but its reply could not be read, so nothing was delivered",
}
_SKIPPED: Final = {
    "outside active hours": "it was outside the active hours",
    "budget": "the hourly turn limit was reached",
    "busy": "the agent was busy",
    "blocked": "a turn was still open",
    "nothing to do": "HEARTBEAT.md is empty or the check found nothing, and no event was waiting",
    "check failed": "its check failed",
    "edited": "the interval was changed",
    "disabled": "the heartbeat was disabled",
    "paused": "the heartbeat was paused",
    "coalesced": "a later beat was due at the same time",
    "event evicted": "too many system events were waiting",
}


def why(tx: Tx, terms: HeartbeatTerms, *, at: Instant | None, now: Instant) -> tuple[str, dict[str, Any]]:
    """Explain the current state (without `at`) or a time: a sentence, and facts for programs."""
    view = heartbeat_view(tx, terms, now=now)
    facts: dict[str, Any] = {"slug": "heartbeat", "at": format_optional(at), **STATE.write(view)}
    if at is None:
        return _now(view, now), facts
    if at > now:
        return _ahead(view, at), facts
    row = _row_at(tx, at)
    if _is_left_out(view, row, at):
        facts["run"] = None
        return f"No beat was planned for {format_instant(at)}: that is outside {_hours(view)}.{_next(view)}", facts
    facts["run"] = None if row is None else {"runId": str(row.run_id), "outcome": row.outcome, "reason": row.reason}
    if row is None:
        return f"The ledger has no entry for the heartbeat at or before {format_instant(at)}.", facts
    return _past(row), facts


def _now(view: HeartbeatView, now: Instant) -> str:
    run = view.open_run
    if run is not None and run.outcome == "running":
        return f"A turn requested by {_reasons(run)} has been running since {_at(run.claimed_at)} (run {run.run_id})."
    if run is not None:
        until = "" if run.next_attempt_at is None else f" until {_at(run.next_attempt_at)}"
        return f"A turn requested by {_reasons(run)} is waiting{until} ({run.reason}; run {run.run_id})."
    if view.held_until is not None:
        most = view.terms.beats.turns_per_hour_max
        return f"It waits until {_at(view.held_until)}: it had {most} turns within an hour, which is its limit."
    if view.next_turn is not None:
        reasons = ", ".join(wake.reason for wake in view.wakes) or "a failed turn"
        return f"The next turn is at {_at(max(view.next_turn, now))}, requested by {reasons}."
    last = "" if view.last_error is None else f" The last turn failed: {view.last_error}"
    if view.status == "disabled":
        return f"It is disabled in the settings ([heartbeat] enabled) and takes a turn only when woken.{last}"
    if view.paused_at is not None:
        return f"It has been paused since {_at(view.paused_at)}{_until(view)} and takes a turn only when woken.{last}"
    if view.next_beat is None:
        return f"No further beat is planned.{last}"
    hours = view.terms.beats.hours
    if hours is not None and not is_active(hours, now):
        return f"It is outside {_hours(view)} and beats again at {_at(view.next_beat)}; it can still be woken.{last}"
    return f"It waits for its next beat at {_at(view.next_beat)}, every {format_duration(view.terms.every)}.{last}"


def _ahead(view: HeartbeatView, at: Instant) -> str:
    if view.paused_at is not None:
        return f"Nothing is planned for {_at(at)}: it is paused{_until(view)}."
    if view.next_beat is None:
        return f"Nothing is planned for {_at(at)}: it takes a turn only when woken."
    hours = view.terms.beats.hours
    if hours is not None and not is_active(hours, at):
        return f"Nothing is planned for {_at(at)}: that is outside {_hours(view)}.{_next(view)}"
    if at < view.next_beat:
        return f"Nothing is planned for {_at(at)}: the next beat is at {_at(view.next_beat)}."
    return f"It beats every {format_duration(view.terms.every)}, starting at {_at(view.next_beat)}."


def _until(view: HeartbeatView) -> str:
    return " (to resume: wakeful resume heartbeat)" if view.resume_at is None else f" until {_at(view.resume_at)}"


def _is_left_out(view: HeartbeatView, row: Run | None, at: Instant) -> bool:
    """Whether a past time is outside the active hours and no row covers it yet: the gap is written with the next
    beat."""
    hours = view.terms.beats.hours
    if hours is None or view.status in ("disabled", "paused") or is_active(hours, at):
        return False
    return row is None or (row.planned_until or row.planned_at) < at - at % MINUTE


def _hours(view: HeartbeatView) -> str:
    hours = view.terms.beats.hours
    return "" if hours is None else f"its active hours ({hours.start} to {hours.end}, {hours.timezone})"


def _next(view: HeartbeatView) -> str:
    return "" if view.next_beat is None else f" The next beat is at {_at(view.next_beat)}."


def _past(row: Run) -> str:
    """The sentence for a ledger row."""
    until = "" if row.planned_until is None else f" until {_at(row.planned_until)} ({row.instants} beats)"
    when = f"{_at(row.planned_at)}{until}"
    if row.outcome == "skipped":
        blocker = "" if row.blocked_by is None else f" (run {row.blocked_by})"
        return f"The beat at {when} was skipped because {_SKIPPED.get(row.reason or '', row.reason)}{blocker}."
    if row.outcome == "missed":
        return f"The beat at {when} was missed: no process was ticking ({row.reason})."
    if row.outcome in ERRORS:
        return f"The turn at {when}, requested by {_reasons(row)}, ended as {row.outcome}: {row.error}"
    if row.outcome == "succeeded":
        verdict = _VERDICTS.get(row.reason or "", "")
        return f"The turn at {when}, requested by {_reasons(row)}, succeeded {verdict}."
    return f"The turn at {when}, requested by {_reasons(row)}, is {row.outcome} ({row.reason or row.rung})."


def _row_at(tx: Tx, at: Instant) -> Run | None:
    """The newest row planned no later than `at`."""
    state = find(tx)
    return None if state is None else row_at(tx, state.heartbeat.owner_id, at)


def _reasons(run: Run) -> str:
    kept = {} if run.definition is None else json.loads(run.definition)
    return " and ".join(kept.get("reasons", ())) or "unknown"
