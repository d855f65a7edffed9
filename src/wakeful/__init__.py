"""Wakeful, the alarm clock for AI agents: a durable scheduler with one clock and one ledger."""

from wakeful.app import New, Wakeful
from wakeful.core.errors import FieldError, Invalid
from wakeful.core.refusals import Conflict, NotFound
from wakeful.core.timing_builders import after_reset, cron, every, manual, once, times
from wakeful.features.schedules.queries import Stats
from wakeful.features.schedules.views import AttemptView, RunView, ScheduleView
from wakeful.ports.store import StoreUnavailable

__all__ = [
    "AttemptView",
    "Conflict",
    "FieldError",
    "Invalid",
    "New",
    "NotFound",
    "RunView",
    "ScheduleView",
    "Stats",
    "StoreUnavailable",
    "Wakeful",
    "after_reset",
    "cron",
    "every",
    "manual",
    "once",
    "times",
]
