"""Convert the settings to the configuration of the app."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from wakeful.core.time.instants import format_duration

if TYPE_CHECKING:
    from wakeful.app.runtime_config import Changes
    from wakeful.config import Settings
    from wakeful.core.delivery.alert_rules import AlertTerms
    from wakeful.core.delivery.retries import DeliveryLimits
    from wakeful.core.schedule.exclude import Exclude
    from wakeful.core.self_scheduling.limits import SelfSchedulingTerms


def delivery_of(settings: Settings) -> DeliveryLimits:
    from wakeful.core.delivery.retries import DeliveryLimits

    delivery = settings.delivery
    return DeliveryLimits(delivery.retries_max, delivery.recovery_budget, delivery.age_max)


def alerts_of(settings: Settings) -> AlertTerms:
    """The alert limits."""
    from wakeful.core.delivery.alert_rules import AlertRule, AlertTerms

    alerts = settings.alerts
    ping = None if alerts.ping is None else alerts.ping.reveal()
    return AlertTerms(AlertRule(alerts.errors, alerts.within, alerts.channel), alerts.outage, ping, alerts.ping_every)


def collector(settings: Settings) -> str | None:
    """Where traces go: the settings, else OpenTelemetry's standard variables."""
    from wakeful.observe.otlp import endpoint_in

    return settings.otel.endpoint or endpoint_in(os.environ)


def providers_of(settings: Settings) -> dict[str, str]:
    """Who provides the models of the agents."""
    from wakeful.config.agents import provider_of

    return {name: provider_of(agent) for name, agent in settings.agents.items()}


def self_scheduling_of(settings: Settings) -> SelfSchedulingTerms:
    """What agents may schedule by themselves, and who may approve by chat."""
    from wakeful.core.self_scheduling.limits import SelfSchedulingTerms

    limits = settings.self_scheduling
    return SelfSchedulingTerms(
        limits.approval,
        limits.schedules_max,
        limits.interval_min,
        limits.expires,
        limits.depth_max,
        limits.wakes_per_day,
        tuple(settings.alerts.approvers),
    )


def conduct_of(settings: Settings) -> Changes:
    """The runtime configuration."""
    limits, schedules = settings.limits, settings.schedules
    return {
        "timezone": schedules.timezone,
        "standby": not schedules.enabled,
        "concurrency_max": limits.concurrency_max,
        "shutdown_grace": format_duration(limits.shutdown_grace),
        "every_min": format_duration(limits.every_min),
        "agent_interval_min": format_duration(limits.agent_interval_min),
        "agent_lane": limits.agent_lane,
        "ledger_days": limits.ledger_days,
        "exclude": exclude_of(settings),
        "labels": settings.node.labels,
    }


def exclude_of(settings: Settings) -> Exclude | None:
    """The days on which no schedule runs."""
    from wakeful.core.schedule.exclude import Exclude

    days = settings.exclude
    return Exclude(days.dates, days.calendar) if days.dates or days.calendar is not None else None
