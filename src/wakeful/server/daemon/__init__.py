"""The daemon: one home folder, one clock, one API.

Names are imported when they are first used: the command line only looks for the daemon of a home (`holder_of`), and
must not pay for the event loop and the server.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from wakeful.server.daemon.file_systems import network_file_system
    from wakeful.server.daemon.home import Holder, HomeHeld, holder_of
    from wakeful.server.daemon.process import OnReady, run, serve
    from wakeful.server.daemon.refusal import DaemonRefused
    from wakeful.server.daemon.sockets import Listening

__all__ = [
    "DaemonRefused",
    "Holder",
    "HomeHeld",
    "Listening",
    "OnReady",
    "holder_of",
    "network_file_system",
    "run",
    "serve",
]

_MODULES: Final = {
    "DaemonRefused": "refusal",
    "Holder": "home",
    "HomeHeld": "home",
    "Listening": "sockets",
    "OnReady": "process",
    "holder_of": "home",
    "network_file_system": "file_systems",
    "run": "process",
    "serve": "process",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
