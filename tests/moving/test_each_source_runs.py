"""Each importer, over a running daemon: a file as the real program writes it, applied, and what each schedule gives to
the program that it runs."""

import json
import re
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from edges.cli.kit import Cli, daemon
from moving.kit import CORPUS
from moving.stand_ins import Machine
from wakeful.core.time.instants import DAY, format_instant
from wakeful.integrations.imports.entries import user_name

SETTINGS = """
[agents.default]
adapter = "command"
argv = ["model"]
[agents.claude]
adapter = "command"
argv = ["claude", "-p"]
[agents.codex]
adapter = "command"
argv = ["codex", "exec", "-"]
[agents.hermes]
adapter = "command"
argv = ["hermes-agent"]
[agents.openclaw]
adapter = "command"
argv = ["openclaw-agent"]
[channels.telegram]
type = "inbox"
[channels.mail]
type = "inbox"
[heartbeat]
enabled = true
"""
PROGRAMS = (
    "model",
    "claude",
    "codex",
    "hermes-agent",
    "openclaw-agent",
    "run-parts",
    "backup-photos",
    "kubectl",
    "report",
)

USER = user_name()


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    return Machine(tmp_path_factory.mktemp("machine")).install(*PROGRAMS)


@pytest.fixture(scope="module")
def cli(machine: Machine) -> Iterator[Cli]:
    home = machine.folder / ".wakeful"
    home.mkdir(mode=0o700)
    (home / "wakeful.toml").write_text(SETTINGS)
    (home / "wakeful.toml").chmod(0o600)
    with daemon(home, environ=machine.environ) as started:
        yield started


def imported(cli: Cli, kind: str, path: Path) -> dict[str, dict[str, Any]]:
    """What `import --apply` made, by name; what it refused, by its source."""
    said = cli.ask("-o", "json", "import", kind, str(path), "--apply")
    assert said.out, said.err
    return {_name(entry): entry for entry in said.json["entries"]}


def _name(entry: dict[str, Any]) -> str:
    """Without the number that a slug gets if another importer's test has taken it."""
    is_made = entry["action"] in ("create", "unchanged")
    return re.sub(r"-\d+$", "", entry["slug"]) if is_made else f"{entry['source']}: {entry['reason']}"


def run(cli: Cli, entry: dict[str, Any]) -> dict[str, Any]:
    done = cli.ask("-o", "json", "run", entry["slug"], "--wait")
    assert done.code == 0, done.out + done.err
    return dict(done.json)


def made(entries: dict[str, dict[str, Any]]) -> set[str]:
    return {name for name, entry in entries.items() if entry["action"] == "create"}


def only(machine: Machine, name: str, before: int = 0) -> dict[str, Any]:
    (heard,) = machine.heard(name)[before:]
    return heard


def test_a_system_crontab_outside_etc(cli: Cli, machine: Machine) -> None:
    """As Debian ships it, copied elsewhere: with its users, its SHELL and its PATH."""
    table = machine.folder / "crontab"
    table.write_text(
        f"SHELL=/bin/bash\nPATH={machine.path}\nMAILTO=ops\n\n"
        "# m h dom mon dow user\tcommand\n"
        f"17 *\t* * *\t{USER}\tcd / && run-parts --report /etc/cron.hourly\n"
        f"*/5 * * * * {USER} /serverUp.sh\n"
        f"25 6\t* * *\t{USER}\ttest -x /usr/sbin/no-such-program || exit 0; /usr/sbin/no-such-program daily\n"
        f"47 6\t* * 7\t{USER}\techo $BASH_VERSION > bash-version\n"
    )
    entries = imported(cli, "crontab", table)
    assert made(entries) == {"run-parts", "echo"}, list(entries)
    reasons = " ".join(str(entry["reason"]) for entry in entries.values())
    assert "'/serverUp.sh' does not exist" in reasons and "does nothing without '/usr/sbin/no-such-program'" in reasons
    run(cli, entries["run-parts"])
    heard = only(machine, "run-parts")
    assert (heard["argv"], heard["cwd"]) == (["--report", "/etc/cron.hourly"], "/")
    run(cli, entries["echo"])
    assert (machine.folder / "bash-version").read_text().strip()  # only bash knows that variable
    Cli.until(lambda: "run-parts was here" in cli.ask("-o", "json", "inbox").out)


