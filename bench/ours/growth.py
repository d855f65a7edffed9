"""What becomes slower as a store grows: requests of the page and of the command line, the start, pruning and backup.

With a ledger of a given length, with deliveries that cannot be sent and unread messages, or with many open connections.
The processor time of the daemon is a fact of each figure: it depends less on other load than the elapsed time does. On
PostgreSQL the server's share is not part of it.
"""

import argparse
import asyncio
import resource
import socket
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from bench.lines import emit
from bench.ours.daemon import Daemon
from bench.ours.ledger import OFTEN, fill
from bench.ours.setup import make_app
from wakeful import Wakeful
from wakeful.engine.run_totals import RunTotals

REPEATS: Final = 25
SCHEDULES: Final = 400
PRUNED: Final = 500  # as many as the engine deletes in one step
PRUNINGS: Final = 5
TOTALLED: Final = 10_000
REQUESTS: Final = {
    "stats": f"/api/schedule/{OFTEN}/stats",
    "timeline": "/api/timeline",
    "list": "/api/schedule?limit=50&recent=20",
    "troubled": "/api/schedule?troubled=true",
    "show": f"/api/schedule/{OFTEN}",
    "why": f"/api/schedule/{OFTEN}/why",
    "runs": "/api/runs?limit=50",
    "failed runs": "/api/runs?limit=50&outcome=failed",
    "upcoming": "/api/upcoming",
    "today": "/api/today",
    "cost": "/api/cost",
    "agents": "/api/agents",
    "export": "/api/export",
    "outbox": "/api/deliveries?limit=50",
    "healthz": "/healthz",
    "metrics": "/metrics",
}
SETTINGS: Final = """
[limits]
every_min = "1s"
ledger_days = 36500
"""
"""The daemon deletes nothing while it is measured: one step of pruning is measured separately."""

_ADDRESSEE: Final = "INSERT INTO addressees (channel, recipient, fence) VALUES ('dead', 'anyone', 0)"
_DELIVERIES: Final = """
WITH RECURSIVE numbers (n) AS (SELECT CAST(1 AS bigint) UNION ALL SELECT n + 1 FROM numbers WHERE n < :count)
INSERT INTO deliveries (addressee_id, channel, recipient, text, purpose, status, attempts, parts_sent, enqueued_at,
  expires_at)
SELECT addressee_id, 'dead', 'anyone', 'hello', 'message', 'pending', 0, 0, CAST(:now AS bigint),
  CAST(:now AS bigint) + 86400000
FROM numbers, addressees
"""
_MESSAGES: Final = """
WITH RECURSIVE numbers (n) AS (SELECT CAST(1 AS bigint) UNION ALL SELECT n + 1 FROM numbers WHERE n < :count)
INSERT INTO messages (workflow_id, topic, consumer, message_id, place, seq, payload, status, attempt, published_at,
  updated_at)
SELECT 1, 'mail', 'digest', CAST(n AS text), n, n, '{}', 'pending', 0, CAST(:now AS bigint), CAST(:now AS bigint)
FROM numbers
"""


async def prepare(store: str, options: argparse.Namespace) -> None:
    """Fill the store, and measure one step of pruning it."""
    async with make_app(store, lambda: None, tick=False) as app:
        await fill(app, schedules=SCHEDULES, rows=options.rows)
        await _sum_up(app)
        now = app._moment().now
        if options.pending:
            await _change(app, _ADDRESSEE)
            await _change(app, _DELIVERIES, count=options.pending, now=now)
            await _change(app, _MESSAGES, count=options.pending, now=now)
        began, used = time.perf_counter(), time.process_time()
        for _ in range(PRUNINGS):
            await app._open.store.write(lambda tx: tx.runs.prune(before=now - 3_600_000, limit=PRUNED))
        elapsed, cpu = (time.perf_counter() - began) / PRUNINGS, (time.process_time() - used) / PRUNINGS
        emit(f"growth, prune, {options.name}", elapsed * 1000, cpu_ms=cpu * 1000)


async def _sum_up(app: Wakeful) -> None:
    now = app._moment().now + 3_600_000
    while await app._open.store.write(lambda tx: tx[RunTotals].advance(now=now, limit=TOTALLED)):
        pass


async def _change(app: Wakeful, sql: str, **values: Any) -> None:
    def change(tx: Any) -> None:
        tx.db.change(sql, **values)

    await app._open.store.write(change)


def measure(daemon: Daemon, options: argparse.Namespace) -> None:
    with ExitStack() as open_connections:
        for _ in range(options.connections):
            open_connections.enter_context(socket.create_connection((daemon.host, daemon.port)))
        for name, path in REQUESTS.items():
            used = daemon.cpu()
            elapsed = daemon.timed(path, REPEATS)
            cpu_ms = (daemon.cpu() - used) * 1000 / REPEATS
            emit(f"growth, {name}, {options.name}", elapsed * 1000, cpu_ms=cpu_ms)
    if "://" not in options.store:
        copy = Path(f"{options.store}.copy")
        began, used = time.perf_counter(), _used()
        program = str(Path(sys.executable).with_name("wakeful"))
        argv = [program, "--home", str(daemon.home), "backup", str(copy)]
        subprocess.run(argv, check=True, capture_output=True)  # noqa: S603 - our own command, with arguments made here
        elapsed = time.perf_counter() - began
        emit(
            f"growth, backup, {options.name}", elapsed * 1000, cpu_ms=(_used() - used) * 1000, bytes=copy.stat().st_size
        )
        copy.unlink()


def _used() -> float:
    """Seconds of processor time of processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--store", required=True)
    parser.add_argument("--name", required=True, help="how the row of the table is called")
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--pending", type=int, default=0, help="deliveries to a dead channel, and messages in a topic")
    parser.add_argument("--connections", type=int, default=0)
    options = parser.parse_args()
    asyncio.run(prepare(options.store, options))
    began = time.perf_counter()
    with Daemon(options.store, SETTINGS) as daemon:
        started_in = time.perf_counter() - began
        emit(f"growth, start, {options.name}", started_in * 1000, cpu_ms=daemon.cpu() * 1000)
        measure(daemon, options)


if __name__ == "__main__":
    main()
