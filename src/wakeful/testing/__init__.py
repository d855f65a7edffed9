"""For tests of programs that embed Wakeful: a virtual clock.

`virtual` starts an app on a virtual clock inside the event loop of the test; the pytest fixture `wakeful_virtual` does
the same with a separate file per test. `VirtualLoop` and `VirtualClock` run a whole event loop in virtual time, without
threads and sockets. What only the tests of Wakeful itself use is in the repository under `tests`: the conformance suite
of the stores (`tests/conformance`) and the simulator (`tests/worlds`).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from wakeful.testing.virtual_clock import VirtualClock
    from wakeful.testing.virtual_loop import VirtualLoop, run
    from wakeful.testing.virtual_time import VirtualTime, virtual

__all__ = ["VirtualClock", "VirtualLoop", "VirtualTime", "run", "virtual"]

# Imported on first use: pytest loads this package at every start, for the fixture.
_MODULES: Final = {
    "VirtualClock": "wakeful.testing.virtual_clock",
    "VirtualLoop": "wakeful.testing.virtual_loop",
    "VirtualTime": "wakeful.testing.virtual_time",
    "run": "wakeful.testing.virtual_loop",
    "virtual": "wakeful.testing.virtual_time",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_MODULES[name]), name)
    globals()[name] = value
    return value