def test_a_users_crontab(cli: Cli, machine: Machine) -> None:
    """Standard input after %, variables, and the home folder."""
    table = machine.folder / "mine"
    table.write_text('LIST=staff\n0 8 * * *\treport --to "$LIST"%Dear all,%100\\% sure\n')
    entries = imported(cli, "crontab", table)
    assert made(entries) == {"report"}, list(entries)
    before = len(machine.heard("report"))
    run(cli, entries["report"])
    heard = only(machine, "report", before)
    assert (heard["argv"], heard["stdin"]) == (["--to", "staff"], "Dear all,\n100% sure\n")
    assert heard["cwd"] == str(machine.folder)


def test_systemd_units(cli: Cli, machine: Machine) -> None:
    """A timer with its service, as `systemctl edit` leaves them; systemd itself finds nothing wrong with them."""
    folder = machine.folder / "units"
    folder.mkdir()
    timer, service = folder / "nightly.timer", folder / "nightly.service"
    timer.write_text(
        "[Unit]\nDescription=Nightly report\n\n[Timer]\nOnCalendar=*-*-* 02:00:00\nRandomizedDelaySec=10min\n"
        "Persistent=true\n\n[Install]\nWantedBy=timers.target\n"
    )
    service.write_text(
        '[Unit]\nDescription=Nightly report\n\n[Service]\nType=oneshot\nEnvironment="LANG=C" DAYS=7\n'
        f"WorkingDirectory=/srv\nExecStart={machine.bin}/report --days ${{DAYS}} \\\n  'two words'\n"
    )
    if shutil.which("systemd-analyze"):
        said = subprocess.run(["systemd-analyze", "verify", str(timer)], capture_output=True, text=True, check=False)
        assert "nightly" not in said.stderr
    entries = imported(cli, "systemd", folder)
    assert made(entries) == {"nightly"}, list(entries)
    before = len(machine.heard("report"))
    run(cli, entries["nightly"])
    heard = only(machine, "report", before)
    assert (heard["argv"], heard["cwd"]) == (["--days", "7", "two words"], "/srv")
    assert heard["env"]["LANG"] == "C" and heard["env"]["DAYS"] == "7"


MANIFEST = """apiVersion: batch/v1
kind: CronJob
metadata:
  creationTimestamp: null
  name: backup
spec:
  jobTemplate:
    metadata:
      creationTimestamp: null
      name: backup
    spec:
      template:
        metadata:
          creationTimestamp: null
        spec:
          containers:
          - command:
            - echo
            - hi
            image: busybox
            name: backup
            resources: {}
          restartPolicy: OnFailure
  schedule: '*/5 * * * *'
status: {}
"""
"""What `kubectl create cronjob backup --image=busybox --schedule='*/5 * * * *' --dry-run=client -o yaml -- echo hi`
of version 1.32 prints."""


def test_a_kubernetes_cron_job(cli: Cli, machine: Machine) -> None:
    """From kubectl itself, if it is installed. The schedule creates a job from it, with a name of its own."""
    file = machine.folder / "cronjob.yaml"
    file.write_text(_kubectl() or MANIFEST)
    entries = imported(cli, "kubernetes", file)
    assert made(entries) == {"backup"}, list(entries)
    done = run(cli, entries["backup"])
    name = f"backup-wakeful-{done['runId']}"
    assert only(machine, "kubectl")["argv"] == ["-n", "default", "create", "job", "--from=cronjob/backup", name]


def _kubectl() -> str | None:
    if shutil.which("kubectl") is None:
        return None
    argv = ["kubectl", "create", "cronjob", "backup", "--image=busybox", "--schedule=*/5 * * * *"]
    argv += ["--dry-run=client", "-o", "yaml", "--", "echo", "hi"]
    said = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
    return said.stdout if said.returncode == 0 else None


