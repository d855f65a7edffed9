"""`wakeful agents connect`: the entry in each program's own settings, beside what is there."""

import json
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from wakeful.cli.main import root

FILES = {
    "claude": ".claude.json",
    "codex": ".codex/config.toml",
    "gemini": ".gemini/settings.json",
    "opencode": ".config/opencode/opencode.json",
}


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    home = tmp_path / ".wakeful"
    home.mkdir()
    (home / "wakeful.toml").write_text('[agents.coder]\nadapter = "codex"\n[agents.plain]\nadapter = "echo"\n')
    return tmp_path


def wakeful(user: Path, *words: str) -> Result:
    return CliRunner().invoke(root, ["--home", str(user / ".wakeful"), "agents", "connect", *words])


def command_of(user: Path, name: str) -> list[str]:
    text = (user / FILES[name]).read_text()
    if name == "codex":
        entry = tomllib.loads(text)["mcp_servers"]["wakeful"]
    else:
        entry = json.loads(text)["mcp" if name == "opencode" else "mcpServers"]["wakeful"]
    return list(entry["command"]) if name == "opencode" else [entry["command"], *entry["args"]]


@pytest.mark.parametrize("name", FILES)
def test_the_entry_is_written_beside_what_is_there_and_once(user: Path, name: str) -> None:
    file = user / FILES[name]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text('model = "x"\n[mcp_servers.other]\ncommand = "y"\n' if name == "codex" else '{"theme": "dark"}')
    file.chmod(0o640)
    said = wakeful(user, name)
    assert said.exit_code == 0, said.output
    argv = command_of(user, name)
    assert Path(argv[0]).exists()
    agent = "coder" if name == "codex" else "default"
    assert argv[-5:] == ["--home", str(user / ".wakeful"), "mcp", "--agent", agent]
    kept = file.read_text()
    assert ('model = "x"' in kept and "[mcp_servers.other]" in kept) if name == "codex" else "dark" in kept
    assert file.stat().st_mode & 0o777 == 0o640
    again = wakeful(user, name)
    assert (again.exit_code, file.read_text()) == (0, kept)
    assert "could already use" in again.output
    assert wakeful(user, name, "--as", "helper").exit_code == 0
    assert command_of(user, name)[-1] == "helper"
    assert file.read_text().count("mcp_servers.wakeful" if name == "codex" else '"wakeful"') == 1


def test_an_agents_name_stands_for_its_program(user: Path) -> None:
    assert wakeful(user, "coder").exit_code == 0
    assert command_of(user, "codex")[-1] == "coder"
    refused = wakeful(user, "plain")
    assert refused.exit_code == 1 and "runs with the adapter echo" in refused.output
    assert "there is no agent 'nobody'" in wakeful(user, "nobody").output


def test_print_changes_nothing_and_an_unreadable_file_is_left_alone(user: Path) -> None:
    printed = wakeful(user, "gemini", "--print")
    assert printed.exit_code == 0 and '"mcpServers"' in printed.output
    assert not (user / FILES["gemini"]).exists()
    (user / FILES["claude"]).write_text("{ // a comment")
    refused = wakeful(user, "claude")
    assert refused.exit_code == 1 and "nothing was changed" in refused.output
    assert (user / FILES["claude"]).read_text() == "{ // a comment"
