"""Small things that the command line says."""

import json
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from edges.cli.kit import WITHIN, Cli, daemon
from wakeful.cli.template import settings_template
from wakeful.config.model import SETTINGS

RED = "\x1b[31m"


@pytest.fixture(scope="module")
def troubled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cli]:
    """A daemon with an agent and a one-shot that failed."""
    home = tmp_path_factory.mktemp("home") / "wakeful"
    home.mkdir()
    (home / "wakeful.toml").write_text('[agents.default]\nadapter = "echo"\n')
    with daemon(home) as cli:
        cli.ask("add", "broken", "--in", "1s", "--command", "false")
        give_up_at = time.monotonic() + WITHIN
        while cli.ask("show", "broken", "-o", "json").json["health"] != "failing":
            assert time.monotonic() < give_up_at
            time.sleep(0.1)
        yield cli


def test_ls_colours_what_is_failing(troubled: Cli) -> None:
    line = next(line for line in troubled.on_terminal("ls").splitlines() if line.startswith("broken"))
    assert f"{RED}failing" in line


def test_today_wraps_between_words(troubled: Cli) -> None:
    """On a terminal; what a pipe gets is not wrapped."""
    shown = troubled.on_terminal("today", columns=42)
    lines = [line for line in shown.splitlines() if line[:2] in ("✗ ", "  ")]
    assert len(lines) > 3
    assert all(len(line) <= 42 for line in lines)
    piped = troubled.run("today", COLUMNS="").out
    assert set(" ".join(lines).split()) <= set(piped.split())


def test_a_slug_that_does_not_exist_suggests_one_that_does(troubled: Cli) -> None:
    said = troubled.ask("show", "brokn")
    assert (said.code, said.err) == (1, "wakeful: there is no schedule 'brokn'\n  did you mean broken?\n")
    assert "did you mean broken?" in troubled.ask("run", "broke").err
    assert "did you mean" not in troubled.ask("show", "something-else").err


@pytest.mark.parametrize(
    ("typed", "meant"), [("delete", "rm"), ("remove", "rm"), ("schedules", "ls"), ("create", "add"), ("logs", "log")]
)
def test_commands_of_other_programs_suggest_ours(alone: Cli, typed: str, meant: str) -> None:
    assert f"there is no command '{typed}'; did you mean '{meant}'?" in alone.ask(typed).err


def test_a_run_that_was_skipped_says_why(troubled: Cli) -> None:
    check = '{"command": {"argv": ["true"]}}'
    troubled.ask("add", "quiet", "--manual", "--prompt", "look", "--set", f"check={check}")
    said = troubled.ask("run", "quiet", "--wait")
    assert said.code == 1
    assert said.out.startswith("quiet skipped (nothing to do), run ")


def test_one_run_is_not_runs(troubled: Cli) -> None:
    said = troubled.ask("add", "single", "--at", "2099-01-01T00:00:00Z", "--prompt", "look")
    assert "runs)" not in said.out
    said = troubled.ask("add", "soon", "--in", "20d", "--prompt", "look")
    assert "(1 run)" in said.out


def test_down_says_what_it_waits_for(alone: Cli) -> None:
    alone.home.mkdir(mode=0o700)
    (alone.home / "wakeful.toml").write_text('[limits]\nshutdown_grace = "1s"\n')
    child = alone.start("up", "--port", "0", "-o", "json")
    try:
        assert child.stdout is not None
        json.loads(child.stdout.readline())
        alone.ask("add", "long", "--manual", "--command", "sleep 600")
        run = alone.ask("-o", "json", "run", "long").json["runId"]
        Cli.until(lambda: alone.ask("-o", "json", "runs", "show", run).json["outcome"] == "running")
        said = alone.run("down")
        assert said.code == 0
        assert said.err == f"it waits for long (run {run}), for at most 1s (limits.shutdown_grace)\n"
    finally:
        child.kill()
        child.communicate()


def test_the_file_that_init_writes_accepts_what_is_appended() -> None:
    """A section from the documentation can stand at the end: none is open already."""
    text = settings_template()
    for section in SETTINGS:
        if section.name != "agents":
            tomllib.loads(f"{text}\n[{section.name}]\n")


def test_check_finds_a_python_agent_that_cannot_be_imported(alone: Cli, tmp_path: Path) -> None:
    alone.home.mkdir(mode=0o700)
    file = alone.home / "wakeful.toml"
    file.write_text('[agents.default]\nadapter = "call"\ntarget = "my_own_agent:answer"\n')
    said = alone.run("check", str(file))
    assert "there is no Python module 'my_own_agent'" in said.out + said.err
    assert "PYTHONPATH" in said.out + said.err
    (tmp_path / "my_own_agent.py").write_text("raise SystemExit('it is not imported')\n")
    found = alone.run("check", str(file), PYTHONPATH=str(tmp_path))
    assert "my_own_agent'" not in found.out + found.err
