"""`check` says what is withheld from whom, and `doctor` says when everybody on the machine may come in."""

import os
from pathlib import Path

import pytest

from edges.cli.kit import Cli
from wakeful.integrations.actions.environment import is_secret_variable

SETTINGS = """
[hooks.door]
token = {env = "DOOR_PASS"}

[agents.default]
adapter = "claude"
pass_env = ["GH_TOKEN"]

[agents.own]
adapter = "command"
argv = ["cat"]

[agents.talk]
adapter = "openai"
url = "http://127.0.0.1:9/v1"
model = "some-model"
"""
SECRETS = ("ANTHROPIC_API_KEY", "DOOR_PASS", "GH_TOKEN", "OTHER_SECRET")


def test_check_lists_what_is_withheld_from_whom(alone: Cli) -> None:
    """From commands everything; a preset gets the keys of its program and what pass_env lists."""
    alone.home.mkdir(mode=0o700)
    file = alone.home / "wakeful.toml"
    file.write_text(SETTINGS)
    given = {name: f"value-of-{name}" for name in SECRETS}
    told = alone.ask("check", str(file), "-o", "json", **given).json["environment"]
    mine = [{**one, "withheld": [name for name in one["withheld"] if name in SECRETS]} for one in told]
    assert mine == [
        {"to": "commands", "withheld": [*SECRETS], "passed": []},
        {"to": "agent default", "withheld": ["DOOR_PASS", "OTHER_SECRET"], "passed": ["ANTHROPIC_API_KEY", "GH_TOKEN"]},
        {"to": "agent own", "withheld": [*SECRETS], "passed": []},
    ]
    said = alone.ask("check", str(file), COLUMNS="200", **given)
    assert "; passed ANTHROPIC_API_KEY, GH_TOKEN" in said.out
    assert "list them in passEnv of a command, or in pass_env of an agent" in said.out
    assert "value-of" not in said.out + said.err


def test_check_says_if_nothing_is_withheld(alone: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In an environment without anything that looks like a secret."""
    file = tmp_path / "wakeful.toml"
    file.write_text("")
    for name in list(os.environ):
        if is_secret_variable(name):
            monkeypatch.delenv(name)
    said = alone.ask("check", str(file))
    assert said.code == 0
    assert "none is withheld from programs" in said.out


def test_doctor_warns_of_a_daemon_that_asks_for_no_token(alone: Cli) -> None:
    """With the cure; it is a warning, because the settings ask for it."""
    alone.home.mkdir(mode=0o700)
    (alone.home / "wakeful.toml").write_text('[server]\nauth = "none"\n')
    found = [one for one in alone.ask("doctor", "-o", "json").json["findings"] if one["what"] == "access"]
    assert [one["state"] for one in found] == ["warning"]
    assert "every user of this machine can use the daemon" in found[0]["words"]
    assert "remove auth from [server]" in found[0]["cure"]
    (alone.home / "wakeful.toml").write_text("")
    assert "access" not in [one["what"] for one in alone.ask("doctor", "-o", "json").json["findings"]]
