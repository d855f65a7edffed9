"""Checks of a well-formed definition: limits, and whether this process supports what it uses."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from wakeful.core.errors import FieldError, Invalid
from wakeful.core.run.effects import Deliver, EffectKind, RaiseEvent
from wakeful.core.run.runs import rung_index
from wakeful.core.schedule.actions import Call, Command, Dispatch, Event, Http, Prompt
from wakeful.core.schedule.definition import Definition
from wakeful.core.schedule.exclude import in_zone
from wakeful.core.schedule.policies import GRACE
from wakeful.core.time.excluded_days import ExcludedDays, is_excluded, local_day
from wakeful.core.time.instants import HOUR, SECOND, Duration, Instant, format_duration, format_instant
from wakeful.core.time.spacing import clamped, shortest_gap
from wakeful.core.time.timing import Every, Once, is_past, resolve, zone_of
from wakeful.ports.action import Action
from wakeful.ports.handlers import DefinitionCheck, EngineHooks
from wakeful.ports.store import Tx

MINIMUM_INTERVAL: Final = "Minimum interval is "
MINIMUM_INTERVAL_CURE: Final = (
    " for an agent, because turns cost money; lower limits.agent_interval_min in wakeful.toml"
)
"""Follows the wording that clients depend on, in every message for people."""
FIELD_OF_ACTION: Final[Mapping[type[Any], str]] = {
    Prompt: "prompt",
    Command: "command",
    Http: "http",
    Call: "call",
    Dispatch: "dispatch",
    Event: "event",
}


@dataclass(frozen=True, slots=True)
class ScheduleLimits:
    """Limits on how often schedules run."""

    agent_interval_min: Duration = HOUR
    every_min: Duration = 10 * SECOND


class Checked(NamedTuple):
    """A definition that passed the checks, with warnings for its author."""

    definition: Definition
    is_anchor_open: bool = False  # no anchor was given: an edit keeps the current grid
    warnings: tuple[str, ...] = ()
    refusal: FieldError | None = None  # for a new time that will not run; a stored one may stay


class Conditions(NamedTuple):
    """What definitions are checked against in this process."""

    limits: ScheduleLimits
    default_zone: str
    actions: Mapping[type[Any], Action]
    applied: frozenset[EffectKind]
    checks: Sequence[DefinitionCheck] = ()  # of the features
    excluded: Callable[[Definition], ExcludedDays | None] = lambda _: None  # the days on which it does not run
    calendar_fault: Callable[[str], str | None] = lambda _: None  # why a calendar file cannot be read


def check(definition: Definition, conditions: Conditions, *, now: Instant) -> Checked:
    """Fill in defaults, refuse what cannot work in this process, clamp intervals that are too short."""
    limits, default_zone, actions, applied, checks, excluded, calendar_fault = conditions
    is_anchor_open = isinstance(definition.timing, Every) and definition.timing.anchor is None
    timing = resolve(definition.timing, now=now, default_zone=default_zone)
    if timing is not definition.timing:
        definition = replace(definition, timing=timing)
    if definition.exclude is not None and zone_of(timing) is None:
        definition = replace(definition, exclude=in_zone(definition.exclude, default_zone))
    errors = [*_check_action(definition, actions), *_check_success(definition, actions)]
    errors += _check_effects(definition, applied)
    errors += [error for feature_check in checks for error in feature_check(definition)]
    errors += _check_check(definition, actions)
    errors += _check_calendar(definition, calendar_fault)
    if isinstance(definition.action, Prompt) and definition.check is None:
        gap = shortest_gap(definition.timing)
        if gap is not None and gap < limits.agent_interval_min:
            errors.append(too_often(limits.agent_interval_min))
    if errors:
        raise Invalid(*errors)
    refusal = _excluded_instant(definition, excluded(definition))
    return _clamped(Checked(definition, is_anchor_open, refusal=refusal), limits)


def refuse_excluded(checked: Checked) -> None:
    """Refuse a single instant on an excluded day: it would be skipped."""
    if checked.refusal is not None:
        raise Invalid(checked.refusal)


def refusal_of(tx: Tx, checked: Checked, *, hooks: EngineHooks, now: Instant) -> Invalid | None:
    """Why a new definition would be refused at this time; None if it would be written."""
    try:
        refuse_past(checked.definition, now)
        refuse_excluded(checked)
        refuse_short_lateness(checked.definition)
        refuse_unknown(tx, checked.definition, hooks)
    except Invalid as refused:
        return refused
    return None


def refuse_past(definition: Definition, now: Instant) -> None:
    """Refuse a single instant, or an end, in the past: it would never run."""
    if definition.expires_at is not None and definition.expires_at <= now:
        raise Invalid(FieldError("expiresAt", f"is in the past (now is {format_instant(now)}); give a later time"))
    if is_past(definition.timing, now):
        raise Invalid(FieldError("schedule.at", f"is in the past (now is {format_instant(now)}); give a later time"))


def refuse_short_lateness(definition: Definition) -> None:
    """Refuse a limit that no run can exceed: within the grace period, a run is on time."""
    limit = definition.lateness_max
    if limit is not None and limit < GRACE:
        grace = format_duration(GRACE)
        raise Invalid(
            FieldError(
                "maxLateness",
                f"{format_duration(limit)} is too short: a run that begins within {grace} of its time is never late; "
                f"write at least {grace}, or leave it out",
            )
        )


def refuse_unknown(tx: Tx, definition: Definition, hooks: EngineHooks) -> None:
    """Refuse references to things that do not exist, such as slots."""
    errors = [error for ask in hooks.stored_checks for error in ask(tx, definition)]
    if errors:
        raise Invalid(*errors)


def too_often(minimum: Duration) -> FieldError:
    """The refusal of an agent's schedule that would run more often than the limit, with its cure."""
    return FieldError("schedule", minimum_interval_text(minimum) + MINIMUM_INTERVAL_CURE)


