"""Programs that the daemon starts do not inherit its secrets."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from edges.http.kit import daemon
from edges.http.test_access import over_socket
from wakeful.integrations.actions.environment import is_secret_variable

SECRETS = {
    "DOOR_PASS": "named-by-the-settings",
    "OPENAI_API_KEY": "by-its-name-key",
    "GH_TOKEN": "by-its-name-token",
    "CLIENT_SECRET": "by-its-name-secret",
    "DB_PASSWORD_FILE": "by-its-name-password",
    "AWS_CREDENTIALS_PATH": "by-its-name-credentials",
}
PLAIN = {"SSH_AUTH_SOCK": "/run/agent", "EDITOR": "vi", "MONKEY": "banana"}


@pytest.mark.parametrize("name", [*SECRETS][1:])
def test_a_variable_is_a_secret_by_its_name(name: str) -> None:
    """Tokens, keys, secrets, passwords, credentials."""
    assert is_secret_variable(name)


@pytest.mark.parametrize("name", ["SSH_AUTH_SOCK", "PATH", "HOME", "KEYBOARD", "MONKEY", "TOKENIZER"])
def test_other_variables_are_not(name: str) -> None:
    """Even if the settings name one of the three that programs cannot do without."""
    assert not is_secret_variable(name, frozenset({"PATH", "HOME", "SSH_AUTH_SOCK"}))


def test_no_program_shows_a_secret_of_the_daemon(tmp_path: Path) -> None:
    """Not in disguise either; what is listed in passEnv arrives; a failed run says what was withheld."""
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "wakeful.toml").write_text('[hooks.door]\ntoken = {env = "DOOR_PASS"}\n')

    def run(command: dict[str, Any]) -> dict[str, Any]:
        job = {"schedule": {"type": "manual"}, "command": command}
        assert over_socket(home / "wakeful.sock", "PUT", "/api/schedule/job", job)[0] in (200, 201)
        status, ended = over_socket(home / "wakeful.sock", "POST", "/api/schedule/job/run?wait=true")
        assert status == 200
        found: dict[str, Any] = ended
        return found

    with daemon(home, environ={**SECRETS, **PLAIN}):
        shown = json.dumps(run({"argv": ["sh", "-c", "env | sed s/e/E/g"]}))
        for value in SECRETS.values():
            assert value.replace("e", "E") not in shown, value
        for value in PLAIN.values():
            assert value.replace("e", "E") in shown, value
        passed = run({"argv": ["sh", "-c", "env | sed s/e/E/g"], "passEnv": ["GH_TOKEN"]})
        assert "by-its-namE-tokEn" in json.dumps(passed) and "by-its-namE-kEy" not in json.dumps(passed)
        failed = run({"argv": ["false"], "passEnv": ["GH_TOKEN"]})
        assert failed["outcome"] == "failed"
        assert "OPENAI_API_KEY" in failed["output"] and "passEnv" in failed["output"]
        assert "GH_TOKEN" not in failed["output"]
        status, refused = over_socket(
            home / "wakeful.sock",
            "PUT",
            "/api/schedule/bad",
            {"schedule": {"type": "manual"}, "command": {"argv": ["true"], "passEnv": ["A B"]}},
        )
        assert (status, refused["errors"][0]["field"]) == (400, "command.passEnv")


def test_an_agent_gets_the_keys_of_its_program_and_no_others(tmp_path: Path) -> None:
    """A preset lists those its program needs; the settings can list more."""
    home, programs = tmp_path / "home", tmp_path / "bin"
    home.mkdir(mode=0o700)
    programs.mkdir()
    claude = programs / "claude"
    # Stands in for the program: it prints its environment in place of a model's answer.
    claude.write_text(
        "#!/bin/sh\ncat >/dev/null\n"
        """printf '{"type":"result","subtype":"success","is_error":false,"session_id":"s","result":"%s"}\\n' """
        """"$ANTHROPIC_API_KEY $GH_TOKEN $OPENAI_API_KEY $DOOR_PASS" | sed s/e/E/g\n"""
    )
    claude.chmod(0o755)
    (home / "wakeful.toml").write_text(
        '[hooks.door]\ntoken = {env = "DOOR_PASS"}\n[agents.coder]\nadapter = "claude"\npass_env = ["GH_TOKEN"]\n'
    )
    given = {**SECRETS, "ANTHROPIC_API_KEY": "key-of-the-agent", "PATH": f"{programs}:{os.environ['PATH']}"}
    with daemon(home, environ=given):
        job = {"schedule": {"type": "manual"}, "prompt": "hello", "agent": "coder"}
        assert over_socket(home / "wakeful.sock", "PUT", "/api/schedule/ask", job)[0] == 201
        status, ended = over_socket(home / "wakeful.sock", "POST", "/api/schedule/ask/run?wait=true")
        said = json.dumps(ended).lower()
        assert (status, "key-of-the-agent" in said, "by-its-name-token" in said) == (200, True, True), ended
        assert "by-its-name-key" not in said and "named-by-the-settings" not in said
