"""Wakeful, the alarm clock for AI agents: a durable scheduler with one clock and one ledger."""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from wakeful.api.python import Wakeful
    from wakeful.app.heartbeat_settings import Heartbeat
    from wakeful.app.money import Budgets
    from wakeful.app.schedule_options import AddOptions
    from wakeful.app.values import New
    from wakeful.core.errors import FieldError, Invalid
    from wakeful.core.money.prices import Price
    from wakeful.core.refusals import Conflict, NotFound
    from wakeful.core.run.agent_reply import AgentReply
    from wakeful.core.run.usage import Usage
    from wakeful.core.time.timing_builders import after_reset, cron, every, manual, once, times
    from wakeful.features.schedules.queries import Stats
    from wakeful.features.schedules.run_views import AttemptView, RunView
    from wakeful.features.schedules.views import ScheduleView
    from wakeful.features.workflows.python import (
        Context,
        LogicError,
        Prepare,
        Produced,
        Publish,
        Received,
        Transient,
        Workflow,
    )
    from wakeful.integrations.actions.fire import Fire
    from wakeful.ports.store import StoreUnavailable

__all__ = [
    "AddOptions",
    "AgentReply",
    "AttemptView",
    "Budgets",
    "Conflict",
    "Context",
    "FieldError",
    "Fire",
    "Heartbeat",
    "Invalid",
    "LogicError",
    "New",
    "NotFound",
    "Prepare",
    "Price",
    "Produced",
    "Publish",
    "Received",
    "RunView",
    "ScheduleView",
    "Stats",
    "StoreUnavailable",
    "Transient",
    "Usage",
    "Wakeful",
    "Workflow",
    "after_reset",
    "cron",
    "every",
    "manual",
    "once",
    "times",
]

# Where each name lives. They are imported when first asked for: the command line must not wait for all of them.
_PLACES: Final = {
    "wakeful.api.python": ("Wakeful",),
    "wakeful.app.heartbeat_settings": ("Heartbeat",),
    "wakeful.app.schedule_options": ("AddOptions",),
    "wakeful.app.values": ("New",),
    "wakeful.app.money": ("Budgets",),
    "wakeful.core.money.prices": ("Price",),
    "wakeful.core.errors": ("FieldError", "Invalid"),
    "wakeful.core.refusals": ("Conflict", "NotFound"),
    "wakeful.core.run.agent_reply": ("AgentReply",),
    "wakeful.core.run.usage": ("Usage",),
    "wakeful.core.time.timing_builders": ("after_reset", "cron", "every", "manual", "once", "times"),
    "wakeful.features.schedules.queries": ("Stats",),
    "wakeful.features.schedules.run_views": ("AttemptView", "RunView"),
    "wakeful.features.schedules.views": ("ScheduleView",),
    "wakeful.features.workflows.python": (
        "Context",
        "LogicError",
        "Prepare",
        "Produced",
        "Publish",
        "Received",
        "Transient",
        "Workflow",
    ),
    "wakeful.integrations.actions.fire": ("Fire",),
    "wakeful.ports.store": ("StoreUnavailable",),
}
_MODULES: Final = {name: module for module, names in _PLACES.items() for name in names}


if not TYPE_CHECKING:  # or type checkers would take any name for one of ours

    def __getattr__(name: str) -> Any:
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(_MODULES[name]), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