def test_openclaw_as_its_gateway_keeps_jobs(cli: Cli, machine: Machine) -> None:
    """Rows that OpenClaw 2026.9.6 wrote: its own are left alone, a command, turns, an event for the heartbeat."""
    home = machine.folder / ".openclaw" / "state"
    home.mkdir(parents=True)
    rows = json.loads((CORPUS / "openclaw-2026.9.6-cron_jobs.json").read_text())["rows"]
    with sqlite3.connect(home / "openclaw.sqlite") as store:
        store.execute("PRAGMA journal_mode = WAL")
        store.execute(f"CREATE TABLE cron_jobs ({', '.join(rows[0])})")
        for row in rows:
            store.execute(f"INSERT INTO cron_jobs VALUES ({', '.join('?' * len(row))})", list(row.values()))
    store.close()
    entries = imported(cli, "openclaw", home.parent)
    assert made(entries) == {"brief", "backup", "note", "silent"}, list(entries)
    assert sum("belongs to OpenClaw itself" in str(entry["reason"]) for entry in entries.values()) == 3
    run(cli, entries["backup"])
    heard = only(machine, "backup-photos")
    assert heard["argv"] == ["--all"] and heard["env"]["LANG"] == "C"
    run(cli, entries["brief"])
    assert only(machine, "openclaw-agent")["stdin"].endswith(" Summarise the night")
    Cli.until(lambda: "openclaw-agent was here" in cli.ask("-o", "json", "inbox").out)
    run(cli, entries["silent"])
    assert only(machine, "openclaw-agent", 1)["stdin"].endswith(" Check")
    run(cli, entries["note"])
    assert cli.ask("wake").code == 0
    Cli.until(lambda: any("Dinner" in heard["stdin"] for heard in machine.heard("model")))


def test_hermes_as_its_cli_writes_jobs(cli: Cli, machine: Machine) -> None:
    """`hermes cron create` of version 0.19.0. Its scripts are in its scripts folder, and run there."""
    home = machine.folder / ".hermes"
    (home / "cron").mkdir(parents=True)
    shutil.copy(CORPUS / "hermes-0.19.0-jobs.json", home / "cron" / "jobs.json")
    missing = imported(cli, "hermes", home)
    assert {"disk", "brief"}.isdisjoint(missing)
    assert "scripts/disk.sh does not exist" in " ".join(str(entry["reason"]) for entry in missing.values())
    (home / "scripts").mkdir()
    (home / "scripts" / "disk.sh").write_text('echo "low on $PWD ${BASH_VERSION:+bash}"\n')
    (home / "scripts" / "watch.py").write_text("print('three new mails')\n")
    entries = imported(cli, "hermes", home)
    assert made(entries) == {"disk", "brief"} and entries["plan"]["action"] == "unchanged"
    assert run(cli, entries["disk"])["output"].strip() == f"low on {home / 'scripts'} bash"
    run(cli, entries["brief"])
    said = only(machine, "hermes-agent")["stdin"]
    assert "Summarise the night" in said and "three new mails" in said
    run(cli, entries["plan"])
    assert only(machine, "hermes-agent", 1)["stdin"].endswith(" Plan")


def test_tasks_of_the_claude_app_and_of_claude_code(cli: Cli, machine: Machine) -> None:
    """The prompt is in SKILL.md for the app, and in the file of a project for Claude Code."""
    folder = machine.folder / "scheduled-tasks"
    (folder / "review").mkdir(parents=True)
    (folder / "review" / "SKILL.md").write_text("---\nname: review\n---\n\nReview the changes of the day.\n")
    task = {"id": "review", "cronExpression": "0 18 * * 1-5", "enabled": True, "permissionMode": "plan"}
    (folder / "scheduled-tasks.json").write_text(json.dumps({"scheduledTasks": [task]}, indent=2))
    entries = imported(cli, "claude", folder)
    assert made(entries) == {"review"}, list(entries)
    run(cli, entries["review"])
    heard = only(machine, "claude")
    assert heard["argv"] == ["-p"] and heard["stdin"].endswith("] Review the changes of the day.")

    project = machine.folder / "project" / ".claude"
    project.mkdir(parents=True)
    made_at = round(time.time() * 1000)
    once = {"id": "a1b2c3d4", "cron": "30 9 24 12 *", "prompt": "Wish them well", "createdAt": made_at}
    daily = {"id": "e5f6a7b8", "cron": "7 9 * * *", "prompt": "Check the build", "createdAt": made_at}
    (project / "scheduled_tasks.json").write_text(json.dumps({"tasks": [once, {**daily, "recurring": True}]}, indent=2))
    entries = imported(cli, "claude", project.parent)
    assert made(entries) == {"a1b2c3d4", "e5f6a7b8"}
    schedule = entries["a1b2c3d4"]["definition"]["schedule"]
    assert schedule["type"] == "once" and schedule["at"].endswith("-12-24T08:30:00.000Z")
    (note,) = [text for text in entries["e5f6a7b8"]["notes"] if text.startswith("its end")]
    assert f"Claude Code removes it on {format_instant(made_at + 7 * DAY)}" in note
    run(cli, entries["a1b2c3d4"])
    run(cli, entries["e5f6a7b8"])
    said = [heard["stdin"].partition("] ")[2] for heard in machine.heard("claude")[1:]]
    assert said == ["Wish them well", "Check the build"]


