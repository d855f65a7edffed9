"""Effects: what a finished piece of work asks the rest of the system to do.

Handlers return effects as values; settle applies them inside its transaction through appliers that the composition
root maps. So a feature can ask for a delivery or a wake without importing the feature that performs it, and an effect
is durable exactly when the outcome that caused it is.
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
    unless_told: tuple[int, ...] = ()  # not if each of these runs has told people itself
    is_note: bool = False  # not the reply itself, but word that there is none


@dataclass(frozen=True, slots=True)
class RaiseEvent:
    """Queue a system event for the next turn."""

    text: str
    context_key: str | None  # None: nothing replaces it
    source: str
    slug: str | None = None
    run_id: int | None = None  # the run that waits for a turn to have carried it


@dataclass(frozen=True, slots=True)
class RequestWake:
    """Ask for a turn."""

    reason: Literal["cron", "message", "manual", "hook"]


@dataclass(frozen=True, slots=True)
class Prove:
    """What a run had entrusted to another part of ours came to its end there: well, in error, or never."""

    run_id: int
    error: str | None = None
    dropped: str | None = None  # the reason why it will not happen
    reply: str | None = None  # what came of it for people, if it ended well; empty: nothing


@dataclass(frozen=True, slots=True)
class Replan:
    """The timing of these schedules rests on a fact that changed: plan them again."""

    slot: str
    reset_at: Instant | None


@dataclass(frozen=True, slots=True)
class Alert:
    """Something a person should know, once per incident."""

    incident: str
    text: str


@dataclass(frozen=True, slots=True)
class Recovered:
    """What was wrong is right again: whoever was told of one of these incidents should know."""

    incidents: tuple[str, ...]


Counts: TypeAlias = Literal["run", "time", "never"]
"""When a bad ending is another bad instant: if it is of another run; if it was planned after the last one was noted, so
that tries for the same time are one; or never, for a retry."""


@dataclass(frozen=True, slots=True)
class Observed:
    """An attempt or an instant of a subject ended, badly or well: its incident follows from that (`core.incidents`).

    A keeper returns one for every bad ending, and for a good one of a subject that may have an incident."""

    incident: str  # the name: `failing`, `handler_incident` or `slot_incident` of `core.incidents`
    is_good: bool
    at: Instant  # when the instant was due
    run_id: int | None = None
    error: str | None = None
    owner_id: int | None = None
    is_urgent: bool = False  # report it at once: it failed for good, or nobody knows what it did
    needed: int = 2  # good instants in a row that end the incident
    counts: Counts = "run"
    also: tuple[str, ...] = ()  # of a good one: further incidents, told by `Alert`, that it ends
    alert: AlertChoice = None


@dataclass(frozen=True, slots=True)
class TakeMessage:
    """A person said this on a channel: give the agent a turn, and answer them there."""

    channel: str
    to: str
    text: str


Effect: TypeAlias = Deliver | RaiseEvent | RequestWake | Prove | Replan | Alert | Recovered | Observed | TakeMessage
EffectKind: TypeAlias = type[Effect]
