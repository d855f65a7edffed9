"""The streams and events of the live stream: all of them, each described once.

Reports are made with them, the streams that a client may select are these, and docs/events.md lists them
(`python -m tools.field_tables`).
"""

from collections.abc import Mapping
from typing import Final

from wakeful.ports.event import EventKind, EventStream
from wakeful.ports.event_data import (
    Acknowledged,
    CancelRequested,
    Climbed,
    ClockJumped,
    Counted,
    Decided,
    DeliveryChanged,
    Evicted,
    IncidentClosed,
    IncidentOpened,
    IncidentText,
    NodeEntered,
    NodeNamed,
    Proposed,
    Raised,
    Received,
    RunChanged,
    RunNamed,
    ScheduleChanged,
    SlotChanged,
    Suppressed,
    Tripped,
    Turned,
    Woken,
    WorkflowChanged,
)

RUNS: Final = EventStream("runs", "A ledger row changed; `/api/runs/{id}` returns the whole row.")
RUN_CLAIMED: Final = RUNS.event("claimed", "an attempt started", RunChanged)
RUN_CLIMBED: Final = RUNS.event("climbed", "it reached the next rung: sent, accepted, started", Climbed)
RUN_WAITING: Final = RUNS.event("waiting", "it is waiting for a retry, a lane, a busy target or the quota", RunChanged)
RUN_SETTLED: Final = RUNS.event("settled", "it is closed, with its outcome", RunChanged)
RUN_RESCUED: Final = RUNS.event("rescued", "it was taken over from a dead node", RunChanged)
RUN_SKIPPED: Final = RUNS.event("skipped", "instants were skipped, with the reason", RunChanged)
RUN_MISSED: Final = RUNS.event("missed", "instants were missed, with the reason", RunChanged)
RUN_CANCEL_REQUESTED: Final = RUNS.event(
    "cancelRequested", "a person asked to cancel it; the event says who", CancelRequested
)
RUN_VOIDED: Final = RUNS.event(
    "voided", "rows with future times were removed, because the clock was set back", RunNamed
)

SCHEDULES: Final = EventStream("schedules")
SCHEDULE_CREATED: Final = SCHEDULES.event("created", "it was created", ScheduleChanged)
SCHEDULE_EDITED: Final = SCHEDULES.event("edited", "it has a new version", ScheduleChanged)
SCHEDULE_REMOVED: Final = SCHEDULES.event("removed", "it was removed; its past runs are kept", ScheduleChanged)
SCHEDULE_PAUSED: Final = SCHEDULES.event("paused", "it was paused by a person", ScheduleChanged)
SCHEDULE_RESUMED: Final = SCHEDULES.event("resumed", "it was resumed by a person, or its pause ended", ScheduleChanged)
SCHEDULE_BACKFILL_STARTED: Final = SCHEDULES.event(
    "backfillStarted", "past instants of it will be run: how many, and by whom", Counted
)
SCHEDULE_PAUSED_ALL: Final = SCHEDULES.event(
    "pausedAll", "all were paused or resumed together: how many, and by whom", Counted
)
SCHEDULE_RESUMED_ALL: Final = SCHEDULES.event(
    "resumedAll", "all were paused or resumed together: how many, and by whom", Counted
)
SCHEDULE_PROPOSED: Final = SCHEDULES.event(
    "proposed", "an agent wants to create or change it, and waits for a person's approval", Proposed
)
SCHEDULE_DECIDED: Final = SCHEDULES.event("decided", "a person approved or rejected the proposal", Decided)
SCHEDULE_DISABLED: Final = SCHEDULES.event(
    "disabled", "it was disabled by a person, or because of errors", ScheduleChanged
)
SCHEDULE_INVALID: Final = SCHEDULES.event("invalid", "its stored definition cannot be read", ScheduleChanged)
SCHEDULE_DONE: Final = SCHEDULES.event("done", "it has no planned times left", ScheduleChanged)

NODES: Final = EventStream("nodes")
NODE_ENTERED: Final = NODES.event("entered", "a node started to tick", NodeEntered)
NODE_LEFT: Final = NODES.event("left", "it gave up its lease, or lost it", NodeNamed)
NODE_LOST_LEASE: Final = NODES.event("lostLease", "this node was considered dead, and re-registers", NodeNamed)
NODE_CLOCK_JUMPED: Final = NODES.event(
    "clockJumped", "the clock was changed, or the machine was suspended", ClockJumped
)

