"""Real daemons that are killed or get stuck: the outage notice, three nodes on PostgreSQL, the monitor's verdict."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from delivery.running import WITHIN, Running, daemon
from delivery.test_ping import Monitor, monitoring
from postgres.server import Server, schema_of, server, url

__all__ = ["server", "url"]

EVERY_TEN = {"schedule": {"type": "every", "every": "10s"}, "command": {"argv": ["/bin/true"]}}


async def runs_of(running: Running) -> list[Any]:
    return list((await running.ask("GET", "/api/schedule/tick/runs?limit=500"))["runs"])


def outages(found: Any) -> list[Any]:
    return [one for one in found["alerts"] if one["incident"].startswith("outage:")]


def twenty_minutes_pass(home: Path) -> None:
    """As seen by a store that lies still: everything that was noted or planned is twenty minutes longer ago."""
    with closing(sqlite3.connect(home / "wakeful.db")) as connection, connection:
        connection.execute(
            "UPDATE cadences SET next_at = next_at - 1200000, planned_through = planned_through - 1200000"
        )
        connection.execute("UPDATE alarms SET due_at = due_at - 1200000 WHERE kind = 'schedule'")
        connection.execute("UPDATE meta SET value = CAST(value AS INTEGER) - 1200000 WHERE name = 'ticked_at'")


async def test_kill_9_and_a_twenty_minute_outage_are_reported_once_with_the_right_counts(tmp_path: Path) -> None:
    """Of four instants in it the latest is caught up. A second kill, without an outage, says nothing."""
    home = tmp_path / "home"
    async with daemon(home, '[alerts]\nchannel = "inbox"\n') as first:
        anchor = datetime.now(UTC) - timedelta(minutes=61)  # the next instant is four minutes ahead
        timing = {"type": "every", "every": "5m", "anchor": anchor.isoformat()}
        await first.ask("PUT", "/api/schedule/tick", {"schedule": timing, "command": {"argv": ["/bin/true"]}})
        await first.kill()
    twenty_minutes_pass(home)
    async with daemon(home) as second:
        (outage,) = outages(await second.until("/api/alerts", outages))
        assert outage["incident"].startswith("outage:outage:")
        assert outage["text"].startswith("Wakeful was not running from ")
        assert "3 runs were missed, 1 run was caught up: tick." in outage["text"]
        inbox = await second.until("/api/inbox", lambda found: found["items"])
        assert [item["text"] for item in inbox["items"]] == [outage["text"]]
        ledger = "/api/schedule/tick/runs?limit=500"
        rows = (await second.until(ledger, lambda found: found["runs"][0]["outcome"] == "succeeded"))["runs"]
        assert [(row["outcome"], row["trigger"], row.get("count", 1)) for row in rows] == [
            ("succeeded", "catchUp", 1),
            ("missed", "schedule", 3),
        ]
        await second.kill()
    async with daemon(home) as third:
        await third.ask("POST", "/api/schedule/tick/run?wait=true")
        assert len(outages(await third.ask("GET", "/api/alerts"))) == 1
        assert len((await third.ask("GET", "/api/inbox"))["items"]) == 1


@asynccontextmanager
async def three_nodes(folder: Path, url: str) -> AsyncIterator[dict[str, Running]]:
    async with AsyncExitStack() as stack:

        async def start(name: str) -> tuple[str, Running]:
            settings = f'[store]\nurl = "{url}"\n[alerts]\noutage = "1s"\nchannel = "inbox"\n'
            return name, await stack.enter_async_context(daemon(folder / name, settings))

        first = await start("a")  # it makes the schema
        yield dict([first, *[await start(name) for name in "bc"]])


def _incidents(server: Server, url: str) -> list[Any]:
    with server.connect() as connection:
        return connection.execute(f"SELECT name FROM {schema_of(url)}.incidents".encode()).fetchall()


@pytest.mark.torture
async def test_of_three_nodes_on_postgresql_one_that_is_killed_is_a_finding_and_no_outage(
    url: str, server: Server, tmp_path: Path
) -> None:
    """Nor is anything called an outage when it comes back, although nobody ticked in the last second."""
    async with three_nodes(tmp_path, url) as nodes:
        await nodes["a"].ask("PUT", "/api/schedule/tick", EVERY_TEN)
        await nodes["b"].until("/api/nodes", lambda found: len(found["nodes"]) == 3)
        pid = nodes["c"].process.pid
        await nodes["c"].kill()
        with server.connect() as connection:  # its lease runs out by itself in half a minute
            connection.execute(f"UPDATE {schema_of(url)}.nodes SET lease_until = 1 WHERE pid = {pid}".encode())
        found = await nodes["b"].until(
            "/healthz",
            lambda found: any(one["name"] == "nodes" and one["level"] == "warn" for one in found["findings"]),
        )
        (said,) = [one["sentence"] for one in found["findings"] if one["name"] == "nodes"]
        assert f"pid {pid} " in said
        assert found["status"] == "degraded"
        async with daemon(tmp_path / "c") as again:
            await again.until(
                "/healthz",
                lambda found: all(one["level"] == "ok" for one in found["findings"] if one["name"] == "nodes"),
            )
            async with asyncio.timeout(WITHIN):
                while _incidents(server, url):  # the silence before its start was noted, and is looked at
                    await asyncio.sleep(0.1)
            assert outages(await again.ask("GET", "/api/alerts")) == []
            assert (await again.ask("GET", "/api/inbox"))["items"] == []
        assert {row["outcome"] for row in await runs_of(nodes["a"])} <= {"succeeded", "running", "waiting", "skipped"}


INTERVAL = 1.0


async def is_down(monitor: Monitor) -> bool:
    """The monitor's own rule: whoever says nothing for two intervals is down."""
    heard = len(monitor.asked)
    await asyncio.sleep(2 * INTERVAL)
    return len(monitor.asked) == heard


async def until_down(monitor: Monitor) -> None:
    async with asyncio.timeout(WITHIN):
        while not await is_down(monitor):
            pass


async def test_a_monitor_notices_kill_9_and_a_clock_that_is_stuck(tmp_path: Path) -> None:
    """Stuck: another process holds the write lock of the store, so no tick gets through; the API still answers."""
    home = tmp_path / "home"
    async with monitoring() as monitor:
        async with daemon(home, f'[alerts]\nping = "{monitor.url}"\nping_every = "{INTERVAL:.0f}s"\n') as running:
            await monitor.until(2)
            with closing(sqlite3.connect(home / "wakeful.db", isolation_level=None, timeout=WITHIN)) as other:
                other.execute("BEGIN IMMEDIATE")
                await until_down(monitor)
                assert (await running.ask("GET", "/api/schedule"))["schedules"] == []
                other.execute("ROLLBACK")
            heard = len(monitor.asked)
            await monitor.until(heard + 2)
            await running.kill()
            heard = len(monitor.asked)
        await until_down(monitor)
        assert len(monitor.asked) <= heard + 1  # one may have been under way
