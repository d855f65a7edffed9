"""Commands on the heartbeat. Each is a function of a transaction, under the heartbeat's lock."""

import json
from typing import Annotated, Final, Literal, NamedTuple, TypeAlias

from wakeful.core.errors import refuse
from wakeful.core.heartbeat.heartbeat import BeatRules, Reason, asked
from wakeful.core.returned import Named, returned
from wakeful.core.run.effects import RaiseEvent
from wakeful.core.time.instants import Instant
from wakeful.features.heartbeat.events import Apply, check_event, raise_event
from wakeful.features.heartbeat.rules import HEARTBEAT
from wakeful.features.heartbeat.state import HeartbeatState, hold, set_alarm
from wakeful.ports import events
from wakeful.ports.event_data import Woken
from wakeful.ports.heartbeats import EventId, Heartbeats
from wakeful.ports.store import Report, Tx

Given: TypeAlias = Literal["cron", "message", "manual", "hook"]
"""A reason that a caller may give; beats and retries are internal."""
REASONS: Final[tuple[Given, ...]] = ("cron", "message", "manual", "hook")


def reason_of(text: str) -> Given:
    """The reason with this name."""
    known = next((reason for reason in REASONS if reason == text), None)
    return known or refuse("reason", f"{text[:50]!r} is not a reason to wake; write one of {', '.join(REASONS)}")


class Evicted(NamedTuple):
    """A system event that was dropped before any turn."""

    # Without its text: a hook must not read that of others.
    event_id: EventId
    source: str


class WakeResult(NamedTuple):
    """A turn was requested."""

    is_coalesced: Annotated[bool, "whether it was merged into a turn that was already requested", Named("coalesced")]
    evicted: Annotated[tuple[Evicted, ...], "oldest events, dropped because the queue was full; absent if none"] = ()


WOKEN: Final = returned(WakeResult, name="Woken")


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
    evicted = raise_event(tx, RaiseEvent(text, context_key, source or reason), now, apply=apply)
    return WakeResult(is_coalesced, tuple(Evicted(event.event_id, event.source) for event in evicted))


def wake(tx: Tx, reason: Reason, *, now: Instant, is_own: bool = False) -> bool:
    """Request a turn. A turn that waits for its agent absorbs the request; one already running does not."""
    state = hold(tx)
    tx.report(Report(events.HEARTBEAT_WOKEN, Woken(reason, is_own), slug=HEARTBEAT))
    if _is_merged(tx, state, reason):
        return True
    heartbeat = asked(state.heartbeat, reason, is_own=is_own, now=now)
    tx[Heartbeats].save(heartbeat)
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
