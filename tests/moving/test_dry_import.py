"""A dry run without a daemon: the same plan, from the settings and the store of the home, and nothing is changed."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import wakeful
from edges.cli.kit import Cli, daemon
from moving.kit import CORPUS
from moving.stand_ins import Machine
from moving.test_each_source_runs import SETTINGS
from wakeful.cli.errors import NO_DAEMON
from wakeful.cli.importing import KINDS as NAMES
from wakeful.integrations.imports.catalogue import KINDS

TABLE = "30 2 * * 1-5 backup-photos\n0 9 * * * no-such-program\n@reboot backup-photos\n"


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    machine = Machine(tmp_path).install("backup-photos", "model", "hermes-agent")
    (tmp_path / "table").write_text(TABLE)
    scripts = tmp_path / ".hermes" / "scripts"
    scripts.mkdir(parents=True)
    (tmp_path / ".hermes" / "cron").mkdir()
    shutil.copy(CORPUS / "hermes-0.19.0-jobs.json", tmp_path / ".hermes" / "cron" / "jobs.json")
    (scripts / "disk.sh").write_text("df -h\n")
    return machine


@pytest.fixture
def cli(machine: Machine) -> Cli:
    home = machine.folder / "home"
    home.mkdir(mode=0o700)
    (home / "wakeful.toml").write_text(SETTINGS)
    (home / "wakeful.toml").chmod(0o600)
    return Cli(home)


def test_the_command_and_the_page_know_each_kind() -> None:
    """Each has a list of its own: neither may load the readers."""
    page = Path(wakeful.__file__).parent / "server" / "page" / "static" / "views" / "import.js"
    offered = re.findall(r'^  \["([a-z0-9-]+)", "', page.read_text(encoding="utf-8"), re.M)
    assert sorted(NAMES) == sorted(KINDS) and len(set(NAMES)) == len(NAMES)
    assert {*offered, "claude-code"} == set(KINDS)  # on the page, that is Claude


def files_of(home: Path) -> dict[str, bytes]:
    return {str(file): file.read_bytes() for file in sorted(home.rglob("*")) if file.is_file()}


def plans(cli: Cli, machine: Machine, **environ: str) -> Iterator[dict[str, Any]]:
    for kind, path in (("crontab", machine.folder / "table"), ("hermes", machine.folder / ".hermes")):
        said = cli.ask("-o", "json", "import", kind, str(path), **environ)
        assert said.out, said.err
        yield said.json


def test_the_plan_is_the_daemons(cli: Cli, machine: Machine) -> None:
    """Agents, channels and programs are checked in both; the home is left as it was, and so is one that does not
    exist."""
    before = files_of(cli.home)
    dry = list(plans(cli, machine, **machine.environ))
    assert files_of(cli.home) == before
    with daemon(cli.home, environ=machine.environ):
        assert list(plans(cli, machine)) == dry
    actions = [[entry["action"] for entry in plan["entries"]] for plan in dry]
    assert actions == [["create", "refused", "refused"], ["create", "refused", "refused", "create"]]
    missing = dry[0]["entries"][1]
    assert "no-such-program" in missing["reason"] and len(missing["next"]) == len(missing["sourceNext"]) == 3
    other = Cli(cli.home.with_name("other"))
    said = other.ask("import", "crontab", str(machine.folder / "table"), **machine.environ)
    assert "1 create, 2 refused" in said.out and "no daemon is running" in said.err
    assert not other.home.exists()


def test_what_was_imported_before_is_known(cli: Cli, machine: Machine) -> None:
    """From the store of the daemon that has stopped: unchanged, updated, and slugs that are taken."""
    table = machine.folder / "table"
    with daemon(cli.home, environ=machine.environ):
        assert "1 created" in cli.ask("import", "crontab", str(table), "--apply").out
    assert "1 unchanged" in cli.ask("import", "crontab", str(table), **machine.environ).out
    table.write_text(TABLE.replace("30 2", "45 2"))
    assert "1 update" in cli.ask("import", "crontab", str(table), **machine.environ).out
    again = table.with_name("again")
    again.write_text(TABLE)
    assert "create  backup-photos-2" in cli.ask("import", "crontab", str(again), **machine.environ).out


JOBS = """{"jobs": [
  {"id": "a", "name": "often", "prompt": "Look", "schedule": {"kind": "interval", "minutes": 20}},
  {"id": "b", "name": "oftener", "prompt": "Look", "schedule": {"kind": "cron", "expr": "*/10 * * * *"}},
  {"id": "c", "name": "daily", "prompt": "Look", "schedule": {"kind": "cron", "expr": "0 9 * * *"}}
]}"""


def test_a_limit_that_refuses_entries_is_named_once_and_can_be_lowered(cli: Cli, machine: Machine) -> None:
    """The value that all entries need; a plan with it changes nothing, and --apply writes it into the settings."""
    jobs = str(machine.folder / "jobs.json")
    Path(jobs).write_text(JOBS)
    settings = cli.home / "wakeful.toml"
    before = settings.read_text()
    offer = "2 entries run more often than limits.agent_interval_min allows: add --agent-interval-min 10m to lower it"
    with daemon(cli.home, environ=machine.environ):
        said = cli.ask("-o", "json", "import", "hermes", jobs)
        assert said.json["limits"] == [{"setting": "limits.agent_interval_min", "refused": 2, "needed": "10m"}]
        assert said.json["entries"][0]["next"] and said.json["entries"][0]["sourceNext"]  # shown although refused
        assert offer in cli.ask("import", "hermes", jobs).out.replace("\n", " ")
        said = cli.ask("import", "hermes", jobs, "--agent-interval-min", "10m", **machine.environ)
        assert "3 create" in said.out and settings.read_text() == before
        said = cli.ask("import", "hermes", jobs, "--agent-interval-min", "10m", "--apply")
        assert "3 created" in said.out and "limits.agent_interval_min is 10m now" in said.err
    assert settings.read_text().startswith(before) and 'agent_interval_min = "10m"' in settings.read_text()
    said = cli.ask("import", "hermes", jobs, "--agent-interval-min", "soon")
    assert said.code == 2 and "--agent-interval-min" in said.err


def test_lines_of_a_timer_that_are_one_schedule_now_do_not_run_twice(cli: Cli, machine: Machine) -> None:
    """The schedules of the other lines have to be removed first; until then nothing is changed."""
    folder = machine.folder / "units"
    folder.mkdir()
    timer = folder / "a.timer"
    timer.write_text("[Timer]\nOnCalendar=Mon 9:00\nOnCalendar=Sat 11:00\n")
    (folder / "a.service").write_text(f"[Service]\nExecStart={machine.bin}/backup-photos\n")
    with daemon(cli.home, environ=machine.environ):
        assert "2 created" in cli.ask("import", "systemd", str(folder), "--apply").out
        timer.write_text("[Timer]\nOnCalendar=Mon 9:00\nOnCalendar=Sat 9:00\n")
        said = cli.ask("-o", "json", "import", "systemd", str(folder), "--apply").json["entries"]
        assert [entry["action"] for entry in said] == ["refused"] and "remove a-2 first" in said[0]["reason"]
        assert cli.ask("rm", "a-2").code == 0
        assert "1 updated" in cli.ask("import", "systemd", str(folder), "--apply").out
        assert "1 unchanged" in cli.ask("import", "systemd", str(folder), "--apply").out


def test_only_a_plan_needs_no_daemon(cli: Cli, machine: Machine) -> None:
    """Writing does; what is asked wrongly is a usage error, and settings that cannot be read are named."""
    table = str(machine.folder / "table")
    said = cli.ask("import", "crontab", table, "--apply")
    assert said.code == NO_DAEMON and "--apply needs one" in said.err
    assert cli.ask("import", "crontab", f"{table}-missing").code == 2
    said = cli.ask("import", "crontab", table, "--only", "zzz", **machine.environ)
    assert said.code == 2 and "there is no entry 'zzz'" in said.err
    refused = cli.ask("import", "crontab", table, "--disable-source", **machine.environ)
    assert "waiting" not in refused.out and "nothing was changed" in refused.err
    (cli.home / "wakeful.toml").write_text("[limits]\nconcurrency_max = 'x'\n")
    said = cli.ask("import", "crontab", table)
    assert said.code == 1 and "concurrency_max" in said.err