def test_codex_automations(cli: Cli, machine: Machine) -> None:
    """With the zone of DTSTART; times are compared with dateutil elsewhere."""
    folder = machine.folder / "automations" / "triage"
    folder.mkdir(parents=True)
    (folder / "automation.toml").write_text(
        'version = 1\nid = "triage"\nkind = "cron"\nname = "Triage"\nprompt = "Triage new issues"\nstatus = "ACTIVE"\n'
        'rrule = "DTSTART;TZID=Asia/Shanghai:20260710T103500\\nRRULE:FREQ=DAILY"\n'
        'execution_environment = "local"\ncwds = ["/srv"]\ncreated_at = 1783650000000\nupdated_at = 1783650000000\n'
    )
    entries = imported(cli, "codex", folder.parent)
    assert made(entries) == {"triage"}
    schedule = entries["triage"]["definition"]["schedule"]
    assert (schedule["expression"], schedule["timezone"]) == ("35 10 * * *", "Asia/Shanghai")
    run(cli, entries["triage"])
    heard = only(machine, "codex")
    assert heard["argv"] == ["exec", "-"] and heard["stdin"].endswith("] Triage new issues")


def test_open_alice(cli: Cli, machine: Machine) -> None:
    """A job of its store: an event for the heartbeat, and a turn of its own."""
    folder = machine.folder / "OpenAlice" / "data" / "cron"
    folder.mkdir(parents=True)
    event = {
        "id": "a1", "name": "Water", "enabled": True, "schedule": {"kind": "cron", "cron": "0 9 * * *"},
        "payload": "Water the plants", "createdAtMs": 1795042808278, "state": {"nextRunAtMs": 1795057200000},
    }  # fmt: skip
    turn = {**event, "id": "a2", "name": "Tidy", "payload": "Tidy up", "sessionTarget": "isolated"}
    (folder / "jobs.json").write_text(json.dumps({"jobs": [event, turn]}, indent=2))
    entries = imported(cli, "openalice", folder.parent.parent)
    assert made(entries) == {"water", "tidy"}, list(entries)
    run(cli, entries["tidy"])
    assert any(heard["stdin"].endswith("] Tidy up") for heard in machine.heard("model"))
    run(cli, entries["water"])
    assert cli.ask("wake").code == 0
    Cli.until(lambda: any("Water the plants" in heard["stdin"] for heard in machine.heard("model")))


def test_caco_folders(cli: Cli, machine: Machine) -> None:
    """A definition as it is, with its last run."""
    folder = machine.folder / ".caco" / "schedule" / "standup"
    folder.mkdir(parents=True)
    definition = {
        "slug": "standup", "prompt": "Summarise yesterday", "enabled": True,
        "schedule": {"type": "cron", "expression": "0 9 * * 1-5"}, "sessionConfig": {"persistSession": False},
        "createdAt": "2026-01-28T10:00:00.000Z", "updatedAt": "2026-01-28T10:00:00.000Z",
    }  # fmt: skip
    (folder / "definition.json").write_text(json.dumps(definition, indent=2))
    last = {"lastRun": "2026-01-29T09:00:15.123Z", "lastResult": "success", "nextRun": "2026-01-30T09:00:00.000Z"}
    (folder / "last-run.json").write_text(json.dumps(last, indent=2))
    entries = imported(cli, "caco", machine.folder / ".caco")
    assert made(entries) == {"standup"}, list(entries)
    before = len(machine.heard("model"))
    run(cli, entries["standup"])
    assert any(heard["stdin"].endswith("] Summarise yesterday") for heard in machine.heard("model")[before:])


