"""The data of the events of the live stream. What has a default is left out while it has that value."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from wakeful.core.returned import At, Named, RunId, kind
from wakeful.core.time.instants import Duration

_Flag = Annotated[int, kind({"type": "boolean"}, bool)]
_Id = Annotated[int, kind({"type": "string"}, str)]


# Runs and schedules


@dataclass(frozen=True, slots=True)
class RunChanged:
    """The summary of a run for watchers; the full run is at /api/runs/{id}."""

    run_id: RunId
    slug: str | None
    planned_at: At
    due_at: At
    started_at: At | None
    ended_at: At | None
    attempt: int
    trigger: str
    outcome: str
    reason: str | None
    rung: str | None
    error: str | None
    next_attempt_at: At | None
    instants: Annotated[int, Named("count")] = 1
    planned_until: At | None = None
    blocked_by: RunId | None = None
    stuck: _Flag = 0


@dataclass(frozen=True, slots=True)
class Climbed:
    """The rung that a run reached."""

    run_id: RunId
    rung: str


@dataclass(frozen=True, slots=True)
class RunNamed:
    """A run."""

    run_id: RunId


@dataclass(frozen=True, slots=True)
class CancelRequested:
    """Who asked to cancel a run."""

    run_id: RunId
    by: str


@dataclass(frozen=True, slots=True)
class ScheduleChanged:
    """The new state of a schedule."""

    slug: str | None
    version: int
    reason: str | None


@dataclass(frozen=True, slots=True)
class Counted:
    """How many, and by whom."""

    count: int
    by: str


@dataclass(frozen=True, slots=True)
class Proposed:
    """A proposal of an agent."""

    proposal_id: str
    owner: str


@dataclass(frozen=True, slots=True)
class Decided:
    """The decision on a proposal."""

    proposal_id: str
    owner: str
    decision: str
    by: str


# Nodes


@dataclass(frozen=True, slots=True)
class NodeEntered:
    """A process that ticks."""

    node_id: _Id
    name: str
    host: str
    pid: int


@dataclass(frozen=True, slots=True)
class NodeNamed:
    """A node."""

    node_id: _Id


@dataclass(frozen=True, slots=True)
class ClockJumped:
    """By how much the clock differs from the time that has passed."""

    by_ms: Duration


# The heartbeat


@dataclass(frozen=True, slots=True)
class Woken:
    """Why a turn was requested, and whether by the agent itself."""

    reason: str
    own: bool


@dataclass(frozen=True, slots=True)
class Turned:
    """How a turn ended."""

    run_id: RunId
    status: str | None
    reason: str | None
    reasons: Sequence[str]


@dataclass(frozen=True, slots=True)
class Tripped:
    """The budget, and when turns continue."""

    turns_per_hour_max: int
    held_until: At


@dataclass(frozen=True, slots=True)
class Raised:
    """A system event."""

    id: _Id
    context_key: str | None
    source: str
    revision: int


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """The turn, and the system events in it."""

    run_id: RunId
    ids: Sequence[_Id]


@dataclass(frozen=True, slots=True)
class Evicted:
    """A system event that was dropped."""

    id: _Id
    context_key: str | None
    source: str
    text: str


@dataclass(frozen=True, slots=True)
class Received:
    """The channel of a message, and the run that answers it."""

    run_id: RunId
    channel: str


# Delivery


@dataclass(frozen=True, slots=True)
class DeliveryChanged:
    """A delivery. Its text is left out: only the recipient may see it."""

    delivery: int
    channel: str
    to: str | None
    purpose: str
    run_id: RunId | None
    slug: str | None
    attempts: int | None = None
    error: str | None = None
    next_attempt_at: At | None = None


@dataclass(frozen=True, slots=True)
class Suppressed:
    """What is not sent."""

    channel: str
    run_id: RunId | None
    slug: str | None


@dataclass(frozen=True, slots=True)
class IncidentText:
    """An incident in words."""

    incident: str
    text: str


@dataclass(frozen=True, slots=True)
class IncidentOpened:
    """An incident in words, and how often it was reopened."""

    incident: str
    text: str
    reopened: int | None = None


@dataclass(frozen=True, slots=True)
class IncidentClosed:
    """An incident in words, and how often it happened."""

    incident: str
    text: str
    times: int


# Workflows and slots


@dataclass(frozen=True, slots=True)
class WorkflowChanged:
    """A workflow, and what changed."""

    workflow: str
    handler: str | None = None
    run_id: RunId | None = None
    session_id: _Id | None = None
    kind: str | None = None
    status: str | None = None
    version: int | None = None
    topic: str | None = None
    count: int | None = None
    published: int | None = None
    consumed: int | None = None
    skipped: int | None = None
    tries: int | None = None
    error: str | None = None
    choice: str | None = None
    warning: str | None = None


@dataclass(frozen=True, slots=True)
class SlotChanged:
    """The state of a slot, and what changed."""

    slot: str
    percentage: float | None
    reset_at: At | None
    quota_errors: int
    wake_errors: int
    wake_pending: bool
    is_disabled: bool
    is_wake_disabled: bool
    run_id: RunId | None = None
    count: int | None = None
    errors: int | None = None
    error: str | None = None
    kind: str | None = None
    unsent: int | None = None
    again: At | None = None
    next_poll: At | None = None
    warm: bool | None = None
    is_kept: bool | None = None
