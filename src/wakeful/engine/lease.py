"""This node's lease by its own clock.

The store says when the lease of a node is over, and other nodes read it there. A process that was frozen or suspended
reads nothing: when it goes on it still believes in runs that another node may have taken meanwhile. So before an
attempt begins, the node asks its own clock whether the lease it last wrote can still hold (DESIGN 8.8). If it may be
over, the attempt waits for the next renewal, which either confirms the node or voids it with all its runs.
"""

import asyncio
from collections.abc import Callable

from wakeful.core.time.instants import Duration
from wakeful.ports.clock import Clock, Moment


class Lease:
    """How long this node may begin attempts without asking the store."""

    __slots__ = ("_ask_renewal", "_clock", "_duration", "_renewed", "_until")

    def __init__(self, clock: Clock, duration: Duration, ask_renewal: Callable[[], None]) -> None:
        self._clock = clock
        self._duration = duration
        self._ask_renewal = ask_renewal
        self._until: Moment | None = None
        self._renewed = asyncio.Event()

    def renew(self, moment: Moment) -> None:
        """The store has it as of `moment`, which was read before the store was asked."""
        self._until = Moment(moment.now + self._duration, moment.monotonic + self._duration)
        self._renewed.set()

    def lose(self) -> None:
        """Another node took it, or this one let go of it."""
        self._until = None

    def holds(self) -> bool:
        """Whether it cannot be over yet. Both sides of the clock are asked: a suspended machine's monotonic side stands
        still, and a wall clock may be set back."""
        if self._until is None:
            return False
        moment = self._clock.read()
        return moment.monotonic < self._until.monotonic and moment.now < self._until.now

    async def confirm(self) -> None:
        """Return while it holds. If it may be over, ask for a renewal and wait for it; a node that turns out to have
        lost its lease ends what waits here."""
        while not self.holds():
            self._renewed.clear()
            self._ask_renewal()
            await self._renewed.wait()
