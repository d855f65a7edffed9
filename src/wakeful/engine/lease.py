"""This node's lease, checked against its own clock.

The store records when the lease of a node expires, and other nodes read it there. A process that was frozen or
suspended reads nothing: when it continues, it still holds runs that another node may have taken in the meantime. So
before an attempt starts, the node checks by its own clock whether the lease it last wrote can still be valid (DESIGN
8.8). If it may have expired, the attempt waits for the next renewal, which either confirms the node or voids it.
"""

import asyncio
from collections.abc import Callable

from wakeful.core.time.instants import Duration
from wakeful.ports.clock import Clock, Moment


class Lease:
    """How long this node may start attempts without checking with the store."""

    __slots__ = ("_ask_renewal", "_clock", "_duration", "_renewed", "_until")

    def __init__(self, clock: Clock, duration: Duration, ask_renewal: Callable[[], None]) -> None:
        self._clock = clock
        self._duration = duration
        self._ask_renewal = ask_renewal
        self._until: Moment | None = None
        self._renewed = asyncio.Event()

    def renew(self, moment: Moment) -> None:
        """Record a renewal at `moment`, which was read before the store was written."""
        self._until = Moment(moment.now + self._duration, moment.monotonic + self._duration)
        self._renewed.set()

    def lose(self) -> None:
        """Another node took the lease, or this one gave it up."""
        self._until = None

    def holds(self) -> bool:
        """Whether the lease is certainly still valid. Checks both clocks: monotonic time stops while the machine is
        suspended, and the wall clock may be set back."""
        return self._until is not None and self._clock.is_before(self._until)

    async def confirm(self) -> None:
        """Return once the lease is valid. If it may have expired, request a renewal and wait for it; a node that has
        lost its lease cancels the waiting callers."""
        while not self.holds():
            self._renewed.clear()
            self._ask_renewal()
            await self._renewed.wait()
