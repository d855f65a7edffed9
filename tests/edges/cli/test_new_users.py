"""What new users try, over a real daemon: a removed schedule, a past run, a finished one-shot, the heartbeat."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from edges.cli.kit import Cli, daemon
from wakeful.cli.template import settings_template

HEARTBEAT = '[heartbeat]\nenabled = true\nevery = "1h"\n'


def uncommented(text: str, heading: str) -> str:
    """The lines of one commented table of the template, as a person uncomments them."""
    lines = text.splitlines()
    first = lines.index(f"# [{heading}]")
    table = []
    for line in lines[first:]:
        if not line.startswith("# "):
            break
        table.append(line.removeprefix("# "))
    return "\n".join(table) + "\n"


@pytest.fixture(scope="module")
def cli(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cli]:
    """A daemon with the command agent of the template, an agent that fails, and a heartbeat."""
    home = tmp_path_factory.mktemp("new") / "home"
    home.mkdir(mode=0o700)
    broken = '[agents.broken]\nadapter = "command"\nargv = ["sh", "-c", "echo no key >&2; exit 3"]\n'
    (home / "wakeful.toml").write_text(HEARTBEAT + broken + uncommented(settings_template(), "agents.script"))
    with daemon(home, environ={"SOME_API_KEY": "a-key-of-somebody"}) as one:
        yield one


def test_the_command_agent_of_the_template_takes_a_turn(cli: Cli) -> None:
    """Uncommented as it is."""
    said = cli.ask("add", "ask", "--manual", "--prompt", "What is new?", "--agent", "script")
    assert said.code == 0, said.err
    said = cli.ask("run", "ask", "--wait")
    assert said.code == 0, said.err
    assert re.search(r"I was asked: .*What is new\?", said.out, re.S)


def test_a_past_run_is_shown_in_full(cli: Cli) -> None:
    """Facts, then stdout and stderr; the error with what to do."""
    cli.ask("add", "noisy", "--manual", "--command", "sh -c 'seq 3; echo to stderr >&2; exit 4'")
    run_id = cli.ask("run", "noisy", "--wait", "-o", "json").json["runId"]
    said = cli.ask("runs", "show", run_id)
    assert said.code == 0, said.err
    facts, _, output = said.out.partition("--- output ---\n")
    assert "outcome: failed" in facts and "error: exited with 4: to stderr" in facts
    assert "cure: see the cause: wakeful why noisy; run it again: wakeful run noisy --wait" in " ".join(facts.split())
    assert "requested by: a person" in facts
    output, _, stderr = output.partition("--- stderr ---\n")
    assert output.split()[:3] == ["1", "2", "3"]
    assert "to stderr" not in output and stderr.startswith("to stderr\n")
    run = cli.ask("runs", "show", run_id, "-o", "json").json
    assert run["output"].startswith("1\n2\n3\n") and run["stderr"].startswith("to stderr")


def test_a_run_that_is_not_there(cli: Cli) -> None:
    """No such run is exit code 1; what is no id, and a missing id, are exit code 2."""
    assert cli.ask("runs", "show", "999999").code == 1
    said = cli.ask("runs", "show", "noisy")
    assert (said.code, "is not a run id" in said.err) == (2, True)
    assert cli.ask("runs", "show").code == 2
    assert cli.ask("runs", "one", "two").code == 2


def test_a_failed_turn_says_what_was_withheld(cli: Cli) -> None:
    """Names alone; the value is nowhere."""
    cli.ask("add", "fails", "--manual", "--prompt", "Hello", "--agent", "broken")
    run_id = cli.ask("run", "fails", "--wait", "-o", "json").json["runId"]
    said = cli.ask("runs", "show", run_id)
    assert "no key" in said.out
    words = " ".join(said.out.split())
    assert "SOME_API_KEY" in words and "list what it needs in pass_env of this agent" in words
    assert "a-key-of-somebody" not in said.out


def test_the_ledger_of_a_removed_schedule_is_still_read(cli: Cli) -> None:
    """`rm` leaves the ledger, and so `runs` and `log` find it by its slug; a slug that never was is refused."""
    cli.ask("add", "gone", "--manual", "--command", "echo bye")
    cli.ask("run", "gone", "--wait")
    assert cli.ask("rm", "gone").code == 0
    assert "succeeded" in cli.ask("runs", "gone").out
    assert "gone  succeeded" in cli.ask("log", "gone").out
    assert cli.ask("stats", "gone", "-o", "json").json["counts"] == {"succeeded": 1}
    assert cli.ask("runs", "never-was").code == 1


def test_one_shots_that_succeeded_are_hidden_unless_asked_for(cli: Cli) -> None:
    """How many there are is told beside the list; one that failed stays."""
    cli.ask("add", "shot", "--in", "5s", "--command", "true")
    cli.ask("add", "dud", "--in", "5s", "--command", "false", "--set", "retry.times=0")

    def status(slug: str) -> str:
        return str(cli.ask("show", slug, "-o", "json").json["status"])

    cli.until(lambda: status("shot") == "done" and status("dud") == "done")
    said = cli.ask("ls")
    assert "shot" not in said.out and "dud" in said.out
    assert "1 one-shot succeeded and is not listed: wakeful ls --all" in said.err
    assert "shot" in cli.ask("ls", "--all").out
    assert "shot" in cli.ask("ls", "--status", "done").out
    slugs = [one["slug"] for one in cli.ask("ls", "-o", "json").json["schedules"]]
    assert "shot" not in slugs and "dud" in slugs
    assert "shot" in [one["slug"] for one in cli.ask("ls", "--all", "-o", "json").json["schedules"]]


def test_the_heartbeat_is_paused_and_resumed_like_a_schedule(cli: Cli) -> None:
    """And has a record like one."""
    said = cli.ask("pause", "heartbeat", "--until", "tomorrow 9:00")
    assert said.code == 0, said.err
    assert re.match(r"heartbeat paused until \w+ [\d-]+ 09:00 CES?T", said.out)
    assert "paused until" in " ".join(cli.ask("heartbeat").out.split())
    assert "It has been paused since" in cli.ask("why", "heartbeat").out
    said = cli.ask("resume", "heartbeat")
    assert (said.code, said.out.startswith("heartbeat resumed; next: ")) == (0, True)
    assert cli.ask("stats", "heartbeat").code == 0


def test_a_time_of_day_is_read_in_a_zone_and_shown_with_it(cli: Cli) -> None:
    """The user's zone, or --tz; by name, so that it is kept through a change of the clock."""
    said = cli.ask("add", "morning", "--at", "tomorrow 9:00", "--command", "true")
    assert said.code == 0, said.err
    assert re.match(r"morning added: once, at \d{4}-\d\d-\d\d 09:00 \(Europe/Berlin\)", said.out)
    said = cli.ask("add", "elsewhere", "--at", "tomorrow 9:00", "--tz", "Asia/Tokyo", "--command", "true")
    assert "09:00 (Asia/Tokyo)" in said.out
    assert cli.ask("show", "elsewhere", "-o", "json").json["schedule"]["timezone"] == "Asia/Tokyo"
    assert cli.ask("add", "soon", "--at", "+5m", "--command", "true").code == 0
    said = cli.ask("add", "never", "--at", "sometime", "--command", "true")
    assert (said.code, "or 'tomorrow 9:00'" in said.err) == (2, True)
    said = cli.ask("add", "never", "--at", "9:00", "--tz", "Mars/Base", "--command", "true")
    assert (said.code, "--tz: 'Mars/Base' is not a time zone" in said.err) == (2, True)


