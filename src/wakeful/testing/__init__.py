"""For tests of programs that embed Wakeful: time that is an argument, and what any store must do.

`VirtualLoop` and `VirtualClock` run an event loop in virtual time: hours pass in milliseconds, and the same program
gives the same story every time. The conformance suite is in `wakeful.testing.conformance`: a test module imports its
classes and gives them a `make_store` fixture. The simulator is `wakeful.simulation`.
"""

from wakeful.simulation.clock import VirtualClock
from wakeful.simulation.loop import VirtualLoop, run

__all__ = ["VirtualClock", "VirtualLoop", "run"]