def minimum_interval_text(minimum: Duration) -> str:
    """The wording that clients of the session scheduler expect."""
    minutes = minimum // 60_000
    if minimum == HOUR:
        return f"{MINIMUM_INTERVAL}60 minutes (1 hour)"
    return f"{MINIMUM_INTERVAL}{minutes} minutes ({format_duration(minimum)})"


def _check_action(definition: Definition, actions: Mapping[type[Any], Action]) -> list[FieldError]:
    field = FIELD_OF_ACTION[type(definition.action)]
    action = actions.get(type(definition.action))
    if action is None:
        can = ", ".join(FIELD_OF_ACTION[kind] for kind in actions if kind in FIELD_OF_ACTION)
        return [FieldError(field, f"this process cannot perform it; it supports {can}")]
    problem = action.check(definition.action)
    if problem is None:
        return []
    return [problem if isinstance(problem, FieldError) else FieldError(field, problem)]


def _check_check(definition: Definition, actions: Mapping[type[Any], Action]) -> list[FieldError]:
    """Refuse a check that this process cannot perform."""
    if definition.check is None:
        return []
    asked = definition.check.action
    field, action = f"check.{FIELD_OF_ACTION[type(asked)]}", actions.get(type(asked))
    problem = "this process cannot perform it" if action is None else action.check(asked)
    if problem is None:
        return []
    return [FieldError(field, problem if isinstance(problem, str) else problem.message)]


def _check_calendar(definition: Definition, calendar_fault: Callable[[str], str | None]) -> list[FieldError]:
    """Refuse a calendar file that cannot be read now. If that happens later, it excludes nothing and is a finding."""
    name = None if definition.exclude is None else definition.exclude.calendar
    fault = None if name is None else calendar_fault(name)
    return [] if fault is None else [FieldError("exclude.calendar", f"{fault}; correct the file, or name another")]


def _excluded_instant(definition: Definition, excluded: ExcludedDays | None) -> FieldError | None:
    timing = definition.timing
    if excluded is None or not isinstance(timing, Once) or timing.at is None or not is_excluded(excluded, timing.at):
        return None
    day = local_day(excluded.zone, timing.at)
    return FieldError("schedule.at", f"{day} is excluded, so it would not run; give a time on another day")


def _check_success(definition: Definition, actions: Mapping[type[Any], Action]) -> list[FieldError]:
    """Refuse a success rung that can never be proven."""
    action, success = actions.get(type(definition.action)), definition.success
    if action is None or success is None:
        return []
    proven = action.proves(definition.action)
    if rung_index(success) <= rung_index(proven):
        return []
    cure = f'write "{proven}", or leave it out'
    return [FieldError("success", f"{success} can never be proven: its target proves at most {proven}; {cure}")]


def _check_effects(definition: Definition, applied: frozenset[EffectKind]) -> list[FieldError]:
    """Refuse effects that this process does not apply: they would be lost silently."""
    errors: list[FieldError] = []
    if definition.deliver is not None and Deliver not in applied:
        errors.append(
            FieldError("deliver", "delivery is not configured in this process; leave it out, or add channels")
        )
    if isinstance(definition.action, Event) and RaiseEvent not in applied:
        errors.append(FieldError("event", "events are not supported in this process; run with the heartbeat"))
    return errors


def _clamped(checked: Checked, limits: ScheduleLimits) -> Checked:
    timing, said = clamped(checked.definition.timing, limits.every_min)
    if said is None:
        return checked
    return checked._replace(
        definition=replace(checked.definition, timing=timing), warnings=(f"schedule.every: {said}",)
    )
