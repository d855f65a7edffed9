"""A database written by an earlier release opens, and everything in it is there, on both stores."""

import asyncio
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import forking
from postgres.server import Server, server, url
from upgrade import fixture
from upgrade.daemon import Daemon, pages, until
from upgrade.make import RELEASES
from wakeful.app import bootstrap
from wakeful.drill.ledger import audit
from wakeful.stores.sqlite.migrate import migrations

__all__ = ["server", "url"]

OPEN = ("running", "waiting")
EVERY_OUTCOME = {"succeeded", "failed", "timedOut", "unconfirmed", "unknown", "skipped", "missed", "running", "waiting"}
EMPTY = {
    *("watchers", "bus", "lanes", "askings"),  # their rows live for a moment
    *("origins", "handovers", "brakes", "reservations", "merged_runs", "runs_to_total", "run_totals", "forecasts"),
}
"""Tables that have no rows in the fixtures."""

# What schema 11 moved: a topic's one consumer became a subscription, and incidents of kinds that are gone are closed.
ADDED = {"totalled_through"}  # a counter of 0.2
MOVED = {("topics", "consumer"), ("topics", "seen"), ("incidents", "closed_at")}


class Old(NamedTuple):
    """The database of an earlier release, in a home folder of its own."""

    release: str
    address: str
    home: Path
    told: dict[str, Any]  # what that release said of it
    rows: Callable[[], fixture.Rows]


@pytest.fixture(params=[(release, kind) for release in RELEASES for kind in ("sqlite", "postgres")], ids="-".join)
def old(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Old]:
    home = tmp_path / "home"
    fixture.prepare(home)
    release, kind = request.param
    told = fixture.listing(release, kind, home)
    if kind == "sqlite":
        path = home / "wakeful.db"
        fixture.load_sqlite(release, path, home)
        yield Old(release, f"sqlite:///{path}", home, told, lambda: fixture.rows_of_sqlite(path))
        return
    running: Server = request.getfixturevalue("server")
    address: str = request.getfixturevalue("url")
    fixture.load_postgres(release, running, address, home)
    yield Old(release, address, home, told, lambda: fixture.rows_of_postgres(running, address))


@pytest.fixture
def daemon(old: Old) -> Iterator[Daemon]:
    """Today's daemon on it."""
    one = Daemon((), old.home, old.address)
    one.start()
    try:
        yield one
    finally:
        one.kill()


async def test_every_row_is_there_after_the_schema_step(old: Old) -> None:
    """Compared table by table and column by column with what 0.1.0 had written."""
    before = old.rows()
    opened = await bootstrap.open_store(old.address)
    await opened.store.close()
    after = old.rows()
    assert {run["outcome"] for run in before["runs"]} >= EVERY_OUTCOME
    assert {name for name, rows in before.items() if not rows} <= EMPTY
    for table, rows in before.items():
        if table == "schema_version":
            assert max(row["number"] for row in after[table]) == migrations()[-1].number
            continue
        moved, added = (MOVED, ADDED) if old.release == "0.1" else (set(), set())
        columns = [name for name in (rows or [{}])[0] if (table, name) not in moved]
        expected = given_back(table, before) if old.release == "0.2" else rows
        was, kept = (
            sorted((tuple(row[name] for name in columns) for row in there if row.get("name") not in added), key=repr)
            for there in (expected, after[table])
        )
        assert kept == was, table
    if old.release != "0.1":
        return
    consumers = {(row["workflow_id"], row["topic"], row["consumer"]) for row in after["subscriptions"]}
    assert consumers == {(row["workflow_id"], row["name"], row["consumer"]) for row in before["topics"]}
    closed = [row for row in after["incidents"] if row["closed_at"] is None]
    assert not [row["name"] for row in closed if row["name"].startswith(("failing:", "disabled:", "unknown:"))]


