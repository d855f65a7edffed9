"""`wakeful init` with agents installed."""

import tomllib
from pathlib import Path

from edges.cli.kit import Cli
from edges.cli.test_agents import SETTINGS, install


def test_init_writes_the_agents_it_finds(alone: Cli, tmp_path: Path) -> None:
    search = install(tmp_path / "bin", "codex", "claude", "unrelated")
    said = alone.ask("init", PATH=search)
    assert said.code == 0, said.err
    file = alone.home / "wakeful.toml"
    agents = tomllib.loads(file.read_text())["agents"]
    assert {name: one["adapter"] for name, one in agents.items()} == {"default": "claude", "codex": "codex"}
    assert f"default   claude, {search}/claude" in said.out
    assert alone.ask("check", str(file), PATH=search).code == 0
    assert "not found" not in alone.ask("check", str(file), PATH=search).err


def test_init_adds_agents_to_a_file_that_has_none(alone: Cli, tmp_path: Path) -> None:
    search = install(tmp_path / "bin", "gemini")
    alone.home.mkdir(mode=0o700)
    file = alone.home / "wakeful.toml"
    file.write_text("# mine\n[log]\ndays = 3")
    said = alone.ask("init", "-o", "json", PATH=search)
    assert said.json["created"] is False
    assert file.read_text().startswith("# mine\n[log]\ndays = 3\n")
    written = tomllib.loads(file.read_text())
    assert (written["log"], written["agents"]) == ({"days": 3}, {"default": {"adapter": "gemini"}})
    again = alone.ask("init", PATH=search)
    assert (again.code, "configures default" in again.err) == (1, True)
    assert tomllib.loads(file.read_text()) == written


def test_init_leaves_a_file_with_agents_as_it_is(alone: Cli, tmp_path: Path) -> None:
    search = install(tmp_path / "bin", "gemini")
    alone.home.mkdir(mode=0o700)
    file = alone.home / "wakeful.toml"
    for text in (SETTINGS, "[broken\n"):
        file.write_text(text)
        said = alone.ask("init", PATH=search)
        assert (said.code, file.read_text()) == (1, text)
