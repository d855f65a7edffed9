"""GitHub Actions, Airflow, n8n and Home Assistant: what stays there, and is started from here. The times of the year
are those of their own libraries (GitHub counts in UTC)."""

import json
import shutil
import sqlite3
import subprocess
from pathlib import Path
from typing import Any

import pytest

from moving.kit import CORPUS, STARTS, known_as, read, year_of
from wakeful.integrations.imports.entries import Entry, SourceRefused
from wakeful.integrations.imports.fitting import fit

WORKFLOW = """
name: Nightly build
on:
  push: {branches: [main]}
  schedule:
    - cron: '30 5 * * 1,3'
    - cron: "*/15 * * * *"
  workflow_dispatch:
jobs:
  build: {runs-on: ubuntu-latest, steps: [{run: make}]}
"""


def repository(folder: Path, workflow: str = WORKFLOW, remote: str = "https://github.com/example/app.git") -> Path:
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    for argv in (["init", "-q", "-b", "trunk"], ["remote", "add", "origin", remote]):
        subprocess.run(["git", "-C", str(folder), *argv], check=True)
    (folder / ".github" / "workflows").mkdir(parents=True)
    (folder / ".github" / "workflows" / "nightly.yml").write_text(workflow)
    return folder


@pytest.mark.parametrize("remote", ["https://github.com/example/app.git", "git@github.com:example/app"])
def test_a_workflow_of_a_repository(remote: str, tmp_path: Path) -> None:
    """Its address is that of the remote, its branch the one that is checked out; without a token it is a draft."""
    weekly, often = read("github-actions", repository(tmp_path, remote=remote))
    url = "https://api.github.com/repos/example/app/actions/workflows/nightly.yml/dispatches"
    script = weekly.action["command"]["argv"][-1]
    assert script.endswith(f" {url}") and '{"ref": "trunk"}' in script
    assert weekly.draft == "give the daemon GH_TOKEN, a token that may start workflows, then enable it"
    assert weekly.line == 6 and often.line == 7 and weekly.options["lane"] == often.options["lane"]
    assert len(year_of(often)) == 365 * 96 and weekly.schedule["timezone"] == "UTC"
    (weekly, _) = read("github-actions", tmp_path / ".github" / "workflows", environ={"GH_TOKEN": "abc"})
    assert weekly.draft is None and weekly.action["command"]["passEnv"] == ["GH_TOKEN"]
    assert "abc" not in json.dumps(weekly.action)  # anyone who may read schedules can read it


def test_a_workflow_that_cannot_be_started_from_outside(tmp_path: Path) -> None:
    """With the line that it needs."""
    text = WORKFLOW.replace("  workflow_dispatch:\n", "")
    assert all("workflow_dispatch" in str(entry.refused) for entry in read("github-actions", content=text))
    entry = read("github-actions", content=WORKFLOW)[0]
    assert "put OWNER and REPO into its address" in str(entry.draft)
    assert read("github-actions", content="on: push\n") == []


DAGS = """
import datetime
import pendulum
from airflow.sdk import DAG, Asset, dag, task
from airflow.timetables.trigger import CronTriggerTimetable

raise RuntimeError("never run")
WHEN = pendulum.datetime(2026, 1, 1, tz="Europe/Berlin")
with DAG("nightly", schedule="30 4 * * *", start_date=WHEN, catchup=True): pass
with DAG(dag_id="often", schedule="*/30 * * * *", start_date=WHEN): pass
with DAG("even", schedule="0 */2 * * *", start_date=WHEN): pass
with DAG("office", schedule="15 8-18 * * 1-5", start_date=WHEN): pass
with DAG("first-or-monday", schedule="0 0 1 * 1", start_date=WHEN): pass
with DAG("open-step", schedule=CronTriggerTimetable("5/20 6 * * *", timezone="Europe/Berlin")): pass
with DAG("in-the-gap", schedule="30 2 * * *", start_date=WHEN): pass
with DAG("asset", schedule=[Asset("s3://a")], start_date=WHEN): pass
with DAG("computed", schedule=SETTINGS["x"], start_date=WHEN): pass

@dag(schedule=datetime.timedelta(hours=6), start_date=datetime.datetime(2026, 1, 1))
def intervals(): pass

@dag(schedule="@daily")
def presets(): pass

@dag
def by_hand(): pass
"""
DAG_IDS = {
    "nightly": "30 4 * * *", "often": "*/30 * * * *", "even": "0 */2 * * *", "office": "15 8-18 * * 1-5",
    "first-or-monday": "0 0 1 * 1", "open-step": "5/20 6 * * *",
}  # fmt: skip


