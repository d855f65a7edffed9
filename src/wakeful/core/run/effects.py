"""Effects: what a finished run requests from other parts of the system.

Handlers return effects as values; settling applies them inside its transaction through appliers that the composition
root registers. So a feature can request a delivery or a wake without importing the feature that performs it, and an
effect is durable exactly when the outcome that caused it is.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from wakeful.core.delivery.alert_rules import AlertChoice
from wakeful.core.time.instants import Instant


@dataclass(frozen=True, slots=True)
class Deliver:
    """Send this text to a person."""

    text: str
    channel: str | None = None
    to: str | None = None
    run_id: int | None = None
    slug: str | None = None
    unless_told: tuple[int, ...] = ()  # not if each of these runs has sent a message itself
    is_note: bool = False  # not the reply itself, but a note that there is none


@dataclass(frozen=True, slots=True)
class ChatDecision:
    """A person decided by chat on what an agent proposed: only through a channel's authenticated inbound messages."""

    decision: Literal["approve", "reject"]
    code: str
    channel: str
    to: str  # where to answer
    sender: str  # who wrote it


@dataclass(frozen=True, slots=True)
class RaiseEvent:
    """Queue a system event for the next turn."""

    text: str
    context_key: str | None  # a later event with this key replaces it; None: never replaced
    source: str
    slug: str | None = None
    run_id: int | None = None  # the run that waits until a turn has included it


@dataclass(frozen=True, slots=True)
class RequestWake:
    """Request a turn."""

    reason: Literal["cron", "message", "manual", "hook"]


@dataclass(frozen=True, slots=True)
class Prove:
    """A run that was handed over to another component ended there: with success, with an error, or not at all."""

    run_id: int
    error: str | None = None
    dropped: str | None = None  # the reason why it will not happen
    reply: str | None = None  # the result for people, on success; empty: nothing to deliver


@dataclass(frozen=True, slots=True)
class Replan:
    """The timing of these schedules depends on a value that changed: plan them again."""

    slot: str
    reset_at: Instant | None


@dataclass(frozen=True, slots=True)
class Alert:
    """A message for a person, sent once per incident."""

    incident: str
    text: str


@dataclass(frozen=True, slots=True)
class Recovered:
    """The problem is over: report it to everyone who was alerted about one of these incidents."""

    incidents: tuple[str, ...]


Counts: TypeAlias = Literal["run", "time", "never"]
"""When a bad ending counts as another bad instant: if it is of another run; if it was planned after the last one was
recorded, so that attempts for the same time count once; or never, for a retry."""


@dataclass(frozen=True, slots=True)
class Observed:
    """An attempt or an instant of a subject ended, bad or good; its incident follows (`core.delivery.incidents`).

    A keeper returns one for every bad ending, and for a good one of a subject that may have an incident."""

    incident: str  # `failing`, `handler_incident` or `slot_incident` of `core.delivery.incidents`
    is_good: bool
    at: Instant  # when the instant was due
    run_id: int | None = None
    error: str | None = None
    owner_id: int | None = None
    is_urgent: bool = False  # report it immediately: it failed for good, or its result is unknown
    needed: int = 2  # good instants in a row that end the incident
    counts: Counts = "run"
    also: tuple[str, ...] = ()  # of a good one: further incidents, raised by `Alert`, that it ends
    alert: AlertChoice = None


@dataclass(frozen=True, slots=True)
class TakeMessage:
    """A message from a person on a channel: give the agent a turn, and reply on that channel."""

    channel: str
    to: str
    text: str


@dataclass(frozen=True, slots=True)
class QuotaReached:
    """An agent reported that the quota of this slot is used up until a time."""

    slot: str
    until: Instant


Effect: TypeAlias = (
    Deliver
    | ChatDecision
    | RaiseEvent
    | RequestWake
    | Prove
    | Replan
    | Alert
    | Recovered
    | Observed
    | TakeMessage
    | QuotaReached
)
EffectKind: TypeAlias = type[Effect]
