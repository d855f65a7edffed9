"""What happened and what will, from the command line."""

import json
import re
import signal

import pytest

from edges.cli.kit import WITHIN, Cli
from far_away import hour_away, minute_away


@pytest.fixture(scope="module")
def ran(cli: Cli) -> Cli:
    """A daemon with two schedules, one that succeeds and one that fails, each of which ran."""
    cli.ask("add", "good", "--every", "1h", "--command", "echo well done")
    cli.ask("add", "bad", "--cron", f"0 {hour_away()} * * *", "--tz", "UTC", "--command", "sh -c 'echo oh; exit 7'")
    cli.ask("run", "good", "--wait")
    cli.ask("run", "bad", "--wait")
    return cli


def test_run_without_waiting(ran: Cli) -> None:
    """It is asked for, and its number is told."""
    said = ran.run("run", "good")
    assert said.code == 0
    assert re.fullmatch(r"good runs as run \d+; see how it ends: wakeful runs good\n", said.out)
    ran.ask("add", "asked", "--manual", "--command", "true")
    assert ran.ask("run", "asked", "-o", "json").json["runId"].isdigit()


def test_run_and_wait_for_success(ran: Cli) -> None:
    """The end and what it said; exit code 0."""
    ran.ask("add", "spoken", "--manual", "--command", "printf 'one\\ntwo'")
    said = ran.ask("run", "spoken", "--wait")
    assert (said.code, said.err) == (0, "")
    assert re.fullmatch(r"spoken succeeded, run \d+, took \d+\.\ds\none\ntwo\n", said.out)


def test_run_and_wait_for_failure(ran: Cli) -> None:
    """A run that did not succeed is exit code 1, for people and for programs."""
    said = ran.ask("run", "bad", "--wait")
    assert said.code == 1
    assert said.out.startswith("bad failed, run ")
    assert "exited with 7" in said.err
    said = ran.ask("run", "bad", "--wait", "-o", "json")
    assert (said.code, said.json["outcome"]) == (1, "failed")


def test_waiting_has_a_limit(ran: Cli) -> None:
    """Who does not want to wait longer learns how it stands; the run goes on, and a second one is refused."""
    ran.ask("add", "slow", "--manual", "--command", "sleep 900")
    said = ran.ask("run", "slow", "--wait", "--timeout", "100ms")
    assert said.code == 1
    assert "slow is still running" in said.out
    again = ran.ask("run", "slow")
    assert (again.code, again.out) == (1, "")
    assert "run" in again.err
    assert ran.ask("run", "slow", "--timeout", "1s").code == 2
    (run,) = ran.ask("runs", "slow", "-o", "json").json["runs"]
    assert ran.ask("runs", "cancel", run["runId"]).code == 0


def test_a_prompt_is_answered(ran: Cli) -> None:
    """The reply of an agent is shown when it has ended."""
    ran.ask("add", "greet", "--manual", "--prompt", "Say hello")
    said = ran.ask("run", "greet", "--wait")
    assert said.code == 0, said.err
    assert "Say hello" in said.out


def test_runs_in_a_table(ran: Cli) -> None:
    """Newest first, within 80 columns, errors where there are some."""
    said = ran.run("runs")
    assert (said.code, said.err) == (0, "")
    assert all(len(line) <= 80 for line in said.out.splitlines())
    assert said.out.splitlines()[0].split()[:2] == ["RUN", "SLUG"]
    assert "succeeded" in said.out
    only = ran.ask("runs", "bad", COLUMNS="200").out
    assert "exited with 7" in only
    assert "good" not in only


def test_runs_for_a_program(ran: Cli) -> None:
    """Rows of the ledger, as many as asked for, of one outcome."""
    assert len(ran.ask("runs", "--limit", "1", "-o", "json").json["runs"]) == 1
    failed = ran.ask("runs", "--outcome", "failed", "-o", "json").json["runs"]
    assert {run["outcome"] for run in failed} == {"failed"}
    ran.ask("add", "idle", "--manual", "--command", "true")
    assert ran.ask("runs", "idle").err == "no runs yet\n"


def test_log_is_one_line_each(ran: Cli) -> None:
    """Oldest first; with -o json each line is an object."""
    said = ran.run("log", "good")
    assert re.match(r"\w{3} [\d :-]+ CES?T  good  succeeded  run 1\n", said.out)
    lines = ran.ask("log", "bad", "-o", "json").out.splitlines()
    assert [json.loads(line)["slug"] for line in lines] == ["bad"] * len(lines)
    assert ran.ask("log", "bad", "--limit", "1").out.count("\n") == 1