def test_why_takes_a_time_of_day_in_the_zone_of_the_schedule(cli: Cli) -> None:
    """09:00 is today's in Tokyo for a schedule that lives there."""
    cli.ask("add", "tokyo", "--times", "09:00", "--tz", "Asia/Tokyo", "--command", "true")
    asked = cli.ask("why", "tokyo", "--at", "09:00", "-o", "json")
    assert asked.code == 0, asked.err
    assert asked.json["facts"]["at"].endswith("T00:00:00.000Z")
    assert "09:00" in cli.ask("why", "tokyo", "--at", "09:00").out


def test_check_and_add_agree_about_agents(cli: Cli, tmp_path: Path) -> None:
    """The same sentence, whether a daemon is asked or a file is checked."""
    added = cli.ask("add", "who", "--manual", "--prompt", "Hello", "--agent", "nobody")
    file = tmp_path / "definition.json"
    file.write_text('{"slug": "who", "schedule": {"type": "manual"}, "prompt": "Hello", "agent": "nobody"}')
    checked = cli.ask("check", str(file))
    sentence = (
        "there is no agent 'nobody'; add [agents.nobody] to the settings, or use one of these: broken, default, script"
    )
    assert (added.code, sentence in added.err) == (2, True)
    assert (checked.code, sentence in checked.err) == (1, True)
    file.write_text('{"slug": "who", "schedule": {"type": "manual"}, "prompt": "Hello", "agent": "script"}')
    assert cli.ask("check", str(file)).code == 0
