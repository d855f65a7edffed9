"""A store for simulations: one database in memory, on one connection, without threads.

It has the tables, the indexes and the statements of the real store. Nothing is durable, and no other process can see
it, so an operation runs alone instead of in a group, and reads need no snapshot.
"""

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from wakeful.core.simulation.summary import SimulatedRow
from wakeful.core.time.instants import Instant
from wakeful.ports.database import Table
from wakeful.ports.store import Schedule, Tx
from wakeful.stores.sqlite.connection import STATEMENTS_CACHED, adapt_none
from wakeful.stores.sqlite.migrate import migrate, migrations
from wakeful.stores.sqlite.tx import tx_on

T = TypeVar("T")

MEMORY: Final = Path(":memory:")


class ScratchStore:
    """See `ports.store.Store`."""

    is_exclusive = True

    def __init__(self) -> None:
        adapt_none()
        self._connection = sqlite3.connect(MEMORY, isolation_level=None, cached_statements=STATEMENTS_CACHED)
        self._connection.execute("PRAGMA temp_store = MEMORY")
        migrate(self._connection, MEMORY, migrations())
        self.tx: Tx = tx_on(self._connection)
        self._waiting: list[tuple[Callable[[Tx], Any], asyncio.Future[Any]]] = []

    def run(self, operation: Callable[[Tx], T]) -> T:
        """Run a function in a transaction."""
        self.tx.changes.clear()
        self._connection.execute("BEGIN")
        try:
            result = operation(self.tx)
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")
        return result

    async def write(self, operation: Callable[[Tx], T], *, is_urgent: bool = False) -> T:
        """Run a function in the next iteration of the loop, together with what else is submitted until then. The caller
        continues in the iteration after it. With one iteration more or less, another run may be the first in its lane
        of two that are due in the same millisecond: `SqliteStore.open_inline` takes as many."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._waiting.append((operation, future))
        if len(self._waiting) == 1:
            future.get_loop().call_soon(self._write_waiting)
        return await future

    def _write_waiting(self) -> None:
        waiting, self._waiting = self._waiting, []
        for operation, future in waiting:
            self._conclude(partial(self.run, operation), future)

    def crash(self) -> None:
        """The process that uses the store died: what it submitted is not written."""
        self._waiting.clear()

    async def read(self, operation: Callable[[Tx], T], *, is_urgent: bool = False) -> T:
        """Like `write`, but each alone."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        future.get_loop().call_soon(self._conclude, partial(operation, self.tx), future)
        return await future

    def _conclude(self, work: Callable[[], Any], future: "asyncio.Future[Any]") -> None:
        try:
            result = work()
        except Exception as error:
            future.set_exception(error)
        else:
            future.set_result(result)

    async def hold_clock(self) -> bool:
        return True

    async def release_clock(self) -> None:
        """Nothing to release: no other process waits for the clock."""

    async def remember(self, mark: int) -> None:
        """Nothing outlives this process."""

    async def changed(self) -> bool:
        return False

    def trouble(self) -> str | None:
        return None

    async def close(self) -> None:
        self._connection.close()


# The whole ledger, with the name of each owner, and with what the attempts of each run cost.
_LEDGER: Final = """
SELECT coalesce(schedules.slug, owners.name), planned_at, planned_until, instants, due_at, trigger, started_at,
  ended_at, outcome, reason, lane, coalesce(turns, 0), coalesce(charged.tokens, 0), coalesce(charged.cost, 0),
  coalesce(unknown, 0)
FROM runs LEFT JOIN (
  SELECT run_id, count(*) AS turns, sum(tokens) AS tokens, sum(cost) AS cost, sum(cost IS NULL) AS unknown
  FROM charges WHERE run_id > 0 GROUP BY run_id
) AS charged USING (run_id) LEFT JOIN schedules USING (schedule_id) LEFT JOIN owners ON owner_id = -runs.schedule_id
"""

# What budgets count for each attempt.
_SPENT: Final = """
SELECT at, owner_id, coalesce(cost, held_cost), coalesce(tokens, held_tokens) FROM charges WHERE run_id > 0
"""

_SCHEDULES: Final = Table("schedules", Schedule, key=("schedule_id",))


def ledger_of(tx: Tx) -> list[SimulatedRow]:
    """All rows, in any order."""
    return list(map(SimulatedRow._make, tx.db.rows(_LEDGER)))


def spent_in(tx: Tx) -> list[tuple[Instant, int, int, int]]:
    """The time, the owner, the cost and the tokens of each attempt."""
    return [(at, owner_id, cost, tokens) for at, owner_id, cost, tokens in tx.db.rows(_SPENT)]


def add_schedules(tx: Tx, schedules: Sequence[Schedule]) -> None:
    """Write schedules with their ids, which budgets refer to."""
    tx.db.insert(_SCHEDULES, schedules)
