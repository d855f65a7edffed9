"""Schedules of other programs, over a running daemon: a file as the real program writes it, applied, and what each
schedule gives to what it runs."""

import base64
import json
import plistlib
import shutil
import sqlite3
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from edges.cli.kit import Cli, daemon
from moving.kit import CORPUS
from moving.stand_ins import Machine
from moving.test_each_source_runs import SETTINGS, USER, imported, made, only, run
from moving.test_workflow_systems import AUTOMATIONS, DAGS, WORKFLOW, repository, workflow

PROGRAMS = ("model", "report", "airflow")


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    return Machine(tmp_path_factory.mktemp("programs")).install(*PROGRAMS)


@pytest.fixture(scope="module")
def broker(machine: Machine) -> Iterator[str | None]:
    """The address of a Redis server."""
    if shutil.which("redis-server") is None:
        yield None
        return
    conftest = pytest.importorskip("dispatch.conftest")
    server = conftest.Redis(machine.folder)
    server.start()
    try:
        yield server.url
    finally:
        server.stop()


class Address:
    """A stand-in for the web addresses of other programs: it records what it is asked."""

    def __init__(self) -> None:
        self.heard: list[dict[str, Any]] = []
        heard = self.heard

        class Handler(BaseHTTPRequestHandler):
            """Answers everything."""

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                heard.append({"path": self.path, "token": self.headers.get("Authorization"), "body": body.decode()})
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Quiet."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def asked(self, path: str) -> list[dict[str, Any]]:
        return [one for one in self.heard if one["path"] == path]


@pytest.fixture(scope="module")
def address() -> Iterator[Address]:
    made = Address()
    threading.Thread(target=made.server.serve_forever, daemon=True).start()
    try:
        yield made
    finally:
        made.server.shutdown()
        made.server.server_close()


@pytest.fixture(scope="module")
def cli(machine: Machine, broker: str | None, address: Address) -> Iterator[Cli]:
    home = machine.folder / ".wakeful"
    home.mkdir(mode=0o700)
    (home / "wakeful.toml").write_text(SETTINGS)
    (home / "wakeful.toml").chmod(0o600)
    given = {
        "GH_TOKEN": "gh-token",
        "GITHUB_API_URL": address.url,
        "WEBHOOK_URL": address.url,
        "HASS_TOKEN": "hass-token",
        "HASS_SERVER": address.url,
        **({"CELERY_BROKER_SECRET": broker} if broker is not None else {}),
    }
    with daemon(home, environ={**machine.environ, **given}) as started:
        yield started


def test_jobs_of_apscheduler(cli: Cli, machine: Machine) -> None:
    """Its function is called with its arguments in the folder of the program, a coroutine too; without the program, it
    is a draft."""
    folder = machine.folder / "apscheduler"
    folder.mkdir()
    (folder / "reports.py").write_text(
        "import pathlib\n"
        "def nightly(day, *, copies=1): pathlib.Path('nightly').write_text(f'{day} {copies}')\n"
        "async def poll(): pathlib.Path('polled').write_text('yes')\n"
        "class Mailer:\n"
        "    @staticmethod\n"
        "    def send(to, text): pathlib.Path('mailed').write_text(f'{to} {text}')\n"
    )
    with sqlite3.connect(folder / "jobs.sqlite") as store:
        store.executescript((CORPUS / "apscheduler-3.11.3.sql").read_text())
    store.close()
    entries = imported(cli, "apscheduler", folder / "jobs.sqlite")
    assert {"nightly-report", "mailer.send"} <= made(entries), list(entries)
    for name, file, text in (
        ("nightly-report", "nightly", "mon 2"),
        ("mailer.send", "mailed", "me x"),
        ("poll", "polled", "yes"),
    ):
        run(cli, entries[name])
        assert (folder / file).read_text() == text
    other = machine.folder / "elsewhere"
    other.mkdir()
    shutil.copy(folder / "jobs.sqlite", other / "jobs.sqlite")
    said = cli.ask("import", "apscheduler", str(other / "jobs.sqlite"), "--only", "nightly-report-2", "--apply")
    assert "a draft, created disabled: set cwd" in said.out
    shown = cli.ask("-o", "json", "show", "nightly-report-2").json
    assert shown["status"] == "disabled" and shown["statusReason"].startswith("draft: set cwd")


def test_periodic_tasks_of_celery(cli: Cli, machine: Machine, broker: str | None) -> None:
    """A task is handed over to the workers: its message is in the queue of the broker."""
    if broker is None:
        pytest.skip("redis-server is not installed")
    path = machine.folder / "db.sqlite3"
    with sqlite3.connect(path) as store:
        store.executescript((CORPUS / "django-celery-beat-2.9.0.sql").read_text())
    store.close()
    entries = imported(cli, "celery-beat", path)
    assert {"nightly-report", "office-hours", "poll", "once"} <= made(entries), list(entries)
    run(cli, entries["nightly-report"])
    (message,) = queued(broker, "reports")
    assert message["headers"]["task"] == "reports.tasks.nightly"
    args, keywords, _ = json.loads(base64.b64decode(message["body"]))
    assert (args, keywords) == (["mon"], {"copies": 2})


