"""Wakeful for Python programs: a scheduler in this process over one store."""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from wakeful.app.facade import Wakeful
    from wakeful.app.heartbeat_settings import Heartbeat
    from wakeful.app.values import Guard, MakeListener, MakeService, MakeSink, New, WrittenSchedule
    from wakeful.ports.handlers import BackgroundService

__all__ = [
    "BackgroundService",
    "Guard",
    "Heartbeat",
    "MakeListener",
    "MakeService",
    "MakeSink",
    "New",
    "Wakeful",
    "WrittenSchedule",
]

# Imported on first use: the process of a simulation needs the composition root, and nothing else of the app.
_MODULES: Final = {
    "BackgroundService": "wakeful.ports.handlers",
    "Heartbeat": "wakeful.app.heartbeat_settings",
    "Wakeful": "wakeful.app.facade",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_MODULES.get(name, "wakeful.app.values")), name)
    globals()[name] = value
    return value
