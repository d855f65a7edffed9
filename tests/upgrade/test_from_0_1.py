"""A database written by release 0.1.0 opens, and everything in it is there, on both stores."""

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
from wakeful.app import bootstrap
from wakeful.drill.ledger import audit
from wakeful.stores.sqlite.migrate import migrations

__all__ = ["server", "url"]

OPEN = ("running", "waiting")
EVERY_OUTCOME = {"succeeded", "failed", "timedOut", "unconfirmed", "unknown", "skipped", "missed", "running", "waiting"}
EMPTY = {"watchers", "bus", "lanes", "askings"}
"""Tables whose rows live for a moment."""

# What schema 11 moved: a topic's one consumer became a subscription, and incidents of kinds that are gone are closed.
ADDED = {"totalled_through"}  # a counter of 0.2
MOVED = {("topics", "consumer"), ("topics", "seen"), ("incidents", "closed_at")}


class Old(NamedTuple):
    """The database of 0.1.0, in a home folder of its own."""

    address: str
    home: Path
    told: dict[str, Any]  # what 0.1.0 said of it
    rows: Callable[[], fixture.Rows]


@pytest.fixture(params=["sqlite", "postgres"])
def old(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Old]:
    home = tmp_path / "home"
    fixture.prepare(home)
    told = fixture.listing(request.param, home)
    if request.param == "sqlite":
        path = home / "wakeful.db"
        fixture.load_sqlite(path, home)
        yield Old(f"sqlite:///{path}", home, told, lambda: fixture.rows_of_sqlite(path))
        return
    running: Server = request.getfixturevalue("server")
    address: str = request.getfixturevalue("url")
    fixture.load_postgres(running, address, home)
    yield Old(address, home, told, lambda: fixture.rows_of_postgres(running, address))


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
    assert {run["outcome"] for run in before["runs"]} == EVERY_OUTCOME
    assert {name for name, rows in before.items() if not rows} <= EMPTY
    for table, rows in before.items():
        if table == "schema_version":
            assert max(row["number"] for row in after[table]) == migrations()[-1].number == 11
            continue
        columns = [name for name in (rows or [{}])[0] if (table, name) not in MOVED]
        kept = [tuple(row[name] for name in columns) for row in after[table] if row.get("name") not in ADDED]
        assert sorted(kept, key=repr) == sorted((tuple(row[name] for name in columns) for row in rows), key=repr), table
    consumers = {(row["workflow_id"], row["topic"], row["consumer"]) for row in after["subscriptions"]}
    assert consumers == {(row["workflow_id"], row["name"], row["consumer"]) for row in before["topics"]}
    closed = [row for row in after["incidents"] if row["closed_at"] is None]
    assert not [row["name"] for row in closed if row["name"].startswith(("failing:", "disabled:", "unknown:"))]


def test_the_daemon_reads_back_what_0_1_said_and_then_catches_up(old: Old, daemon: Daemon) -> None:
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
    """What 0.1 said is what this release says."""
    for was in old.told["/api/schedule"]:
        now = daemon.get(f"/api/schedule/{was['slug']}")
        for name in (*WRITTEN, "version", "createdAt"):
            assert now.get(name) == was.get(name), (was["slug"], name)
    for was in old.told["runs"]:
        if was["outcome"] in OPEN:
            continue
        now = daemon.get(f"/api/runs/{was['runId']}")
        for attempt in now["attempts"]:
            attempt.pop("node")  # new; 0.1 forgot which node made the last attempt
        assert {name: now.get(name) for name in was if name not in RENAMED} == {
            name: value for name, value in was.items() if name not in RENAMED
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
        assert (now["status"], now.get("error")) == (flow["status"], flow.get("error"))
        messages = {one["id"]: one for one in pages(daemon, f"{place}/topics/letters/messages", "messages")}
        for was in old.told[f"{place}/topics/letters/messages"]:
            assert {name: messages[was["id"]].get(name) for name in was} == was
        sessions = {one["sessionId"] for one in pages(daemon, f"{place}/sessions", "sessions")}
        assert {one["sessionId"] for one in old.told[f"{place}/sessions"]} <= sessions
    slots = {one["name"]: one for one in daemon.get("/api/slots")["slots"]}
    assert slots.keys() == {one["name"] for one in old.told["/api/slots"]["slots"]}
    assert slots["mine"]["percentage"] == 42


def assert_caught_up(old: Old, daemon: Daemon) -> None:
    """Each schedule once, as its definition says; nothing that was off, paused or too late."""
    known = {run["runId"] for run in old.told["runs"]}

    def since(slug: str) -> list[tuple[str, str]]:
        runs = daemon.get(f"/api/runs?limit=1000&slug={slug}")["runs"]
        return sorted((run["outcome"], run["trigger"]) for run in runs if run["runId"] not in known)

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
    "stagger", "success", "slot", "lane",
)  # fmt: skip
"""What a person writes in a definition."""
UNCHECKED = ("edited", "after-the-reset")
"""The checker knows neither the earlier timing of the one nor the reset that the other follows."""
RENAMED = {"usage", "delivery", "log"}
