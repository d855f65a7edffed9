"""The health of a schedule is the same word everywhere people and programs look."""

import json
import re
import sqlite3
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from access import HEADERS
from edges.cli.kit import WITHIN, Cli, daemon

pytestmark = pytest.mark.waits
HEALTHS = {"fine": "ok", "broken": "failing", "overdue": "late", "behind": "waiting", "stopped": "off"}
BESIDE = {"holder": "ok", "filler": "ok"}  # what keeps the others from starting


def add(cli: Cli, slug: str, *words: str) -> None:
    said = cli.ask("add", slug, *words)
    assert said.code == 0, said.err


def get(cli: Cli, path: str, body: Any = None) -> Any:
    address = json.loads((cli.home / "wakeful.lock").read_text())["address"]
    data, method = (None, "GET") if body is None else (json.dumps(body).encode(), "PUT")
    request = urllib.request.Request(address + path, data, HEADERS, method=method)
    with urllib.request.urlopen(request, timeout=WITHIN) as answer:
        text = answer.read().decode()
    return text if path == "/metrics" else json.loads(text)


def put(cli: Cli, slug: str, definition: dict[str, Any]) -> None:
    """A one-shot, due at once."""
    get(cli, f"/api/schedule/{slug}", {"schedule": "in 1s", **definition})


def until(cli: Cli, slug: str, **fields: str) -> None:
    """Wait until the schedule is shown like that."""
    cli.until(lambda: fields.items() <= get(cli, f"/api/schedule/{slug}").items())


def health_of(cli: Cli, slug: str) -> str:
    return str(cli.ask("show", slug, "-o", "json").json["health"])


@pytest.fixture(scope="module")
def troubled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cli]:
    """A home with a schedule of each health. Two runs may go on at once, and do."""
    home = tmp_path_factory.mktemp("home")
    (home / "wakeful.toml").write_text('[limits]\nconcurrency_max = 2\nshutdown_grace = "1s"\n')
    with daemon(home) as cli:
        add(cli, "fine", "--every", "1h", "--command", "true")
        add(cli, "stopped", "--every", "1h", "--command", "true")
        cli.ask("pause", "stopped")
        put(cli, "broken", {"command": {"argv": ["false"]}})
        put(cli, "holder", {"command": {"argv": ["sleep", "900"]}, "lane": "x"})
        until(cli, "broken", health="failing")
        until(cli, "holder", status="running")
        put(cli, "behind", {"command": {"argv": ["true"]}, "lane": "x"})
        put(cli, "filler", {"command": {"argv": ["sleep", "900"]}})
        until(cli, "behind", health="waiting")
        until(cli, "filler", status="running")
        put(cli, "overdue", {"command": {"argv": ["true"]}})
        due_at = datetime.fromisoformat(get(cli, "/api/schedule/overdue")["nextRun"])
        cli.until(lambda: datetime.now(UTC) > due_at)
        # As if time had passed: after 30 s without capacity it has a run that waits, and after a minute it is late.
        _backdate(home, "UPDATE alarms SET due_at = due_at - 40000 WHERE kind = 'schedule' AND ref =")
        until(cli, "overdue", health="waiting")  # for one of the two to end
        _backdate(home, "UPDATE runs SET due_at = due_at - 120000 WHERE schedule_id =")
        yield cli


def _backdate(home: Path, update: str) -> None:
    with closing(sqlite3.connect(home / "wakeful.db", timeout=WITHIN)) as connection, connection:
        connection.execute(f"{update} (SELECT schedule_id FROM schedules WHERE slug = 'overdue')")


def slugs(answer: Any) -> set[str]:
    return {one["slug"] for one in answer["schedules"]}


def test_every_place_shows_the_same_health(troubled: Cli) -> None:
    """ls, show, REST and its filters agree on all five."""
    expected = {**HEALTHS, **BESIDE}
    assert {one["slug"]: one["health"] for one in get(troubled, "/api/schedule")["schedules"]} == expected
    lines = [line.split() for line in troubled.ask("ls").out.splitlines()[1:]]
    assert {line[0]: line[1] for line in lines} == expected
    for slug, health in expected.items():
        assert health_of(troubled, slug) == health
        assert re.search(rf"^ *health: {health}$", troubled.ask("show", slug).out, re.MULTILINE)
    for health in ("ok", "failing", "late", "waiting", "off"):
        listed = {slug for slug, one in expected.items() if one == health}
        assert slugs(get(troubled, f"/api/schedule?health={health}")) == listed
        assert slugs(troubled.ask("ls", "--health", health, "-o", "json").json) == listed


def test_every_verdict_names_those_in_trouble_and_no_others(troubled: Cli) -> None:
    """?troubled, doctor, /healthz and /metrics: one is failing and one is late."""
    assert slugs(get(troubled, "/api/schedule?troubled=true")) == {"broken", "overdue"}
    health = get(troubled, "/healthz")
    assert health["status"] == "degraded"
    named = {one["name"]: one["slugs"] for one in health["findings"] if one["name"] in ("failing", "late")}
    assert named == {"failing": ["broken"], "late": ["overdue"]}
    findings = [one for one in troubled.ask("doctor", "-o", "json").json["findings"] if one["what"] == "schedules"]
    said = " ".join(one["words"] for one in findings)
    assert "broken failed: " in said
    assert "late: overdue" in said
    assert not any(slug in said for slug in ("fine", "stopped", "behind"))
    metrics = get(troubled, "/metrics")
    assert re.search(r"^wakeful_schedules_failing 1\.0$", metrics, re.MULTILINE)
    assert re.search(r"^wakeful_schedules_late 1\.0$", metrics, re.MULTILINE)


def test_a_result_is_one_of_the_words_of_the_ledger(troubled: Cli) -> None:
    """`ls`, `show`, `runs` and `doctor` say failed, not error; `idle` is for programs alone."""
    assert not any("idle" in troubled.ask(*words).out for words in (("ls",), ("show", "broken")))
    (run,) = troubled.ask("runs", "broken", "-o", "json").json["runs"]
    assert run["outcome"] == "failed"
    (row,) = [line for line in troubled.ask("ls").out.splitlines() if line.startswith("broken")]
    assert row.split()[-1] == "failed"
    assert re.search(r"^ *result: failed$", troubled.ask("show", "broken").out, re.MULTILINE)


def test_status_is_about_the_clock_and_the_store(troubled: Cli) -> None:
    """A schedule that fails is no failure of the daemon: `status` names it and exits with 0, as `doctor` says."""
    said = troubled.run("status")
    assert said.code == 0
    assert re.search(r"^ *clock: alive$", said.out, re.MULTILINE)
    assert "attention: 1 schedule failing: broken " in " ".join(said.out.split())
    assert troubled.ask("status", "-o", "json").json["health"]["status"] == "degraded"
    clock = [one for one in troubled.ask("doctor", "-o", "json").json["findings"] if one["what"] == "clock"]
    assert [one["state"] for one in clock] == ["ok"]


def test_status_fails_while_the_store_cannot_be_written(troubled: Cli) -> None:
    """Another program holds the database."""
    with closing(sqlite3.connect(troubled.home / "wakeful.db", timeout=WITHIN)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        troubled.until(lambda: troubled.run("status").code == 1)  # a probe of the last second may still count
        said = troubled.run("status")
        connection.rollback()
    assert said.code == 1
    assert re.search(r"^ *store: .*write", said.out, re.MULTILINE)
    troubled.until(lambda: troubled.run("status").code == 0)