@pytest.fixture
def dags(tmp_path: Path) -> dict[str, Entry]:
    (tmp_path / "dags").mkdir()
    (tmp_path / "dags" / "all.py").write_text(DAGS)
    return {entry.ref: entry for entry in read("airflow", environ={"AIRFLOW_HOME": str(tmp_path)})}


@pytest.mark.parametrize("name", ["nightly", "often", "office", "first-or-monday", "open-step"])
def test_a_year_of_times_is_airflows_own(dags: dict[str, Entry], name: str) -> None:
    """Of version 3.3.2."""
    year = json.loads((CORPUS / "airflow-3.3.2-year.json").read_text())
    assert known_as(year_of(dags[name])) == year[DAG_IDS[name]]


@pytest.mark.parametrize(("name", "expression"), [("even", "0 */2 * * *"), ("in-the-gap", "30 2 * * *")])
def test_a_dag_in_a_clock_change_differs(dags: dict[str, Entry], name: str, expression: str) -> None:
    """Its own times are those of Airflow; ours are not, which the plan says."""
    entry = dags[name]
    assert entry.times is not None and fit(entry.schedule, entry.times, now=STARTS[0])[1] is not None
    year = json.loads((CORPUS / "airflow-3.3.2-year.json").read_text())[expression]
    assert known_as(list(entry.times(STARTS[0], year["count"]))) == year


def test_a_dag_becomes_a_draft(dags: dict[str, Entry]) -> None:
    """Timing only; the tasks stay in Airflow."""
    assert all(entry.draft for entry in dags.values() if entry.refused is None)
    assert dags["nightly"].action["command"]["argv"] == ["airflow", "dags", "trigger", "nightly"]
    assert dags["nightly"].options["catchUp"] == "all" and any("catchup" in note for note in dags["nightly"].notes)
    assert dags["intervals"].schedule == {"type": "every", "every": "6h", "anchor": "2026-01-01T00:00:00.000Z"}
    assert dags["presets"].schedule["expression"] == "0 0 * * *" and dags["presets"].schedule["timezone"] == "UTC"
    assert (
        dags["nightly"].line
        == DAGS.split("\n").index('with DAG("nightly", schedule="30 4 * * *", start_date=WHEN, catchup=True): pass') + 1
    )
    for name in ("asset", "computed", "by_hand"):
        assert "its schedule is" in str(dags[name].refused)


