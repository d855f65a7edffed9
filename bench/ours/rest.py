"""Requests per second of a daemon under many clients, and how late a schedule of one second is meanwhile."""

import argparse
import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Final

from bench.lines import emit
from bench.ours.daemon import Daemon
from bench.ours.ledger import OFTEN, fill
from bench.ours.setup import make_app
from bench.samples import percentile

CLIENTS: Final = 200
SCHEDULES: Final = 400
ROWS: Final = 20_000
TICKER: Final = "z-ticker"
EVERY_SECOND: Final = {"schedule": {"type": "every", "every": "1s"}, "call": {"target": "operator:truth"}}
MANUAL: Final = {"schedule": {"type": "manual"}, "call": {"target": "operator:truth"}}
PUT: Final = '{"schedule": {"type": "every", "every": "2h"}, "command": {"argv": ["echo", "%d"]}}'

# Name, method, path, body. `%c` is the number of the client, `%d` a running number.
REQUESTS: Final = (
    ("GET one", "GET", "/api/schedule/s-00007", ""),
    ("list of 50", "GET", "/api/schedule?limit=50", ""),
    ("PUT", "PUT", "/api/schedule/z-put-%c", PUT),
    ("50 runs", "GET", "/api/runs?limit=50", ""),
    ("timeline", "GET", "/api/timeline", ""),
    ("stats", "GET", f"/api/schedule/{OFTEN}/stats", ""),
)
MANUAL_RUNS: Final = ("run?wait=true", "POST", "/api/schedule/z-manual-%c/run?wait=true", "")


class Clients:
    """The process that sends the requests."""

    def __init__(self, process: subprocess.Popen[str], host: str, port: int, token: str) -> None:
        self._process = process
        self._where = {"host": host, "port": port, "token": token}

    def load(self, method: str, path: str, body: str, seconds: float, *, clients: int = CLIENTS) -> dict[str, Any]:
        job = {**self._where, "method": method, "path": path, "body": body, "seconds": seconds, "clients": clients}
        if self._process.stdin is None or self._process.stdout is None:
            raise RuntimeError("the clients have no pipes")
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the clients ended")
        return dict(json.loads(line))


@contextmanager
def clients_of(host: str, port: int, token: str) -> Iterator[Clients]:
    """Clients of a server."""
    argv = [sys.executable, "-W", "ignore", "-m", "bench.ours.rest_clients"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603
        try:
            yield Clients(process, host, port, token)
        finally:
            if process.stdin is not None:
                process.stdin.close()


def measure(daemon: Daemon, seconds: float) -> None:
    daemon.ask("PUT", f"/api/schedule/{TICKER}", EVERY_SECOND)
    for n in range(CLIENTS):
        daemon.ask("PUT", f"/api/schedule/z-manual-{n}", MANUAL)
    with clients_of(daemon.host, daemon.port, daemon.token) as clients:
        began = time.time()
        for name, method, path, body in REQUESTS:
            rate(daemon, clients, name, method, path, body, seconds)
        lateness("lateness beside REST", daemon, began)
        began = time.time()
        rate(daemon, clients, *MANUAL_RUNS, seconds)
        lateness("lateness beside manual runs", daemon, began)


def rate(daemon: Daemon, clients: Clients, name: str, method: str, path: str, body: str, seconds: float) -> None:
    """Requests per second; a response that is not 2xx is an error of the measurement."""
    cpu = daemon.cpu()
    result = clients.load(method, path, body, seconds)
    spent = daemon.cpu() - cpu
    bad = {code: count for code, count in result["codes"].items() if not code.startswith("2")}
    if bad or not result["samples"]:
        raise RuntimeError(f"{method} {path} had {bad}")
    samples = result["samples"]
    emit(
        f"REST, {name}",
        len(samples) / result["seconds"],
        cpu_us=spent / len(samples) * 1e6,
        p50_ms=percentile(samples, 0.5) * 1000,
        p99_ms=percentile(samples, 0.99) * 1000,
    )


def lateness(measure: str, daemon: Daemon, began: float) -> None:
    """The worst start of the schedule of one second since a time, and how many of its instants had no run."""
    runs = daemon.ask("GET", f"/api/schedule/{TICKER}/runs?limit=1000")["runs"]
    recent = [run for run in runs if _at(run["plannedAt"]) > began and run["startedAt"] is not None]
    lost = sum(run.get("count", 1) for run in runs if _at(run["plannedAt"]) > began and run["startedAt"] is None)
    if not recent:
        raise RuntimeError("the schedule of one second did not run")
    late = [(_at(run["startedAt"]) - _at(run["plannedAt"])) * 1000 for run in recent]
    emit(measure, max(late), p50_ms=percentile(late, 0.5), fires=len(late), not_run=lost)


def _at(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


async def prepare(store: str) -> None:
    async with make_app(store, lambda: None, tick=False) as app:
        await fill(app, schedules=SCHEDULES, rows=ROWS)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--store", required=True)
    parser.add_argument("--seconds", type=float, required=True)
    options = parser.parse_args()
    asyncio.run(prepare(options.store))
    with Daemon(options.store) as daemon:
        measure(daemon, options.seconds)


if __name__ == "__main__":
    main()