ALERTS: Final = EventStream("alerts")
ALERT_ALERTED: Final = ALERTS.event("alerted", "an alert was sent: `incident`, `text`", IncidentText)

HEARTBEAT: Final = EventStream("heartbeat")
HEARTBEAT_WOKEN: Final = HEARTBEAT.event("woken", "a turn was requested, with the reason", Woken)
HEARTBEAT_TURNED: Final = HEARTBEAT.event("turned", "a turn has ended", Turned)
HEARTBEAT_TRIPPED: Final = HEARTBEAT.event("tripped", "its turn budget is used up", Tripped)

EVENTS: Final = EventStream("events", "System events are kept for the agent's next turn.")
EVENT_RAISED: Final = EVENTS.event("raised", "one was added, or replaced an older one", Raised)
EVENT_ACKNOWLEDGED: Final = EVENTS.event("acknowledged", "a turn that included them has succeeded", Acknowledged)
EVENT_EVICTED: Final = EVENTS.event("evicted", "one was dropped because there were too many", Evicted)

MESSAGES: Final = EventStream("messages")
MESSAGE_RECEIVED: Final = MESSAGES.event("received", "a person wrote; a turn follows", Received)

DELIVERIES: Final = EventStream("deliveries")
DELIVERY_QUEUED: Final = DELIVERIES.event("queued", "it is in the outbox", DeliveryChanged)
DELIVERY_SUPPRESSED: Final = DELIVERIES.event(
    "suppressed",
    "nothing is sent, because the reply was empty or only the ack token, or was sent to the channels of its schedules",
    Suppressed,
)
DELIVERY_DELIVERED: Final = DELIVERIES.event("delivered", "it was delivered", DeliveryChanged)
DELIVERY_RETRYING: Final = DELIVERIES.event("retrying", "it failed, and is tried again", DeliveryChanged)
DELIVERY_DEFERRED: Final = DELIVERIES.event(
    "deferred", "it waits because many others are being sent after a restart", DeliveryChanged
)
DELIVERY_MISSING: Final = DELIVERIES.event(
    "missing", "its channel does not exist; it waits until it does", DeliveryChanged
)
DELIVERY_DEAD: Final = DELIVERIES.event("dead", "it was given up and is a dead letter", DeliveryChanged)
DELIVERY_REQUEUED: Final = DELIVERIES.event("requeued", "a person requested another attempt", DeliveryChanged)
DELIVERY_DISCARDED: Final = DELIVERIES.event("discarded", "a person deleted it", DeliveryChanged)

INCIDENTS: Final = EventStream("incidents")
INCIDENT_OPENED: Final = INCIDENTS.event("opened", "a problem started; it is reported once", IncidentOpened)
INCIDENT_CLOSED: Final = INCIDENTS.event(
    "closed",
    "it is over; this is reported once, unless a person acknowledged it or removed its subject",
    IncidentClosed,
)

WORKFLOWS: Final = EventStream("workflows")
WORKFLOW_DEPLOYED: Final = WORKFLOWS.event("deployed", "a new version is in effect", WorkflowChanged)
WORKFLOW_REMOVED: Final = WORKFLOWS.event("removed", "it was removed", WorkflowChanged)
WORKFLOW_PAUSED: Final = WORKFLOWS.event("paused", "it was paused by a person", WorkflowChanged)
WORKFLOW_RESUMED: Final = WORKFLOWS.event("resumed", "it was resumed by a person", WorkflowChanged)
WORKFLOW_DRAFT: Final = WORKFLOWS.event("draft", "a person set this status", WorkflowChanged)
WORKFLOW_READY: Final = WORKFLOWS.event("ready", "a person set this status", WorkflowChanged)
WORKFLOW_SESSION_STARTED: Final = WORKFLOWS.event("session-started", "a session started", WorkflowChanged)
WORKFLOW_PUBLISHED: Final = WORKFLOWS.event("published", "messages were published from outside", WorkflowChanged)
WORKFLOW_COMMITTED: Final = WORKFLOWS.event(
    "committed", "a handler's run was committed, with the messages it published and consumed", WorkflowChanged
)
WORKFLOW_SKIPPED: Final = WORKFLOWS.event(
    "skipped", "messages were skipped, by a consumer or by a person", WorkflowChanged
)
WORKFLOW_REPLAYED: Final = WORKFLOWS.event("replayed", "a person made skipped messages pending again", WorkflowChanged)
WORKFLOW_MESSAGES_LEFT: Final = WORKFLOWS.event(
    "messages-left", "a deployment removed a consumer; says what happens to its messages", WorkflowChanged
)
WORKFLOW_RETRYING: Final = WORKFLOWS.event(
    "retrying", "a handler's run failed temporarily; the handler backs off", WorkflowChanged
)
WORKFLOW_LIMITED: Final = WORKFLOWS.event(
    "limited", "consumers that publish to themselves reached their rate limit", WorkflowChanged
)
WORKFLOW_STOPPED: Final = WORKFLOWS.event("stopped", "it stopped with an error and needs a person", WorkflowChanged)
WORKFLOW_RESOLVED: Final = WORKFLOWS.event("resolved", "a person resolved an uncertain side effect", WorkflowChanged)