def workflow(rule: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """As n8n exports one."""
    trigger = {
        "parameters": {"rule": {"interval": [rule]}}, "type": "n8n-nodes-base.scheduleTrigger", "typeVersion": 1.3,
        "position": [0, 0], "id": "node1", "name": "Schedule Trigger",
    }  # fmt: skip
    webhook = {
        "parameters": {"httpMethod": "POST", "path": "report", "options": {}}, "type": "n8n-nodes-base.webhook",
        "typeVersion": 2, "position": [0, 200], "id": "node2", "name": "Webhook", "webhookId": "report",
    }  # fmt: skip
    return {
        "name": "Daily report", "nodes": [trigger, webhook], "connections": {}, "active": True, "id": "wf1",
        "settings": {"executionOrder": "v1", "timezone": "Europe/Berlin"}, **changes,
    }  # fmt: skip


RULES = json.loads((CORPUS / "n8n-2.41.2.json").read_text())


@pytest.mark.parametrize("case", RULES, ids=lambda case: json.dumps(case["rule"]))
def test_an_interval_is_what_n8n_makes_of_it(case: dict[str, Any]) -> None:
    """The expression, with the minute and the second that it derives; and the times that its cron library gives."""
    (entry,) = read("n8n", content=json.dumps(workflow(case["rule"])))
    assert entry.times is not None and entry.schedule["expression"] == case["expression"]
    if "count" in case:
        times = (
            year_of(entry) if case["rule"].get("triggerAtHour") != 2 else list(entry.times(STARTS[0], case["count"]))
        )
        extra = [case["extra"]] if "extra" in case else []  # a run that its library adds after the gap
        assert known_as(sorted([*times, *extra])) == {name: case[name] for name in ("count", "sha256")}
        assert any("once more" in note for note in entry.notes) == bool(extra)


def test_a_workflow_of_n8n(tmp_path: Path) -> None:
    """From the database too; its webhook is what starts it."""
    rule = {"field": "days", "triggerAtHour": 7}
    path = tmp_path / "database.sqlite"
    made = workflow(rule)
    with sqlite3.connect(path) as store:
        store.execute("CREATE TABLE workflow_entity (id, name, active, nodes, connections, settings, staticData)")
        values = (made["id"], made["name"], 0, json.dumps(made["nodes"]), "{}", json.dumps(made["settings"]), None)
        store.execute("INSERT INTO workflow_entity VALUES (?, ?, ?, ?, ?, ?, ?)", values)
    store.close()
    (entry,) = read("n8n", path, environ={"WEBHOOK_URL": "https://n8n.example.com/"})
    assert entry.action["http"] == {"method": "POST", "url": "https://n8n.example.com/webhook/report"}
    assert entry.is_paused and entry.name == "daily-report"
    (bare,) = read("n8n", content=json.dumps(workflow(rule, nodes=made["nodes"][:1])))
    assert "add one to the workflow" in str(bare.refused)
    for rule in ({"field": "days", "daysInterval": 2}, {"field": "minutes", "minutesInterval": 50}, {"field": "x"}):
        (refused,) = read("n8n", content=json.dumps(workflow(rule)))
        assert refused.refused is not None


AUTOMATIONS = """
- id: '1700000000001'
  alias: Küche & Licht
  triggers:
    - trigger: time
      at: "07:30:00"
  conditions:
    - {condition: state, entity_id: input_boolean.at_home, state: 'on'}
  actions: [{action: light.turn_on, target: {entity_id: light.kitchen}}]
- id: '2'
  alias: Often
  trigger:
    - platform: time_pattern
      minutes: /5
    - platform: state
      entity_id: sensor.x
  action: []
- alias: Every two hours
  trigger: {platform: time_pattern, hours: "/2"}
- alias: Quarter past
  trigger: {platform: time_pattern, minutes: 15}
- alias: Seconds
  trigger: {platform: time, at: "06:00:30"}
- alias: Twice
  trigger: {platform: time, at: ["06:15", "18:45:00"]}
- alias: Weekly
  triggers: [{trigger: time, at: "09:00", weekday: [mon, fri]}]
- alias: Helper
  trigger: {platform: time, at: input_datetime.wake_up}
- alias: Secret
  trigger: {platform: time, at: !secret wake_up}
- alias: Night
  trigger: {platform: time, at: "02:30"}
"""


def automations(**changes: Any) -> dict[str, Entry]:
    found = read("home-assistant", content=AUTOMATIONS, **changes)
    return {json.loads(entry.source)["alias"]: entry for entry in found}


@pytest.mark.parametrize(
    ("alias", "pattern"),
    [
        ("Küche & Licht", "07:30"),
        ("Often", "/5 minutes"),
        ("Every two hours", "/2 hours"),
        ("Quarter past", "minutes 15"),
        ("Seconds", "06:00:30"),
        ("Night", "02:30"),
    ],
)
def test_a_year_of_times_is_home_assistants_own(alias: str, pattern: str) -> None:
    """Of version 2024.3.3: a time in the gap is skipped, a repeated one runs twice."""
    year = json.loads((CORPUS / "home-assistant-2024.3.3-year.json").read_text())
    assert known_as(year_of(automations()[alias])) == year[pattern]


def test_an_automation_of_home_assistant() -> None:
    """It is triggered over REST with its conditions; without a token it is a draft."""
    found = automations()
    kitchen = found["Küche & Licht"]
    script = kitchen.action["command"]["argv"][-1]
    assert script.endswith(" http://homeassistant.local:8123/api/services/automation/trigger")
    assert '{"entity_id": "automation.kuche_licht", "skip_condition": false}' in script
    assert "access token" in str(kitchen.draft)
    assert any("also starts by state" in note for note in found["Often"].notes)
    assert found["Twice"].schedule == {"type": "times", "times": ["06:15", "18:45"], "timezone": "Europe/Berlin"}
    assert found["Weekly"].schedule["expression"] == "0 9 * * 1,5"
    for alias in ("Helper", "Secret"):
        assert "knows only when it runs" in str(found[alias].refused)
    given = automations(environ={"HASS_TOKEN": "abc", "HASS_SERVER": "http://127.0.0.1:8123/"})["Weekly"]
    assert given.draft is None and given.action["command"]["passEnv"] == ["HASS_TOKEN"]


@pytest.mark.parametrize("kind", ["airflow", "n8n", "home-assistant", "github-actions"])
def test_another_file_is_refused(kind: str, tmp_path: Path) -> None:
    """With its place."""
    name = "x.yml" if kind == "github-actions" else "x.json"
    (tmp_path / name).write_text("{[ = =")
    with pytest.raises(SourceRefused, match=name):
        read(kind, tmp_path / name)
