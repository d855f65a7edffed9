"""The clock of a node on PostgreSQL: the server's clock, extrapolated by our monotonic clock.

Nodes compare leases and due times with each other, so they must agree on the time, and machines do not. Each node reads
the server's time once in a while and continues with its own steady clock from there: reading costs nothing, a machine
whose wall clock is wrong or is stepped does no harm, and this is the only SQL that reads the time (L10). The clock is
set when the node registers and at every renewal of its lease. If the server's own clock is stepped, the node sees a
jump at its next renewal, as it would with its own clock.

The steady clock includes the time a machine was suspended if the system supports it, so that a node that wakes up knows
immediately how late it is.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Final

from wakeful.core.time.instants import Duration
from wakeful.integrations.system.suspend import slept_ms
from wakeful.integrations.system.waiting import wait_until_set
from wakeful.ports.clock import Moment
from wakeful.stores.postgres.connection import Session

# The server's time in microseconds, at the moment of the query and not at the start of the transaction.
SERVER_TIME = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"

# A response that took longer than this is too imprecise, unless there is no better one.
ROUND_TRIP_MAX_NS: Final = 50_000_000
TRIES: Final = 3


class PostgresClock:
    """See `ports.clock.Clock`. Until it is first set it returns the machine's own time."""

    def __init__(self, *, steady_ns: Callable[[], int] | None = None) -> None:
        self._steady_ns = steady_ns or _steady_ns()
        self._offset_us = time.time_ns() // 1_000 - self._steady_ns() // 1_000

    def read(self) -> Moment:
        now = (self._steady_ns() // 1_000 + self._offset_us) // 1_000
        monotonic_ns = time.monotonic_ns()
        return Moment(now, monotonic_ns // 1_000_000, slept_ms(monotonic_ns))

    def is_before(self, moment: Moment) -> bool:
        now = (self._steady_ns() // 1_000 + self._offset_us) // 1_000
        return now < moment.now and time.monotonic_ns() < moment.monotonic * 1_000_000

    async def sleep(self, duration: Duration) -> None:
        await asyncio.sleep(duration / 1000)

    async def wait(self, bell: asyncio.Event, duration: Duration) -> bool:
        return await wait_until_set(bell, duration)

    def set_by(self, session: Session) -> None:
        """Read the server's time, as of the middle of the fastest of a few round trips."""
        best_ns, offset_us = None, self._offset_us
        for _ in range(TRIES):
            sent_at = self._steady_ns()
            ((server_us,),) = session.rows(SERVER_TIME)
            took = self._steady_ns() - sent_at
            if best_ns is None or took < best_ns:
                best_ns, offset_us = took, server_us - (sent_at + took // 2) // 1_000
            if took <= ROUND_TRIP_MAX_NS:
                break
        self._offset_us = offset_us


def _steady_ns() -> Callable[[], int]:
    """A clock that never goes back and, on Linux, does not stop while the machine is suspended."""
    boottime = getattr(time, "CLOCK_BOOTTIME", None)
    if boottime is None:
        return time.monotonic_ns
    return lambda: time.clock_gettime_ns(boottime)