def given_back(table: str, before: fixture.Rows) -> list[dict[str, Any]]:
    """The rows of a table of 0.2 without what it had charged for agents that never report a cost."""
    priced = {row["agent"] for row in before["charges"] if row["cost"] is not None}
    charges = [
        row
        if row["cost"] is not None or row["settled_at"] is None or row["agent"] in priced
        else {**row, "held_cost": 0}
        for row in before["charges"]
    ]
    settled = [row for row in charges if row["settled_at"] is not None]

    def spent(budget: dict[str, Any]) -> int:
        return sum(
            row["held_cost"] if row["cost"] is None else row["cost"]
            for row in settled
            if budget["starts_at"] <= row["at"] < budget["ends_at"]
            and budget["scope"] in ("all", f"agent:{row['agent']}", f"schedule:{row['owner_id']}")
        )

    def known(row: dict[str, Any], period: str) -> int:
        return sum(
            charge["cost"] or 0
            for charge in settled
            if charge["owner_id"] == row["owner_id"]
            and row[f"{period}_starts_at"] <= charge["at"] < row[f"{period}_ends_at"]
        )

    if table == "charges":
        return charges
    if table == "budgets":
        return [{**row, "spent": spent(row)} if row["unit"] == "usd" else row for row in before[table]]
    if table == "spending":
        return [{**row, "day_cost": known(row, "day"), "month_cost": known(row, "month")} for row in before[table]]
    return before[table]


def test_the_daemon_reads_back_what_was_said_and_then_catches_up(old: Old, daemon: Daemon) -> None:
    """Definitions as they were written, and whatever had ended, field by field. What was due meanwhile happens by the
    catch-up rules, and the auditor finds nothing wrong with the ledger."""
    assert_read_back(old, daemon)
    assert_caught_up(old, daemon)
    assert daemon.end() == 0

    async def look() -> None:
        opened = await bootstrap.open_store(old.address)
        try:
            verdict = await opened.store.read(audit)
        finally:
            await opened.store.close()
        assert not [one for one in verdict.findings if one.slug not in UNCHECKED], verdict.in_words()

    asyncio.run(look())


def assert_read_back(old: Old, daemon: Daemon) -> None:
    """What the earlier release said is what this one says."""
    for was in old.told["/api/schedule"]:
        now = daemon.get(f"/api/schedule/{was['slug']}")
        for name in (*WRITTEN, "version", "createdAt"):
            assert now.get(name) == was.get(name), (was["slug"], name)
    for was in old.told["runs"]:
        if was["outcome"] in OPEN:
            continue
        now = daemon.get(f"/api/runs/{was['runId']}")
        if old.release == "0.1":
            for attempt in now["attempts"]:
                attempt.pop("node")  # new; 0.1 forgot which node made the last attempt
        changed = CHANGED[old.release]
        assert {name: now.get(name) for name in was if name not in changed} == {
            name: value for name, value in was.items() if name not in changed
        }
    assert {one["text"] for one in old.told["/api/deliveries"]} <= {
        one["text"] for one in pages(daemon, "/api/deliveries", "deliveries")
    }
    items = {one["id"]: one for one in pages(daemon, "/api/inbox", "items")}
    assert all(items[was["id"]] == was for was in old.told["/api/inbox"])
    for flow in old.told["/api/workflows"]:
        place = f"/api/workflows/{flow['id']}"
        now = daemon.get(place)
        assert (now["producers"].keys(), now["consumers"].keys()) == (
            flow["producers"].keys(),
            flow["consumers"].keys(),
        )
        status = "stopped" if flow.get("error") else flow["status"]  # earlier releases said `active` of both
        assert (now["status"], now.get("error")) == (status, flow.get("error"))
        messages = {one["id"]: one for one in pages(daemon, f"{place}/topics/letters/messages", "messages")}
        for was in old.told[f"{place}/topics/letters/messages"]:
            assert {name: messages[was["id"]].get(name) for name in was} == was
        sessions = {one["sessionId"] for one in pages(daemon, f"{place}/sessions", "sessions")}
        assert {one["sessionId"] for one in old.told[f"{place}/sessions"]} <= sessions
    slots = {one["name"]: one for one in daemon.get("/api/slots")["slots"]}
    assert slots.keys() == {one["name"] for one in old.told["/api/slots"]["slots"]}
    assert slots["mine"]["percentage"] == 42
    limits = [limits_of(told) for told in (daemon.get("/api/budget"), old.told.get("/api/budget", {"budgets": []}))]
    assert limits[0] == limits[1]