SLOTS: Final = EventStream("slots")
SLOT_READ: Final = SLOTS.event("read", "the quota was read", SlotChanged)
SLOT_FAILED: Final = SLOTS.event("failed", "it could not be read", SlotChanged)
SLOT_BACKOFF: Final = SLOTS.event("backoff", "the next reading is delayed", SlotChanged)
SLOT_RECOVERED: Final = SLOTS.event("recovered", "it can be read again", SlotChanged)
SLOT_DISABLED: Final = SLOTS.event("disabled", "too many errors: the slot is off", SlotChanged)
SLOT_STATISTICS: Final = SLOTS.event("statistics", "the provider's statistics were read", SlotChanged)
SLOT_INITIAL_WAKE: Final = SLOTS.event("initialWake", "a wake is due at startup", SlotChanged)
SLOT_DUE: Final = SLOTS.event("due", "a wake is due", SlotChanged)
SLOT_NOT_NEEDED: Final = SLOTS.event("notNeeded", "it was due, but the window is warm", SlotChanged)
SLOT_SUPPRESSED: Final = SLOTS.event(
    "suppressed", "a wake was due while an earlier one was waiting for confirmation; nothing is sent", SlotChanged
)
SLOT_MISSED: Final = SLOTS.event("missed", "its time passed while no node ticked", SlotChanged)
SLOT_WOKEN: Final = SLOTS.event("woken", "a wake was sent", SlotChanged)
SLOT_WAKE_FAILED: Final = SLOTS.event("wakeFailed", "it could not be sent", SlotChanged)
SLOT_REFUSED: Final = SLOTS.event("refused", "the key was rejected: no wake is sent", SlotChanged)
SLOT_PENDING_SET: Final = SLOTS.event("pendingSet", "a wake is waiting for confirmation", SlotChanged)
SLOT_PENDING_CLEARED: Final = SLOTS.event("pendingCleared", "it is no longer waiting for confirmation", SlotChanged)
SLOT_CONFIRMED: Final = SLOTS.event("confirmed", "a reading shows the new window", SlotChanged)
SLOT_UNCONFIRMED: Final = SLOTS.event("unconfirmed", "a reading does not show it yet", SlotChanged)
SLOT_WAKE_DISABLED: Final = SLOTS.event("wakeDisabled", "too many errors: no more wakes", SlotChanged)
SLOT_RESUMED: Final = SLOTS.event("resumed", "a person resumed it", SlotChanged)
SLOT_RESTARTED: Final = SLOTS.event("restarted", "it was stuck and was restarted", SlotChanged)
SLOT_STARTED: Final = SLOTS.event("started", "its wakes are planned", SlotChanged)
SLOT_POLLER_STARTED: Final = SLOTS.event("pollerStarted", "its readings are planned", SlotChanged)
SLOT_CHANGED: Final = SLOTS.event("changed", "its settings changed", SlotChanged)
SLOT_OFF: Final = SLOTS.event("off", "its wakes are switched off", SlotChanged)
SLOT_STOPPED: Final = SLOTS.event("stopped", "it was removed", SlotChanged)
SLOT_INVALID: Final = SLOTS.event("invalid", "its settings cannot be used", SlotChanged)

STREAMS: Final[Mapping[str, EventStream]] = {
    stream.name: stream
    for stream in (
        RUNS, SCHEDULES, NODES, ALERTS, HEARTBEAT, EVENTS, MESSAGES, DELIVERIES, INCIDENTS, WORKFLOWS, SLOTS
    )
}  # fmt: skip
"""By name, in the order of the docs."""

SCHEDULE_CHANGES: Final[Mapping[str, EventKind[ScheduleChanged]]] = {
    kind.what: kind for kind in SCHEDULES.kinds if kind.shape is ScheduleChanged
}
"""The events of what the engine tells about schedules."""
