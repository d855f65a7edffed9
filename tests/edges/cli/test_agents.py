"""`wakeful agents`, and what `init`, `up`, `check` and `doctor` say about agents."""

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from agents import replay
from edges.cli.kit import WITHIN, Cli, daemon

SETTINGS = """\
[agents.clerk]
adapter = "command"
argv = ["sh", "-c", "echo \\"I was asked: $(cat)\\""]

[agents.broken]
adapter = "command"
argv = ["sh", "-c", "echo it hurts >&2; exit 3"]

[agents.absent]
adapter = "command"
argv = ["no-such-agent"]
"""


@pytest.fixture(scope="module")
def cli(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cli]:
    home = tmp_path_factory.mktemp("home") / "wakeful"
    home.mkdir(mode=0o700)
    careful = replay.install(home.parent / "careful", "claude", "refused-tool")
    (home / "wakeful.toml").write_text(
        f'{SETTINGS}\n[agents.careful]\nadapter = "claude"\nprogram = "{careful.path}"\n'
    )
    with daemon(home) as started:
        yield started


def install(folder: Path, *names: str) -> str:
    """A PATH with these programs and nothing else."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_text("#!/bin/sh\necho 1.2.3\n")
        (folder / name).chmod(0o700)
    return str(folder)


def test_a_test_prints_each_rung_and_the_reply(cli: Cli) -> None:
    said = cli.run("agents", "test", "clerk", "--prompt", "Are you there?")
    assert said.code == 0, said.err
    rungs = [line.split()[0] for line in said.out.splitlines() if line.startswith("  ")]
    assert rungs == ["claimed", "sent", "started", "finished"]
    assert "clerk succeeded" in said.out
    assert "I was asked: [scheduler:agent-test.clerk] Are you there?" in said.out


def test_a_test_that_fails_says_why_and_exits_1(cli: Cli) -> None:
    said = cli.ask("agents", "test", "broken")
    assert said.code == 1
    assert "broken failed" in said.out
    assert "it hurts" in said.err
    assert "finished" not in said.out


def test_a_test_as_json_is_the_run(cli: Cli) -> None:
    run = cli.ask("agents", "test", "clerk", "-o", "json").json
    assert (run["outcome"], run["trigger"], run["slug"]) == ("succeeded", "manual", "agent-test.clerk")


def test_tools_that_were_refused_are_reported_with_the_run(cli: Cli) -> None:
    """In JSON, in the list of runs, in the log, and with the cure at the end of `run --wait`."""
    assert cli.ask("add", "careful", "--manual", "--prompt", "Make a file", "--agent", "careful").code == 0
    said = cli.ask("run", "careful", "--wait")
    assert said.code == 0 and "refused these tools for lack of permission: Bash; set permissions" in said.out
    (run,) = cli.ask("runs", "careful", "-o", "json").json["runs"]
    assert (run["outcome"], run["refusedTools"]) == ("succeeded", ["Bash"])
    assert "tools refused: Bash" in cli.ask("runs", "careful", COLUMNS="160").out
    assert "tools refused: Bash" in cli.ask("log", "careful").out
    assert cli.ask("rm", "careful").code == 0


def test_a_test_leaves_no_schedule_behind(cli: Cli) -> None:
    run = cli.ask("agents", "test", "clerk", "-o", "json").json
    cli.until(lambda: cli.ask("ls", "-o", "json").json["schedules"] == [])
    assert run["runId"] in [one["runId"] for one in cli.ask("runs", "-o", "json").json["runs"]]


def test_a_missing_program_cannot_be_tested(cli: Cli) -> None:
    said = cli.ask("agents", "test", "absent")
    assert said.code == 1
    assert "'no-such-agent' was not found on the PATH (" in said.err


def test_an_unknown_agent_is_named(cli: Cli) -> None:
    said = cli.ask("agents", "test", "nobody")
    assert said.code == 1
    assert "there is no agent 'nobody'" in said.err
    said = cli.ask("agents", "nobody")
    assert (said.code, "absent, broken, careful, clerk, default" in said.err) == (1, True)


@pytest.mark.parametrize("words", [("test",), ("clerk", "more"), ("clerk", "--prompt", "x")])
def test_misuse_is_refused(cli: Cli, words: tuple[str, ...]) -> None:
    assert cli.ask("agents", *words).code == 2


def test_the_list_shows_program_and_last_turn(cli: Cli) -> None:
    cli.ask("agents", "test", "clerk")
    listed = {one["name"]: one for one in cli.ask("agents", "-o", "json").json["agents"]}
    assert set(listed) == {"absent", "broken", "careful", "clerk", "default"}
    clerk = listed["clerk"]
    assert (clerk["adapter"], clerk["found"], clerk["proves"]) == ("command", True, "finished")
    assert clerk["program"].endswith("/sh")
    assert (clerk["lastTurn"]["outcome"], clerk["lastTurn"]["slug"]) == ("succeeded", "agent-test.clerk")
    assert (listed["absent"]["found"], listed["absent"]["program"]) == (False, "no-such-agent")
    assert "was not found on the PATH (" in listed["absent"]["problem"]
    text = cli.ask("agents", COLUMNS="200").out
    assert "no-such-agent (not found)" in text
    shown = cli.ask("agents", "clerk").out
    assert "succeeded" in shown
    assert "agent-test.clerk" in shown


def test_a_program_that_is_slow_to_tell_its_version_does_not_hold_up_the_list(cli: Cli, tmp_path: Path) -> None:
    told = tmp_path / "told"
    program = tmp_path / "slow-agent"
    program.write_text(f"#!/bin/sh\nwhile ! test -e {told}; do sleep 0.1; done\necho 4.5.6\n")
    program.chmod(0o700)
    settings = cli.home / "wakeful.toml"
    settings.write_text(SETTINGS + f'\n[agents.slow]\nadapter = "command"\nargv = ["{program}"]\n')
    cli.until(lambda: "slow" in cli.ask("agents").out)
    assert cli.ask("agents", "slow", "-o", "json").json["version"] is None
    told.touch()
    cli.until(lambda: cli.ask("agents", "slow", "-o", "json").json["version"] == "4.5.6")
    settings.write_text(SETTINGS)


def test_sessions_are_counted(cli: Cli) -> None:
    program = ["sh", "-c", 'cat >/dev/null; echo \'{"reply": "well", "id": "s-1"}\'']
    settings = cli.home / "wakeful.toml"
    keeps = f'\n[agents.keeper]\nadapter = "command"\nargv = {json.dumps(program)}\nreply_key = "reply"\n'
    settings.write_text(SETTINGS + keeps + 'session_key = "id"\nresume_argv = ["true", "{session}"]\n')
    cli.until(lambda: "keeper" in cli.ask("agents").out)
    cli.ask("add", "kept", "--manual", "--prompt", "hello", "--agent", "keeper")
    assert cli.ask("run", "kept", "--wait").code == 0
    keeper = cli.ask("agents", "keeper", "-o", "json").json
    assert (keeper["sessions"], keeper["lastTurn"]["slug"]) == (1, "kept")
    cli.ask("rm", "kept")
    settings.write_text(SETTINGS)


def test_doctor_and_check_name_a_missing_program(cli: Cli, alone: Cli) -> None:
    said = cli.ask("doctor")
    assert said.code == 1
    assert "absent: the program 'no-such-agent' was not found on the PATH (" in " ".join(said.out.split())
    alone.home.mkdir(mode=0o700)
    file = alone.home / "wakeful.toml"
    file.write_text(SETTINGS)
    said = alone.ask("check", str(file))
    assert said.code == 0
    assert "agents.absent.argv: the program 'no-such-agent' was not found" in said.err
    findings = alone.ask("doctor", "-o", "json").json["findings"]
    assert [one["state"] for one in findings if one["what"] == "agents"] == ["wrong"]


def test_init_without_any_agent_says_where_it_looked(alone: Cli, tmp_path: Path) -> None:
    search = install(tmp_path / "bin")
    said = alone.ask("init", PATH=search)
    assert said.code == 0
    assert f"no agent was found on the PATH ({search})" in said.err
    assert "agents" not in tomllib.loads((alone.home / "wakeful.toml").read_text())


def test_the_command_agent_of_init_works_as_it_is_written(alone: Cli, tmp_path: Path) -> None:
    alone.ask("init", PATH=install(tmp_path / "bin"))
    file = alone.home / "wakeful.toml"
    before, _, after = file.read_text().partition("# [agents.script]\n")
    example, _, rest = after.partition("\n\n")
    file.write_text(f"{before}[agents.clerk]\n" + example.replace("# ", "") + f"\n\n{rest}")
    assert alone.ask("check", str(file)).code == 0
    with daemon(alone.home) as running:
        said = running.ask("agents", "test", "clerk", "--prompt", "Who is it?")
        assert said.code == 0, said.err
        assert "I was asked: [scheduler:agent-test.clerk] Who is it?" in said.out


@pytest.mark.parametrize(
    ("settings", "is_told"),
    [("", True), ('[agents.default]\nadapter = "echo"\n', True), (SETTINGS.replace("clerk", "default"), False)],
)
def test_the_first_start_says_that_no_agent_is_configured(alone: Cli, settings: str, is_told: bool) -> None:
    alone.home.mkdir(mode=0o700)
    (alone.home / "wakeful.toml").write_text(settings)
    child = alone.start("up", "--port", "0")
    try:
        alone.until(lambda: alone.ask("status").code != 3)
        assert alone.run("down").code == 0
        _, err = child.communicate(timeout=WITHIN)
    finally:
        child.kill()
        child.wait()
    assert ("No agent is configured" in err) is is_told
    assert ("wakeful init" in err) is is_told
