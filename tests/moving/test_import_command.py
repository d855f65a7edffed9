"""`wakeful import` over a running daemon."""

import json
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from edges.cli.kit import Cli, daemon
from moving.kit import CORPUS

SETTINGS = """
[agents.default]
adapter = "echo"

[agents.coder]
adapter = "echo"
"""


@pytest.fixture(scope="module")
def cli(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cli]:
    home = tmp_path_factory.mktemp("home") / "wakeful"
    home.mkdir(mode=0o700)
    (home / "wakeful.toml").write_text(SETTINGS)
    (home / "wakeful.toml").chmod(0o600)
    with daemon(home) as started:
        yield started


def test_a_crontab_is_shown_then_written_then_unchanged(cli: Cli, tmp_path: Path) -> None:
    """The plan in words, with the times on both sides; exit code 1 if everything is refused."""
    table = tmp_path / "table"
    table.write_text("API_TOKEN=do-not-print\n30 7 * * 1-5 echo report\n@reboot echo never\n")
    shown = cli.ask("import", "crontab", str(table))
    assert "every weekday at 07:30" in shown.out and "do-not-print" not in shown.out + shown.err
    assert "next there:" in shown.out and "next here :" in shown.out and "1 create, 1 refused" in shown.out
    assert cli.ask("show", "echo").code == 1
    assert "1 created, 1 refused" in cli.ask("import", "crontab", str(table), "--apply").out
    assert cli.ask("-o", "json", "show", "echo").json["command"]["argv"] == ["sh", "-c", "echo report"]
    again = cli.ask("-o", "json", "import", "crontab", str(table), "--apply").json
    assert [entry["action"] for entry in again["entries"]] == ["unchanged", "refused"]
    table.write_text("@reboot echo never\n")
    assert cli.ask("import", "crontab", str(table)).code == 1


def test_openclaw_through_the_daemon(cli: Cli) -> None:
    """Twice changes nothing; what is off there is paused here; what was missed there is in the ledger."""
    done = cli.ask("-o", "json", "import", "openclaw", str(CORPUS / "openclaw-jobs.json"), "--apply").json
    actions = {entry["slug"] or entry["source"]: entry["action"] for entry in done["entries"]}
    assert list(actions.values()).count("create") >= 30
    assert cli.ask("-o", "json", "show", "switched-off").json["status"] == "paused"
    assert cli.ask("-o", "json", "show", "with-everything").json["agent"] == "coder"
    runs = cli.ask("-o", "json", "runs", "with-everything").json["runs"]
    assert all((run["outcome"], run["reason"]) == ("missed", "before import") for run in runs)
    again = cli.ask("-o", "json", "import", "openclaw", str(CORPUS / "openclaw-jobs.json"), "--apply").json
    assert not {entry["action"] for entry in again["entries"]} & {"create", "update"}
    assert cli.ask("import", "crontab", "--adopt").code == 2


def test_keys_of_glm_tray_go_into_a_private_file(cli: Cli, tmp_path: Path) -> None:
    """And are shown nowhere."""
    slots = [{"slot": 1, "name": "glm", "api_key": "glm-secret-9", "enabled": False, "poll_interval_minutes": 30}]
    (tmp_path / "settings.json").write_text(json.dumps({"slots": slots}))
    shown = cli.ask("import", "glm-tray", str(tmp_path), "--apply")
    assert shown.code == 0 and "glm-secret" not in shown.out + shown.err
    file = cli.home / "imported" / "glm.key"
    assert file.read_text() == "glm-secret-9\n" and stat.S_IMODE(file.stat().st_mode) == 0o600
    assert cli.ask("-o", "json", "slots").json["slots"][0]["name"] == "glm"
    again = cli.ask("-o", "json", "import", "glm-tray", str(tmp_path), "--apply").json
    assert [entry["action"] for entry in again["entries"]] == ["unchanged"]


def test_hostile_sources_write_nothing(cli: Cli, tmp_path: Path) -> None:
    """They are refused with file and line."""
    before = cli.ask("-o", "json", "ls").json
    bomb = tmp_path / "bomb.yaml"
    bomb.write_text("a: &a [x,x]\nb: &b [*a,*a]\n")
    said = cli.ask("import", "kubernetes", str(bomb), "--apply")
    assert said.code == 2 and "bomb.yaml, line 2" in said.err
    (tmp_path / "jobs.json").write_text("[" * 1_000_000)
    assert cli.ask("import", "openclaw", str(tmp_path / "jobs.json"), "--apply").code == 2
    (tmp_path / "table").write_text("x" * 10_000_000)
    assert "larger than" in cli.ask("import", "crontab", str(tmp_path / "table"), "--apply").err
    assert [one["slug"] for one in cli.ask("-o", "json", "ls").json["schedules"]] == [
        one["slug"] for one in before["schedules"]
    ]
