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

[channels.telegram]
type = "inbox"
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


def test_slots_of_one_name_keep_their_own_keys(cli: Cli, tmp_path: Path) -> None:
    """Also those of another file, whose slot gets a number; a key that was changed there is changed here."""
    settings = tmp_path / "one" / "settings.json", tmp_path / "two" / "settings.json"
    off = {"name": "Work", "enabled": False}
    keys = {
        settings[0]: [{**off, "slot": 1, "api_key": "key-1"}, {**off, "slot": 2, "api_key": "key-2"}],
        settings[1]: [{**off, "slot": 1, "api_key": "key-3"}],
    }
    for path, slots in keys.items():
        path.parent.mkdir()
        path.write_text(json.dumps({"slots": slots}))
        assert cli.ask("import", "glm-tray", str(path), "--apply").code == 0
    files = [cli.home / "imported" / f"{slug}.key" for slug in ("work", "work-2", "work-3")]
    assert [file.read_text() for file in files] == ["key-1\n", "key-2\n", "key-3\n"]
    settings[0].write_text(json.dumps({"slots": [{**off, "slot": 1, "api_key": "key-4"}, keys[settings[0]][1]]}))
    again = cli.ask("-o", "json", "import", "glm-tray", str(settings[0]), "--apply").json
    assert [entry["action"] for entry in again["entries"]] == ["update", "unchanged"]
    assert [file.read_text() for file in files] == ["key-4\n", "key-2\n", "key-3\n"]
    for file in files:
        assert cli.ask("slots", "rm", file.stem).code == 0


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


def test_what_the_store_would_refuse_is_refused_alone(cli: Cli, tmp_path: Path) -> None:
    """A definition of Caco's that ended, and one that waits for a slot that does not exist."""
    usual = {"command": {"argv": ["true"]}, "schedule": {"type": "cron", "expression": "0 9 * * *"}}
    more = {"ended": {"expiresAt": "2020-01-01T00:00:00Z"}, "slotted": {"slot": "nowhere"}, "well": {}}
    for slug, fields in more.items():
        folder = tmp_path / "schedule" / slug
        folder.mkdir(parents=True)
        (folder / "definition.json").write_text(json.dumps({"slug": slug, **usual, **fields}))
    done = cli.ask("-o", "json", "import", "caco", str(tmp_path), "--apply").json
    told = {entry["slug"]: (entry["action"], entry["reason"]) for entry in done["entries"]}
    assert told["well"] == ("create", None) and cli.ask("show", "well").code == 0
    assert told["ended"][0] == "refused" and "expiresAt" in told["ended"][1]
    assert told["slotted"][0] == "refused" and "there is no slot 'nowhere'" in told["slotted"][1]


def test_more_slots_than_the_settings_allow_are_refused_alone(cli: Cli, tmp_path: Path) -> None:
    """quota.slots_max is 4; leaving others out makes room."""
    slots = [{"slot": number, "name": f"many{number}", "enabled": False, "api_key": "k"} for number in range(1, 6)]
    (tmp_path / "settings.json").write_text(json.dumps({"slots": slots}))
    there = len(cli.ask("-o", "json", "slots").json["slots"])
    plan = cli.ask("-o", "json", "import", "glm-tray", str(tmp_path)).json["entries"]
    actions = [entry["action"] for entry in plan]
    assert actions == ["create"] * (4 - there) + ["refused"] * (there + 1)
    assert "quota.slots_max is 4" in plan[-1]["reason"]
    last = cli.ask("-o", "json", "import", "glm-tray", str(tmp_path), "--apply", "--only", "many5").json["entries"]
    assert [entry["action"] for entry in last] == ["create"]
    assert cli.ask("slots", "rm", "many5").code == 0
