"""The limit: a bare loop of the same design with no features, on either database.

Claim a batch of due alarms and write their ledger rows, start one task for each, settle all that ended in one commit.
No rules, no gates, no lanes, no leases, no events. What Wakeful reaches of this rate is the price of its features.
"""

import argparse
import asyncio
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from bench.lines import emit

CAPACITY: Final = 2_000
HOUR: Final = 3_600_000
SCHEMA: Final = (
    "CREATE TABLE alarms (id bigint PRIMARY KEY, slug text NOT NULL, due_at bigint NOT NULL, fence bigint NOT NULL, "
    "owner text)",
    "CREATE INDEX alarms_due ON alarms (due_at) WHERE owner IS NULL",
    "CREATE TABLE schedules (slug text PRIMARY KEY, definition text NOT NULL, last_at bigint, next_at bigint)",
    "CREATE TABLE ledger (slug text, planned_at bigint, state text, started_at bigint, ended_at bigint, "
    "PRIMARY KEY (slug, planned_at))",
)


class Alarm(NamedTuple):
    """A claimed alarm."""

    id: int
    slug: str
    due_at: int
    fence: int


class Database(Protocol):
    """What the loop asks of a database; `settle` takes alarms and writes them in the transaction of the caller."""

    def begin(self) -> None: ...
    def commit(self) -> None: ...
    def fill(self, count: int, due_at: int) -> None: ...
    def claim(self, now: int, limit: int) -> list[Alarm]: ...
    def settle(self, alarms: Sequence[Alarm], now: int) -> None: ...
    def settled(self) -> int: ...


class Sqlite:
    """SQLite with `synchronous=FULL`."""

    def __init__(self, path: str) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._ask = self._connection.execute
        self._ask("PRAGMA journal_mode=WAL")
        self._ask("PRAGMA synchronous=FULL")
        for statement in SCHEMA:
            self._ask(statement)

    def begin(self) -> None:
        self._ask("BEGIN IMMEDIATE")

    def commit(self) -> None:
        self._ask("COMMIT")

    def fill(self, count: int, due_at: int) -> None:
        many = self._connection.executemany
        many("INSERT INTO schedules VALUES (?, '{}', NULL, ?)", ((f"job-{n}", due_at) for n in range(count)))
        many("INSERT INTO alarms VALUES (?, ?, ?, 0, NULL)", ((n, f"job-{n}", due_at) for n in range(count)))

    def claim(self, now: int, limit: int) -> list[Alarm]:
        rows = self._ask(
            "UPDATE alarms SET owner = 'me', fence = fence + 1 WHERE id IN (SELECT id FROM alarms WHERE owner IS NULL "
            "AND due_at <= ? ORDER BY due_at LIMIT ?) RETURNING id, slug, due_at, fence",
            (now, limit),
        )
        alarms = [Alarm(*row) for row in rows.fetchall()]
        self._connection.executemany(
            "INSERT INTO ledger VALUES (?, ?, 'claimed', ?, NULL)", ((a.slug, a.due_at, now) for a in alarms)
        )
        return alarms

    def settle(self, alarms: Sequence[Alarm], now: int) -> None:
        many = self._connection.executemany
        many(
            "UPDATE alarms SET owner = NULL, due_at = ? WHERE id = ? AND fence = ?",
            ((now + HOUR, a.id, a.fence) for a in alarms),
        )
        many(
            "UPDATE ledger SET state = 'ran', ended_at = ? WHERE slug = ? AND planned_at = ?",
            ((now, a.slug, a.due_at) for a in alarms),
        )
        many(
            "UPDATE schedules SET last_at = ?, next_at = ? WHERE slug = ?", ((now, now + HOUR, a.slug) for a in alarms)
        )

    def settled(self) -> int:
        return int(self._ask("SELECT count(*) FROM ledger WHERE state = 'ran'").fetchone()[0])


