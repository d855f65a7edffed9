"""The definition of a schedule: what happens, and when, as its owner wrote it."""

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, TypeAlias

from wakeful.core.delivery.alert_rules import AlertChoice
from wakeful.core.errors import FieldError, Invalid
from wakeful.core.fields import shown
from wakeful.core.run.runs import RungName
from wakeful.core.run.settlement import Policy
from wakeful.core.schedule.actions import ActionSpec, Prompt
from wakeful.core.schedule.cadence import Rules
from wakeful.core.schedule.policies import (
    AGENT_RETRY,
    CATCH_UP_MAX,
    ERRORS_MAX,
    NO_RETRY,
    ONE_SHOT_TRIES,
    TIMEOUT,
    CatchUp,
    OnCrash,
    Overlap,
    Retry,
    stagger_offset,
)
from wakeful.core.time.active_hours import ActiveHours
from wakeful.core.time.instants import Duration
from wakeful.core.time.spacing import shortest_gap
from wakeful.core.time.timing import Once, Timing

SLUG_PATTERN: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
RULES_KEPT: Final = 4096
RESERVED_SLUGS: Final = frozenset({"heartbeat"})


@dataclass(frozen=True, slots=True)
class DeliverTo:
    """Where a run's reply goes."""

    channel: str
    to: str | None = None


Deliver: TypeAlias = DeliverTo | tuple[DeliverTo, ...] | None
"""One recipient, or several, as written."""


@dataclass(frozen=True, slots=True)
class Definition:
    """Everything its owner decides about a schedule."""

    slug: str
    timing: Timing
    action: ActionSpec
    enabled: bool | None = None  # None: unchanged; a new schedule is enabled
    deliver: Deliver = None
    catch_up: CatchUp = "once"
    catch_up_max: int = CATCH_UP_MAX
    lateness_max: Duration | None = None
    overlap: Overlap = "skip"
    timeout: Duration = TIMEOUT
    on_crash: OnCrash = "retry"
    retry: Retry | None = None  # None: the default for its action
    errors_max: int = ERRORS_MAX
    active_hours: ActiveHours | None = None
    stagger: Duration = 0
    success: RungName | None = None
    slot: str | None = None
    lane: str | None = None
    alert: AlertChoice = None


def addressees_of(definition: Definition) -> tuple[DeliverTo, ...]:
    """All recipients of a run's reply."""
    deliver = definition.deliver
    if deliver is None:
        return ()
    return (deliver,) if isinstance(deliver, DeliverTo) else deliver


def retry_of(definition: Definition) -> Retry:
    """Agents are retried until the next instant, everything else not at all, unless the definition says otherwise."""
    return usual_retry(definition.action) if definition.retry is None else definition.retry


def bounded_retry(definition: Definition) -> Retry:
    """The effective retry: a one-shot has no next instant, so "until the next instant" becomes a count."""
    retry = retry_of(definition)
    if retry.times is None and isinstance(definition.timing, Once) and isinstance(definition.action, Prompt):
        return replace(retry, times=ONE_SHOT_TRIES - 1)
    return retry


def usual_retry(action: ActionSpec) -> Retry:
    """The default of `retry`."""
    return AGENT_RETRY if isinstance(action, Prompt) else NO_RETRY


def rules_of(definition: Definition, schedule_id: int) -> Rules:
    """The part that is used for planning."""
    stagger = definition.stagger
    offset = stagger_offset(schedule_id, stagger, shortest_gap(definition.timing)) if stagger else 0
    late = (definition.catch_up, definition.catch_up_max, definition.lateness_max)
    return _rules(definition.timing, offset, *late, definition.overlap)


# Schedules with equal rules share one object: it is built once, and schedules that are due together share decisions.
_rules: Final = lru_cache(maxsize=RULES_KEPT)(Rules)


def policy_of(definition: Definition) -> Policy:
    """The part that is used for settling."""
    return Policy(
        bounded_retry(definition), definition.on_crash, definition.errors_max, definition.success, definition.alert
    )


def check_slug(slug: str) -> None:
    """Refuse an invalid or a reserved slug."""
    if not isinstance(slug, str) or not SLUG_PATTERN.fullmatch(slug):
        cure = "use 1 to 64 of a-z 0-9 . _ - beginning with a letter or digit"
        raise Invalid(FieldError("slug", f"{shown(slug)} is not a slug; {cure}"))
    if slug in RESERVED_SLUGS:
        raise Invalid(FieldError("slug", f"{slug!r} is reserved; choose another name"))
