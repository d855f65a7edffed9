"""Commands: each is a function of a transaction, under the lock of the heartbeat."""

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
"""What may be asked for from outside; beats and retries are the heartbeat's own."""


def reason_of(text: str) -> Reason:
    """The reason this text names."""
    found = next((reason for reason in REASONS if reason == text), None)
    return found or refuse("reason", f"{text[:50]!r} is not a reason to wake; write one of {', '.join(REASONS)}")


class WakeResult(NamedTuple):
    """What became of a request for a turn."""

    is_coalesced: bool  # an earlier request already asked for one
    evicted: Sequence[SystemEvent] = ()  # events that this one left no room for


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
    """Ask for a turn, and queue what it is about."""
    if text is not None:
        check_event(text, context_key)
    is_coalesced = wake(tx, reason, now=now, is_own=is_own)
    if text is None:
        return WakeResult(is_coalesced)
    return WakeResult(is_coalesced, raise_event(tx, RaiseEvent(text, context_key, source or reason), now, apply=apply))


def wake(tx: Tx, reason: Reason, *, now: Instant, is_own: bool = False) -> bool:
    """Ask for a turn. A run that waits for the agent takes the request in; a turn under way does not."""
    standing = hold(tx)
    tx.report(Report(HEARTBEAT, "woken", {"reason": reason, "own": is_own}, slug=HEARTBEAT))
    if _is_taken_in(tx, standing, reason):
        return True
    heartbeat = asked(standing.heartbeat, reason, is_own=is_own, now=now)
    tx.heartbeats.save(heartbeat)
    # When exactly it is due is decided when it rings, by the rules that hold there.
    set_alarm(tx, heartbeat, standing.cadence, BeatRules(spacing_min=0))
    return standing.heartbeat.asked_at is not None


def _is_taken_in(tx: Tx, standing: HeartbeatState, reason: Reason) -> bool:
    """Merge the request into a turn that has not begun: what it is to be told is read when it does."""
    run_id = standing.cadence.open_run_id
    run = None if run_id is None else tx.runs.lock([run_id]).get(run_id)
    if run is None or run.outcome != "waiting" or run.definition is None:
        return False
    kept = json.loads(run.definition)
    if reason not in kept["reasons"]:
        kept["reasons"].append(reason)
        tx.runs.save_many([run._replace(definition=json.dumps(kept))])
    return True