class Postgres:
    """PostgreSQL with its own settings; arrays instead of one statement per row."""

    def __init__(self, url: str) -> None:
        import psycopg

        self._connection = psycopg.connect(url, autocommit=True)
        self._ask: Callable[..., Any] = self._connection.execute
        for statement in SCHEMA:
            self._ask(statement)

    def begin(self) -> None:
        self._ask("BEGIN")

    def commit(self) -> None:
        self._ask("COMMIT")

    def fill(self, count: int, due_at: int) -> None:
        self._ask(
            "INSERT INTO schedules SELECT 'job-' || n, '{}', NULL, %s FROM generate_series(1, %s) AS n", (due_at, count)
        )
        self._ask(
            "INSERT INTO alarms SELECT n, 'job-' || n, %s, 0, NULL FROM generate_series(1, %s) AS n", (due_at, count)
        )

    def claim(self, now: int, limit: int) -> list[Alarm]:
        rows = self._ask(
            "WITH due AS (SELECT id FROM alarms WHERE owner IS NULL AND due_at <= %(now)s ORDER BY due_at "
            "LIMIT %(limit)s FOR UPDATE SKIP LOCKED), "
            "picked AS (UPDATE alarms SET owner = 'me', fence = fence + 1 FROM due WHERE alarms.id = due.id "
            "RETURNING alarms.id, slug, due_at, fence), "
            "written AS (INSERT INTO ledger SELECT slug, due_at, 'claimed', %(now)s, NULL FROM picked) "
            "SELECT * FROM picked",
            {"now": now, "limit": limit},
        )
        return [Alarm(*row) for row in rows.fetchall()]

    def settle(self, alarms: Sequence[Alarm], now: int) -> None:
        self._ask(
            "WITH ended AS (SELECT * FROM unnest(%(ids)s::bigint[], %(fences)s::bigint[], %(slugs)s::text[], "
            "%(due)s::bigint[]) AS e (id, fence, slug, due_at)), "
            "moved AS (UPDATE alarms SET owner = NULL, due_at = %(next)s FROM ended WHERE alarms.id = ended.id "
            "AND alarms.fence = ended.fence), "
            "ran AS (UPDATE ledger SET state = 'ran', ended_at = %(now)s FROM ended WHERE ledger.slug = ended.slug "
            "AND ledger.planned_at = ended.due_at) "
            "UPDATE schedules SET last_at = %(now)s, next_at = %(next)s FROM ended WHERE schedules.slug = ended.slug",
            {
                "ids": [a.id for a in alarms],
                "fences": [a.fence for a in alarms],
                "slugs": [a.slug for a in alarms],
                "due": [a.due_at for a in alarms],
                "now": now,
                "next": now + HOUR,
            },
        )

    def settled(self) -> int:
        return int(self._ask("SELECT count(*) FROM ledger WHERE state = 'ran'").fetchone()[0])


Operation: TypeAlias = Callable[[Database], Any]


class Writer:
    """One thread; everything that waits shares one commit. Settlements that wait are written together."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._loop = asyncio.get_running_loop()
        self._waiting: SimpleQueue[tuple[Operation | Alarm, asyncio.Future[Any]]] = SimpleQueue()
        threading.Thread(target=self._drive, daemon=True).start()

    def submit(self, wanted: Operation | Alarm) -> asyncio.Future[Any]:
        future: asyncio.Future[Any] = self._loop.create_future()
        self._waiting.put((wanted, future))
        return future

    def _drive(self) -> None:
        while True:
            batch = [self._waiting.get()]
            while True:
                try:
                    batch.append(self._waiting.get_nowait())
                except Empty:
                    break
            self._database.begin()
            ended = [wanted for wanted, _ in batch if isinstance(wanted, Alarm)]
            if ended:
                self._database.settle(ended, int(time.time() * 1000))
            results = [
                (future, None if isinstance(wanted, Alarm) else wanted(self._database)) for wanted, future in batch
            ]
            self._database.commit()
            self._loop.call_soon_threadsafe(_answer, results)


def _answer(results: Sequence[tuple[asyncio.Future[Any], Any]]) -> None:
    for future, result in results:
        future.set_result(result)


async def burst(database: Database, count: int) -> None:
    """All are due; measured until the last one is settled."""
    writer = Writer(database)
    due_at = int(time.time() * 1000) - 1_000
    await writer.submit(lambda db: db.fill(count, due_at))
    running = 0
    room = asyncio.Event()
    tasks: set[asyncio.Task[None]] = set()

    async def handler() -> None:
        pass

    async def one(alarm: Alarm) -> None:
        nonlocal running
        await handler()
        await writer.submit(alarm)
        running -= 1
        if running <= CAPACITY // 2:
            room.set()

    cpu, began = time.process_time(), time.perf_counter()
    claimed = 0
    while claimed < count or running:
        free, now = CAPACITY - running, int(time.time() * 1000)
        alarms: list[Alarm] = await writer.submit(lambda db, now=now, free=free: db.claim(now, free))  # type: ignore[misc]
        claimed, running = claimed + len(alarms), running + len(alarms)
        for alarm in alarms:
            task = asyncio.create_task(one(alarm))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
        room.clear()
        if running > CAPACITY // 2:
            await room.wait()
    took, spent = time.perf_counter() - began, time.process_time() - cpu
    if await writer.submit(lambda db: db.settled()) != count:
        raise RuntimeError("some were not settled")
    emit("fires", count / took, cpu_us=spent / count * 1e6, count=count)


async def measure(options: argparse.Namespace) -> None:
    database = Postgres(options.store) if "://" in options.store else Sqlite(options.store)
    await burst(database, options.fires)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--store", required=True)
    parser.add_argument("--fires", type=int, required=True)
    asyncio.run(measure(parser.parse_args()))


if __name__ == "__main__":
    main()
