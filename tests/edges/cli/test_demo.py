"""`wakeful up --demo`: as a process, in a home of its own, and everything moves within a minute."""

import json
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from edges.cli.kit import WITHIN, Cli
from wakeful.server.demo.programs.model import HAIKUS

pytestmark = pytest.mark.waits
MINUTE = 60.0
SCHEDULES = 17
"""With one that an agent proposed."""


@contextmanager
def demo(user: Path, *options: str) -> Iterator[Cli]:
    """The demo of a user, who has a home of their own as well."""
    theirs = Cli(user / "own")
    child = theirs.start("up", "--demo", "--port", "0", "-o", "json", *options, HOME=str(user))
    try:
        assert child.stdout is not None and child.stderr is not None
        told = child.stdout.readline()
        assert told, child.stderr.read()
        yield Cli(Path(json.loads(told)["home"]))
    finally:
        child.send_signal(signal.SIGTERM)
        child.communicate(timeout=WITHIN)
    assert child.returncode == 0
    assert not theirs.home.exists()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cli]:
    """A demo, from its first second on."""
    with demo(tmp_path_factory.mktemp("demo")) as one:
        yield one


def within_a_minute(cli: Cli, found: Callable[[], Any]) -> Any:
    """What is found, once it is; a busy machine has longer."""
    give_up_at = time.monotonic() + 5 * MINUTE
    while not (one := found()):
        assert time.monotonic() < give_up_at, cli.ask("runs", "--limit", "50").out
        time.sleep(0.25)
    return one


def runs(cli: Cli, outcome: str) -> list[Any]:
    return cli.ask("runs", "--outcome", outcome, "--limit", "200", "-o", "json").json["runs"]  # type: ignore[no-any-return]


def test_it_has_a_home_of_its_own(running: Cli) -> None:
    """Not the one of the variable, and not ~/.wakeful."""
    assert running.home.name == ".wakeful-demo"
    assert not (running.home.parent / ".wakeful").exists()
    assert running.home.stat().st_mode & 0o077 == 0


@pytest.mark.torture
def test_everything_moves(running: Cli) -> None:
    """Agents, programs and addresses succeed, something fails and is held off, the heartbeat beats and speaks."""

    def seen() -> bool:
        succeeded = runs(running, "succeeded")
        good = {run["slug"] for run in succeeded}
        beats = {run["reason"] for run in succeeded if run["slug"] == "heartbeat"}
        return (
            good >= {"haiku", "tidy", "import", "crunch"}
            and beats >= {"ok-ack", "sent"}
            and "import" in {run["slug"] for run in runs(running, "failed")}
        )

    within_a_minute(running, seen)
    assert {run["slug"] for run in runs(running, "failed")} == {"import", "review"}
    kettle = within_a_minute(running, lambda: [run for run in runs(running, "succeeded") if run["slug"] == "kettle"])
    assert kettle[0]["rung"] == "finished"  # a turn that carried the event has succeeded
    assert running.ask("show", "newsletter", "-o", "json").json["status"] == "paused"


def test_the_workflow_works(running: Cli) -> None:
    """Letters are fetched, sorted and answered: the answers are outside, each once."""
    answers = running.home / "answers.txt"
    within_a_minute(running, answers.exists)
    flow = running.ask("workflows", "show", "letters", "-o", "json").json
    assert (flow["status"], flow["error"]) == ("active", None)
    lines = answers.read_text().splitlines()
    assert lines and len(lines) == len(set(lines))


def test_people_hear_of_it(running: Cli) -> None:
    """Replies are in the inbox; what cannot be sent is a dead letter, and an alert says so."""
    within_a_minute(running, lambda: any(_heard(running, haiku) for haiku in HAIKUS))
    dead = within_a_minute(running, lambda: _dead(running))
    assert [one["channel"] for one in dead] == ["pager"]
    within_a_minute(running, lambda: _heard(running, "looking at the demo"))  # what the heartbeat had to say


def _heard(cli: Cli, words: str) -> bool:
    return any(words in one["text"] for one in cli.ask("inbox", "-o", "json").json["items"])


def _dead(cli: Cli) -> list[Any]:
    listed = cli.ask("outbox", "-o", "json").json["deliveries"]
    return [one for one in listed if one["status"] == "dead"]


def test_the_quota_is_read_and_the_window_opened(running: Cli) -> None:
    """The slot was cold, was woken, and a reading confirmed it."""

    def warm() -> Any:
        (slot,) = running.ask("slots", "-o", "json").json["slots"]
        return slot if slot["warm"] and not slot["wakePending"] else None

    slot = within_a_minute(running, warm)
    assert slot["nextResetTime"] and slot["lastError"] is None


def test_it_has_a_past_a_failing_agent_a_proposal_and_a_budget(running: Cli) -> None:
    """What the page shows at first sight: days of costs, one agent that fails, one that asks, a budget nearly used."""
    proposals = within_a_minute(running, lambda: running.ask("approvals", "-o", "json").json["approvals"])
    assert [(one["owner"], one["slug"]) for one in proposals] == [("coder", "coder.dependencies")]
    days = running.ask("cost", "--by", "day", "-o", "json").json["rows"]
    assert len(days) >= 10 and all(row["cost"] > 0 or row["unknown"] for row in days)
    (failed, *_) = [run for run in runs(running, "failed") if run["slug"] == "review"]
    assert "the API key has expired" in failed["error"]
    found = running.ask("budget", "-o", "json").json["budgets"]
    shares = [row["spent"] / row["limit"] for row in found if row["scope"] == "agent:coder"]
    assert len(shares) == 1 and 0.8 <= shares[0] <= 1  # enough for the warning; a run may have ended since


def test_why_has_something_to_tell(running: Cli) -> None:
    """What failed, and what was left out because of it."""
    failed = within_a_minute(running, lambda: [run for run in runs(running, "failed") if run["slug"] == "import"])[0]
    said = running.ask("why", "import", "--at", failed["plannedAt"]).out
    assert "503" in said


def test_nothing_in_it_is_refused(running: Cli) -> None:
    """Every thing of the demo was accepted: the doctor and the log know of no complaint."""
    said = running.ask("doctor")
    assert said.code == 0, said.out + said.err
    assert len(running.ask("ls", "-o", "json").json["schedules"]) == SCHEDULES


@pytest.mark.torture
def test_a_second_start_finds_it_as_it_was(tmp_path: Path) -> None:
    """Nothing is written twice: each definition still has its first version, but for the one that names the port."""
    for start in (1, 2):
        with demo(tmp_path) as cli:
            within_a_minute(cli, lambda: _drills(cli) == start)  # noqa: B023 - it is asked within the turn
            listed = cli.ask("ls", "-o", "json").json["schedules"]
            edited = {one["slug"] for one in listed if one["version"] != 1 and one["approval"] != "pending"}
            assert edited <= {"is-it-up"}
            assert len(listed) == SCHEDULES


def _drills(cli: Cli) -> int:
    """The last that a start asks for: by then everything else is written."""
    return len([run for run in runs(cli, "succeeded") if run["slug"] == "fire-drill"])


def test_somebody_elses_home_is_left_alone(alone: Cli) -> None:
    """A home with settings or schedules of its own is refused, and stays as it is; --home may name an empty one."""
    alone.home.mkdir()
    (alone.home / "wakeful.toml").write_text("# mine\n")
    said = alone.run("up", "--demo", "--port", "0", "--home", str(alone.home))
    assert (said.code, said.out) == (1, "")
    assert "is not a demo home" in said.err
    assert [file.name for file in alone.home.iterdir()] == ["wakeful.toml"]