def test_log_follows_until_ctrl_c(ran: Cli) -> None:
    """What happens from now on is told as it happens; Ctrl-C is a good end."""
    ran.ask("add", "followed", "--manual", "--command", "true")
    ran.ask("run", "followed", "--wait")
    following = ran.start("log", "followed", "-f")
    try:
        assert following.stdout is not None
        assert "followed  succeeded" in following.stdout.readline()
        ran.ask("run", "followed", "--wait")
        while "succeeded" not in (line := following.stdout.readline()):
            assert "followed" in line
        following.send_signal(signal.SIGINT)
        assert following.wait(WITHIN) == 0
    finally:
        following.kill()
        following.communicate()


def test_stats(ran: Cli) -> None:
    """How often, how well, how long; over all time or since a time."""
    said = ran.run("stats", "good")
    assert (said.code, said.err) == (0, "")
    text = " ".join(said.out.split())
    assert "success rate: 100.0%" in text
    assert "succeeded" in text
    answer = ran.ask("stats", "bad", "--since", "7d", "-o", "json").json
    assert answer["successRate"] == 0
    assert answer["since"] is not None
    said = ran.ask("stats", "bad", "--since", "lately")
    assert said.code == 2
    assert "--since: 'lately' is not a date and time" in said.err
    assert said.err.rstrip().endswith(", or a duration such as 2d")


def test_next_of_all(ran: Cli) -> None:
    """What will fire, in order, within the days asked for."""
    said = ran.run("next", "--days", "2", "--limit", "10")
    assert said.code == 0
    rows = said.out.splitlines()
    assert rows[0].split() == ["TIME", "LEFT", "SLUG", "WHAT"]
    assert len(rows) == 11
    assert "only the first 10" in said.err
    fires = ran.ask("next", "-o", "json").json["upcoming"]
    assert [fire["dueAt"] for fire in fires] == sorted(fire["dueAt"] for fire in fires)


def test_next_of_one(ran: Cli) -> None:
    """Its own times within the days asked for."""
    said = ran.ask("next", "bad", "--days", "2.5", "-o", "json")
    assert said.json["slug"] == "bad"
    assert len(said.json["times"]) in (2, 3)
    assert ran.ask("next", "bad").out.count(":00 CE") == 7
    assert "does not fire within 0.0001 days" in ran.ask("next", "bad", "--days", "0.0001").err
    assert ran.ask("next", "bad", "--days", "0").code == 2


def test_why(ran: Cli) -> None:
    """One sentence."""
    said = ran.run("why", "good")
    assert (said.code, said.err) == (0, "")
    assert said.out.strip()
    assert set(ran.ask("why", "good", "--at", "1h", "-o", "json").json) >= {"sentence", "facts"}


def test_a_run_is_cancelled(ran: Cli) -> None:
    """The command waits for the end and prints it; a second time it is refused, and so is what is no run."""
    ran.ask("add", "endless", "--manual", "--command", "sleep 300")
    run_id = ran.ask("run", "endless", "-o", "json").json["runId"]
    said = ran.ask("runs", "cancel", run_id)
    assert (said.code, said.out) == (0, f"run {run_id}: cancelled\n")
    assert ran.ask("runs", "show", run_id, "-o", "json").json["outcome"] == "cancelled"
    assert ran.ask("runs", "cancel", "x").code == 2
    assert ran.ask("runs", "cancel").code == 2
    assert "no run 4711" in ran.ask("runs", "cancel", "4711").err


def test_past_times_are_counted_and_run_on_request(ran: Cli) -> None:
    """Nothing starts without --apply."""
    ran.ask("add", "hourly", "--cron", f"{minute_away()} * * * *", "--tz", "UTC", "--command", "true")
    said = ran.ask("backfill", "hourly", "--from", "5h")
    assert (said.code, "5 instants would run" in said.out, "--apply" in said.err) == (0, True, True)
    assert ran.ask("runs", "hourly", "-o", "json").json["runs"] == []
    assert "5 instants will run" in ran.ask("backfill", "hourly", "--from", "5h", "--apply").out
    assert "will not run" in ran.ask("backfill", "hourly", "--stop").out
    assert ran.ask("backfill", "hourly").code == 2
    assert ran.ask("replay").code == 2
    assert ran.ask("replay", "--missed", "--since", "1h", "hourly").code == 0
    run_id = ran.ask("runs", "good", "-o", "json").json["runs"][0]["runId"]
    assert ran.ask("runs", "replay", run_id, "-o", "json").json["replayOf"] == run_id
