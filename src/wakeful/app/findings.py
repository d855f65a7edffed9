"""What is amiss besides the clock: what people did not get, and a heartbeat out of budget."""

from typing import Final

from wakeful.core.instants import Instant, format_instant
from wakeful.features.heartbeat.queries import standing
from wakeful.features.heartbeat.terms import HEARTBEAT, HeartbeatTerms
from wakeful.features.schedules.health import Finding
from wakeful.ports.store import Tx

NAMED_MAX: Final = 10


def dead_letters(tx: Tx) -> Finding:
    """Whether anything was given up that a person should have got."""
    counts = {channel: count.get("dead", 0) for channel, count in tx.deliveries.open_counts().items()}
    dead = {channel: count for channel, count in sorted(counts.items()) if count}
    if not dead:
        return Finding("deliveries", "ok", "everything for people arrived, or is on its way")
    named = ", ".join(f"{count} to {channel}" for channel, count in list(dead.items())[:NAMED_MAX])
    cure = "see why: wakeful outbox --status dead; then wakeful outbox retry ID, or discard ID"
    return Finding("deliveries", "warn", f"given up: {named}", cure)


def budget(tx: Tx, terms: HeartbeatTerms, *, now: Instant) -> Finding:
    """Whether the heartbeat had more turns than an hour may have."""
    view = standing(tx, terms, now=now)
    if view.tripped_at is None:
        return Finding(HEARTBEAT, "ok", f"{view.turns_in_hour} turns within the last hour")
    most, since = terms.beats.turns_per_hour_max, format_instant(view.tripped_at)
    until = "" if view.held_until is None else f" and waits until {format_instant(view.held_until)}"
    sentence = f"the heartbeat used up its {most} turns of an hour at {since}{until}"
    return Finding(HEARTBEAT, "warn", sentence, "see who wakes it: wakeful runs heartbeat", [HEARTBEAT])