def queued(broker: str, queue: str) -> list[dict[str, Any]]:
    redis = pytest.importorskip("redis")
    with redis.Redis.from_url(broker) as client:
        return [json.loads(text) for text in client.lrange(queue, 0, -1)]


def test_jobs_of_at(cli: Cli, machine: Machine) -> None:
    """In their folder, with the variables of the shell that they were written in."""
    spool = machine.folder / "atjobs"
    spool.mkdir()
    work = machine.folder / "at-home"
    work.mkdir()
    for file in (CORPUS / "at").iterdir():
        text = file.read_text().replace("/srv/at\\-home", str(work)).replace("# mail root", f"# mail {USER}")
        (spool / file.name).write_text(text.replace("PATH=/usr/bin:/bin", f"PATH={machine.path}"))
    entries = imported(cli, "at", spool)
    assert made(entries) == {"echo", "report"}, list(entries)
    run(cli, entries["echo"])
    assert (work / "greeting").read_text() == "hello it's\n"
    done = cli.ask("-o", "json", "run", entries["report"]["slug"], "--wait")
    assert "exit" in done.out and done.code != 0  # its script ends with exit 3
    heard = only(machine, "report")
    assert (heard["argv"], heard["cwd"]) == (["--weekly"], str(work))


def test_jobs_of_launchd(cli: Cli, machine: Machine) -> None:
    """Its program in its folder, with its variables."""
    folder = machine.folder / "LaunchAgents"
    folder.mkdir()
    job = {
        "Label": "com.example.report", "ProgramArguments": [str(machine.bin / "report"), "--monthly"],
        "EnvironmentVariables": {"REPORT": "all"}, "WorkingDirectory": str(folder),
        "StartCalendarInterval": [{"Hour": hour, "Minute": 0} for hour in (6, 18)],
    }  # fmt: skip
    with (folder / "com.example.report.plist").open("wb") as file:
        plistlib.dump(job, file)
    entries = imported(cli, "launchd", folder)
    assert made(entries) == {"com.example.report"}, list(entries)
    before = len(machine.heard("report"))
    run(cli, entries["com.example.report"])
    heard = only(machine, "report", before)
    assert (heard["argv"], heard["cwd"], heard["env"]["REPORT"]) == (["--monthly"], str(folder), "all")


def test_a_workflow_on_github(cli: Cli, machine: Machine, address: Address) -> None:
    """It is dispatched, on the branch that is checked out, with the token of the daemon."""
    folder = machine.folder / "app"
    folder.mkdir()
    entries = imported(cli, "github-actions", repository(folder, WORKFLOW))
    assert {"nightly-build"} <= made(entries), list(entries)
    assert entries["nightly-build"]["draft"] is None and "gh-token" not in json.dumps(entries)
    run(cli, entries["nightly-build"])
    (asked,) = address.asked("/repos/example/app/actions/workflows/nightly.yml/dispatches")
    assert asked["token"] == "Bearer gh-token" and json.loads(asked["body"]) == {"ref": "trunk"}


def test_dags_of_airflow(cli: Cli, machine: Machine) -> None:
    """They are drafts, which a person can try."""
    file = machine.folder / "dags.py"
    file.write_text(DAGS)
    entries = imported(cli, "airflow", file)
    assert {"nightly", "often", "in-the-gap"} <= made(entries), list(entries)
    assert all(entries[name]["draft"] for name in made(entries))
    assert any("its times differ" in note for note in entries["in-the-gap"]["notes"])
    handed = cli.ask("-o", "json", "import", "airflow", str(file), "--disable-source").json["entries"]
    assert all("it would be a draft here" in one["reason"] for one in handed if one["draft"])
    run(cli, entries["nightly"])
    assert only(machine, "airflow")["argv"] == ["dags", "trigger", "nightly"]
    shown = cli.ask("-o", "json", "show", entries["nightly"]["slug"]).json
    assert shown["status"] == "disabled" and shown["statusReason"].startswith("draft: ")
    assert cli.ask("resume", entries["nightly"]["slug"]).code == 0
    assert cli.ask("-o", "json", "show", entries["nightly"]["slug"]).json["status"] == "idle"


def test_a_workflow_of_n8n(cli: Cli, machine: Machine, address: Address) -> None:
    """Its webhook is called."""
    file = machine.folder / "workflow.json"
    file.write_text(json.dumps(workflow({"field": "days", "triggerAtHour": 7}), indent=2))
    entries = imported(cli, "n8n", file)
    assert made(entries) == {"daily-report"}, list(entries)
    run(cli, entries["daily-report"])
    assert len(address.asked("/webhook/report")) == 1


def test_automations_of_home_assistant(cli: Cli, machine: Machine, address: Address) -> None:
    """They are triggered with their conditions."""
    file = machine.folder / "automations.yaml"
    file.write_text(AUTOMATIONS)
    entries = imported(cli, "home-assistant", file)
    assert {"weekly", "twice", "seconds"} <= made(entries), list(entries)
    run(cli, entries["weekly"])
    (asked,) = address.asked("/api/services/automation/trigger")
    assert asked["token"] == "Bearer hass-token"
    assert json.loads(asked["body"]) == {"entity_id": "automation.weekly", "skip_condition": False}
