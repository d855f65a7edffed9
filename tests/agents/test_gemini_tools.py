"""Gemini CLI gets our MCP server through a folder of links; what is the person's stays the person's."""

import json
from pathlib import Path

import pytest

from wakeful.integrations.agents.presets.gemini_tools import VARIABLE, prepare
from wakeful.integrations.agents.presets.preset import Ask

OWN = {"theme": "dark", "mcpServers": {"git": {"command": "git-mcp"}, "wakeful": {"command": "wakeful"}}}


def ask(folder: Path, url: str | None = "http://127.0.0.1:1/mcp") -> Ask:
    return Ask("gemini", "hello", folder=str(folder / "agent"), tools_url=url)


def person(folder: Path) -> Path:
    own = folder / "home" / ".gemini"
    own.mkdir(parents=True)
    (own / "settings.json").write_text(json.dumps(OWN))
    (own / "oauth_creds.json").write_text("a login")
    return own


def test_our_server_is_in_a_copy_and_everything_else_is_the_persons_own(tmp_path: Path) -> None:
    own = person(tmp_path)
    (home,) = prepare(ask(tmp_path), {"HOME": str(tmp_path / "home")}).values()
    seen = Path(home) / ".gemini"
    settings = json.loads((seen / "settings.json").read_text())
    assert settings["theme"] == "dark" and settings["mcpServers"]["git"] == {"command": "git-mcp"}
    assert settings["mcpServers"]["wakeful"]["headers"] == {"Authorization": "Bearer ${WAKEFUL_RUN_TOKEN}"}
    assert (seen / "oauth_creds.json").read_text() == "a login"
    (seen / "tmp" / "session.json").write_text("a session")
    assert (own / "tmp" / "session.json").read_text() == "a session"
    assert json.loads((own / "settings.json").read_text()) == OWN


def test_files_that_the_program_replaced_or_made_go_back_to_the_person(tmp_path: Path) -> None:
    own, env = person(tmp_path), {"HOME": str(tmp_path / "home")}
    (home,) = prepare(ask(tmp_path), env).values()
    seen = Path(home) / ".gemini"
    (seen / "oauth_creds.json").unlink()
    (seen / "oauth_creds.json").write_text("a newer login")
    (seen / "projects.json").write_text("{}")
    (own / "installation_id").write_text("1")
    assert prepare(ask(tmp_path), env) == {VARIABLE: home}
    assert (own / "oauth_creds.json").read_text() == "a newer login" and not (own / "oauth_creds.json").is_symlink()
    assert (own / "projects.json").exists()
    assert all((seen / name).is_symlink() for name in ("oauth_creds.json", "projects.json", "installation_id"))
    (own / "installation_id").unlink()
    prepare(ask(tmp_path), env)
    assert not (seen / "installation_id").is_symlink()


def test_without_tools_nothing_is_made_and_settings_that_cannot_be_copied_are_refused(tmp_path: Path) -> None:
    own, env = person(tmp_path), {"HOME": str(tmp_path / "home")}
    assert prepare(ask(tmp_path, None), env) == {}
    assert not (tmp_path / "agent").exists()
    (own / "settings.json").write_text('{"theme": "dark"} // mine')
    with pytest.raises(OSError, match="not plain JSON"):
        prepare(ask(tmp_path), env)


def test_a_home_that_was_moved_is_followed(tmp_path: Path) -> None:
    own = tmp_path / "elsewhere" / ".gemini"
    own.mkdir(parents=True)
    (own / "google_accounts.json").write_text("ann")
    (home,) = prepare(ask(tmp_path), {"HOME": str(tmp_path), VARIABLE: str(tmp_path / "elsewhere")}).values()
    assert (Path(home) / ".gemini" / "google_accounts.json").read_text() == "ann"