@contextmanager
def provider(heard: Path) -> Iterator[str]:
    """The stand-in for a GLM provider, ended by its process id."""
    argv = [sys.executable, str(Path(__file__).parent / "glm_stand_in.py"), str(heard)]
    child = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout is not None
        yield f"http://127.0.0.1:{child.stdout.readline().strip()}"
    finally:
        child.terminate()
        child.communicate()


def test_glm_tray_version_3(cli: Cli, machine: Machine) -> None:
    """In the folder where the program keeps its settings. The key goes to the address of the slot, and its wake modes
    and the limits of the program come along."""
    heard = machine.folder / "requests"
    with provider(heard) as address:
        quota, wake = f"{address}/api/monitor/usage/quota/limit", f"{address}/api/coding/paas/v4/chat/completions"
        slot = {
            "slot": 1, "name": "Work", "enabled": True, "api_key": "big-model-key", "quota_url": quota,
            "request_url": None, "schedule_interval_enabled": True, "schedule_times_enabled": True,
            "schedule_after_reset_enabled": True, "schedule_interval_minutes": 90, "schedule_times": ["09:00", "14:30"],
            "schedule_after_reset_minutes": 2, "poll_interval_minutes": 45, "logging": False,
        }  # fmt: skip
        other = {**slot, "slot": 2, "api_key": "other-key"}
        empty = {**slot, "slot": 3, "name": "", "enabled": False, "api_key": ""}
        settings = {
            "slots": [slot, other, empty], "theme": "glm", "config_version": 3, "global_quota_url": quota,
            "global_request_url": wake, "log_directory": None, "max_log_days": 7, "debug": False, "mock_url": None,
            "wake_quota_retry_window_minutes": 20, "max_consecutive_errors": 7, "quota_poll_backoff_cap_minutes": 240,
        }  # fmt: skip
        folder = machine.folder / ".config" / "com.kiwina.glm-tray"
        folder.mkdir(parents=True)
        (folder / "settings.json").write_text(json.dumps(settings, indent=2))
        done = cli.ask("-o", "json", "import", "glm-tray", "--apply").json
        assert [(entry["slug"], entry["action"]) for entry in done["entries"]] == [
            ("work", "create"),
            ("work-2", "create"),
            (None, "refused"),
        ]
        assert done["entries"][0]["notCarried"] == []
        cli.ask("slots", "wake", "work")  # unless it is already being woken, because its window is cold

        def requests() -> list[dict[str, str]]:
            return [json.loads(line) for line in heard.read_text().splitlines()] if heard.exists() else []

        def keys() -> set[str]:
            return {request["key"] for request in requests()}

        Cli.until(lambda: any(request["method"] == "POST" for request in requests()) and len(keys()) == 2)
        assert keys() == {"Bearer big-model-key", "Bearer other-key"}
        assert {request["path"] for request in requests() if request["method"] == "POST"} == {
            wake.removeprefix(address)
        }
        assert quota.removeprefix(address) in {request["path"] for request in requests()}
        shown = next(one for one in cli.ask("-o", "json", "slots").json["slots"] if one["name"] == "work")
        definition = shown.get("definition", shown)
        carried = {
            "interval": "1h30m", "times": ["09:00", "14:30"], "afterReset": "2m", "poll": "45m", "retryWindow": "20m",
            "errorsMax": 7, "backoffCap": "4h", "baseUrl": address,
        }  # fmt: skip
        assert {name: definition.get(name) for name in carried} == carried
        (folder / "settings.json").write_text(
            json.dumps({**settings, "slots": [{**slot, "api_key": "new-key"}, other]})
        )
        assert "1 updated, 1 unchanged" in cli.ask("import", "glm-tray", "--apply").out
        cli.ask("slots", "poll", "work")
        Cli.until(lambda: "Bearer new-key" in keys())
        for name in ("work", "work-2"):
            assert cli.ask("slots", "rm", name).code == 0