def limits_of(told: dict[str, Any]) -> list[Any]:
    """What does not depend on the date."""
    return [[one[name] for name in ("scope", "limit", "unit", "period", "zone", "origin")] for one in told["budgets"]]


def assert_caught_up(old: Old, daemon: Daemon) -> None:
    """Each schedule once, as its definition says; nothing that was off, paused or too late."""
    known = {run["runId"] for run in old.told["runs"]}

    def since(slug: str) -> list[tuple[str, str]]:
        runs = daemon.get(f"/api/runs?limit=1000&slug={slug}")["runs"]
        return sorted((run["outcome"], run["trigger"]) for run in runs if run["runId"] not in known)

    if old.release == "0.2":
        # 0.2 charged all that was left to a run of unknown cost, and on that day no turn began.
        daemon.put("/api/budget", {"period": "day", "limit": None})
        daemon.post("/api/wake", {"reason": "manual"})
    until(lambda: since("soon") == [("succeeded", "catchUp")])
    until(lambda: "at last" in str(daemon.get("/api/inbox")["items"]))
    until(lambda: since("punctual") == [("missed", "schedule")])
    told = doctor(old.home)
    assert "punctual did not run at its planned time" in told
    assert not [words for words in told if "zone" in words and "yours" in words]  # Etc/UTC is UTC
    for slug in ("paused", "off", "far", "gives-up", "busy", "fails"):
        assert since(slug) == [], slug
    middle = next(run["runId"] for run in old.told["runs"] if run["slug"] == "in-the-middle")
    until(lambda: daemon.get(f"/api/runs/{middle}")["outcome"] == "unknown")  # a person asked for it, and may ask again
    again = next(run["runId"] for run in old.told["runs"] if run["slug"] == "tries-again")
    until(lambda: daemon.get(f"/api/runs/{again}")["attempt"] >= 2)
    news = next(run["runId"] for run in old.told["runs"] if run["slug"] == "news")
    until(lambda: daemon.get(f"/api/runs/{news}")["outcome"] == "succeeded")  # a turn carried its event
    daemon.post("/api/workflows/letters/resume")
    letters = "/api/workflows/letters/topics/letters/messages"
    until(lambda: {one["id"]: one["status"] for one in pages(daemon, letters, "messages")}["from-ann"] == "consumed")
    daemon.run("talks")


def doctor(home: Path) -> list[str]:
    """What `wakeful doctor` says."""
    environment = os.environ | {"TZ": "Etc/UTC"}
    told = forking.run("wakeful.cli.main", "doctor", "--home", home, "-o", "json", environment=environment)
    return [finding["words"] for finding in json.loads(told.out)["findings"]]


WRITTEN = (
    "slug", "schedule", "prompt", "command", "http", "call", "event", "agent", "sessionConfig", "deliver", "catchUp",
    "catchUpMax", "maxLateness", "overlap", "timeout", "onCrash", "retry", "maxConsecutiveErrors", "activeHours",
    "stagger", "success", "slot", "lane", "budget", "check", "exclude", "runOn", "owner",
)  # fmt: skip
"""What a person writes in a definition."""
UNCHECKED = ("edited", "after-the-reset")
"""The checker knows neither the earlier timing of the one nor the reset that the other follows."""
CHANGED = {"0.1": {"usage", "delivery", "log"}, "0.2": {"log"}}
"""What runs say differently; the log is not in the database."""
