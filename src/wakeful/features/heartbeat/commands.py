"""Commands on the heartbeat. Each is a function of a transaction, under the heartbeat's lock."""

import json
from collections.abc import Sequence
from typing import Final, NamedTuple

from wakeful.core.errors import refuse
from wakeful.core.heartbeat.heartbeat import BeatRules, Reason, asked
from wakeful.core.run.effects import RaiseEvent
from wakeful.core.time.instants import Instant
from wakeful.features.heartbeat.events import Apply, check_event, raise_event
from wakeful.features.heartbeat.rules import HEARTBEAT
from wakeful.features.heartbeat.state import HeartbeatState, hold, set_alarm
from wakeful.ports.store import Report, SystemEvent, Tx

REASONS: Final[tuple[Reason, ...]] = ("cron", "message", "manual", "hook")
"""The reasons a caller may give; beats and retries are internal."""


def reason_of(text: str) -> Reason:
    """The reason with this name."""
    known = next((reason for reason in REASONS if reason == text), None)
    return known or refuse("reason", f"{text[:50]!r} is not a reason to wake; write one of {', '.join(REASONS)}")


class WakeResult(NamedTuple):
    """The result of a wake request."""

    is_coalesced: bool  # merged into an earlier request
    evicted: Sequence[SystemEvent] = ()  # events evicted to make room for this one


def request_wake(
    tx: Tx,
    reason: Reason,
    *,
    now: Instant,
    apply: Apply,
    text: str | None = None,
    context_key: str | None = None,
    source: str | None = None,
    is_own: bool = False,
) -> WakeResult:
    """Request a turn, and queue its event."""
    if text is not None:
        check_event(text, context_key)
    is_coalesced = wake(tx, reason, now=now, is_own=is_own)
    if text is None:
        return WakeResult(is_coalesced)
    return WakeResult(is_coalesced, raise_event(tx, RaiseEvent(text, context_key, source or reason), now, apply=apply))


def wake(tx: Tx, reason: Reason, *, now: Instant, is_own: bool = False) -> bool:
    """Request a turn. A turn that waits for its agent absorbs the request; one already running does not."""
    state = hold(tx)
    tx.report(Report(HEARTBEAT, "woken", {"reason": reason, "own": is_own}, slug=HEARTBEAT))
    if _is_merged(tx, state, reason):
        return True
    heartbeat = asked(state.heartbeat, reason, is_own=is_own, now=now)
    tx.heartbeats.save(heartbeat)
    # The exact due time is decided when the alarm rings, under the rules current then.
    set_alarm(tx, heartbeat, state.cadence, BeatRules(spacing_min=0))
    return state.heartbeat.asked_at is not None


def _is_merged(tx: Tx, state: HeartbeatState, reason: Reason) -> bool:
    """Merge the request into a turn that has not started: its events are read when it starts."""
    run_id = state.cadence.open_run_id
    run = None if run_id is None else tx.runs.lock([run_id]).get(run_id)
    if run is None or run.outcome != "waiting" or run.definition is None:
        return False
    kept = json.loads(run.definition)
    if reason not in kept["reasons"]:
        kept["reasons"].append(reason)
        tx.runs.annotate_many([run._replace(definition=json.dumps(kept))])
    return True
