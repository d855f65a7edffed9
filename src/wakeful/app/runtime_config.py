"""The part of an app's configuration that may change while it runs: read and checked in one place."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta, tzinfo
from typing import Any, NamedTuple, TypedDict

from wakeful.app.bootstrap import resolve_zone
from wakeful.app.plain import plain
from wakeful.core.errors import FieldError, Invalid
from wakeful.core.schedule.exclude import Exclude, exclude_from
from wakeful.core.schedule.labels import LABEL_CURE, is_label
from wakeful.core.time.timing_builders import as_duration, as_zone
from wakeful.engine.limits import Limits
from wakeful.features.schedules.rules import AgentLane, Terms


class Changes(TypedDict, total=False):
    """Values to change; the others stay as they are. Durations are text such as `90s` and `30m`, or timedeltas."""

    timezone: str | tzinfo
    concurrency_max: int
    shutdown_grace: str | timedelta
    every_min: str | timedelta
    agent_interval_min: str | timedelta
    ledger_days: int
    standby: bool
    agent_lane: AgentLane
    exclude: Exclude | Mapping[str, Any] | None
    labels: Sequence[str]


class RuntimeConfig(NamedTuple):
    """Limits of the engine, and terms for all schedules."""

    limits: Limits
    terms: Terms


def changed(before: RuntimeConfig, changes: Changes) -> RuntimeConfig:
    """The configuration with these changes; raises `Invalid` if a value is invalid, and then nothing is changed."""
    limits, terms = before
    if "concurrency_max" in changes:
        limits = replace(limits, concurrency_max=_at_least_one(changes["concurrency_max"], "concurrency_max"))
    if "shutdown_grace" in changes:
        limits = replace(limits, shutdown_grace=as_duration(changes["shutdown_grace"], "shutdown_grace"))
    if "ledger_days" in changes:
        limits = replace(limits, ledger_days=_at_least_one(changes["ledger_days"], "ledger_days"))
    if "labels" in changes:
        limits = replace(limits, labels=_labels(changes["labels"]))
    if "every_min" in changes:
        every_min = as_duration(changes["every_min"], "every_min")
        terms = replace(terms, limits=replace(terms.limits, every_min=every_min))
    if "agent_interval_min" in changes:
        interval = as_duration(changes["agent_interval_min"], "agent_interval_min")
        terms = replace(terms, limits=replace(terms.limits, agent_interval_min=interval))
    if "timezone" in changes:
        terms = replace(terms, default_zone=_zone(changes["timezone"]))
    if "standby" in changes:
        terms = replace(terms, is_standby=changes["standby"])
    if "agent_lane" in changes:
        terms = replace(terms, agent_lane=_lane(changes["agent_lane"]))
    if "exclude" in changes:
        terms = replace(terms, exclude=exclude_from(plain(changes["exclude"], "exclude")))
    return RuntimeConfig(limits, terms)


def _at_least_one(number: int, field: str) -> int:
    if number < 1:
        raise Invalid(FieldError(field, f"{number} is too small; write 1 or more"))
    return number


def _zone(timezone: str | tzinfo) -> str:
    return resolve_zone("local") if timezone == "local" else as_zone(timezone, "timezone")


def _labels(labels: Sequence[str]) -> frozenset[str]:
    given = [labels] if isinstance(labels, str) else labels
    wrong = [label for label in given if not is_label(label)]
    if wrong:
        raise Invalid(FieldError("labels", f"{wrong[0]!r} is not a label; {LABEL_CURE}"))
    return frozenset(given)


def _lane(agent_lane: AgentLane) -> AgentLane:
    if agent_lane not in ("serial", "parallel"):
        raise Invalid(FieldError("agent_lane", f"{agent_lane!r} is not valid; write 'serial' or 'parallel'"))
    return agent_lane
