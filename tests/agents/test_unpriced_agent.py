"""A real daemon with an agent that prints only text, an agent of known cost beside it, and a limit for the day."""

import time
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import pytest

from agents.test_paid_turns import ask, until
from edges.cli.kit import Cli
from edges.http.kit import Daemon, daemon
from far_away import zone_at_noon

SETTINGS = """\
[schedules]
timezone = "{zone}"

[limits]
every_min = "1s"
agent_interval_min = "0s"
agent_lane = "parallel"

[agents.talker]
adapter = "command"
argv = ["/bin/echo", "done"]

[agents.priced]
adapter = "command"
argv = ["/bin/echo", '{{"text": "done", "usage": {{"cost": 0.001, "total": 10}}}}']
reply_key = "text"
usage_key = "usage"
"""
LIMIT = 5.0


def _often(agent: str) -> dict[str, Any]:
    return {"schedule": {"type": "every", "every": "1s"}, "prompt": "work", "agent": agent}


def _runs(running: Daemon, slug: str) -> list[dict[str, Any]]:
    return list(ask(running, "GET", f"/api/schedule/{slug}/runs?limit=500")["runs"])


@pytest.mark.parametrize("seconds", [5, pytest.param(60, marks=pytest.mark.torture)])
def test_an_agent_of_unknown_cost_uses_up_nobodys_day(tmp_path: Path, seconds: int) -> None:
    """The limit is refused once, with the line to write. Allowed, no run of the other agent is skipped, and `budget`,
    `cost`, Today and the forecast agree."""
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "wakeful.toml").write_text(SETTINGS.format(zone=zone_at_noon()))
    with daemon(home) as running:
        cli = Cli(home)
        with pytest.raises(HTTPError) as refused:
            ask(running, "PUT", "/api/budget", {"period": "day", "limit": LIMIT})
        assert refused.value.code == 400 and "[agents.talker]" in refused.value.read().decode()
        said = cli.ask("budget", "set", "day", "5.00")
        assert said.code != 0 and "cost_per_run = 0.05" in said.err and "talker" in said.err
        assert cli.ask("budget", "set", "day", "5.00", "--unpriced", "allow").code == 0
        for agent in ("talker", "priced"):
            ask(running, "PUT", f"/api/schedule/by-{agent}", _often(agent))
        time.sleep(seconds)  # what is tested is a stretch of time
        until(lambda: len(_runs(running, "by-talker")) >= 3 and len(_runs(running, "by-priced")) >= 3)
        ask(running, "POST", "/api/pause", {})
        until(lambda: not ask(running, "GET", "/api/runs?outcome=running")["runs"])
        paid, talked = _runs(running, "by-priced"), _runs(running, "by-talker")
        assert {run["outcome"] for run in paid if run["reason"] != "paused"} == {"succeeded"}
        assert not [run for run in talked if run["reason"] == "budget"]
        turns = sum(run["outcome"] == "succeeded" for run in talked)
        spent = round(sum(run["cost"] for run in paid if run["outcome"] == "succeeded"), 6)

        (budget,) = ask(running, "GET", "/api/budget")["budgets"]
        named = ask(running, "GET", "/api/budget")["unpriced"]
        assert (budget["spent"], budget["assumed"], budget["reserved"]) == (spent, 0, 0)
        assert (budget["unknown"], budget["unknownOf"]) == (turns, ["by-talker"])
        assert [one["agent"] for one in named] == ["talker"]
        total = ask(running, "GET", "/api/cost?by=schedule")
        assert (total["total"]["cost"], total["total"]["unknown"]) == (spent, turns)
        assert {row["key"]: row["unknown"] for row in total["rows"]} == {"by-priced": 0, "by-talker": turns}
        today = ask(running, "GET", "/api/today")
        assert (today["cost"]["cost"], today["cost"]["unknown"], today["cost"]["unpriced"]) == (spent, turns, named)
        assert not [item for item in today["attention"] if item["kind"] == "budget"]
        forecast = ask(running, "GET", "/api/forecast?days=1")
        assert (forecast["budgets"], forecast["unpriced"]) == ([], named)
        for command in ("budget", "today", "forecast"):
            said = cli.ask(command, *(["--days", "1"] if command == "forecast" else []))
            assert said.code == 0 and named[0]["sentence"] in said.err.replace("\n", " "), said
        assert f"{turns} " in cli.ask("budget").out
        assert running.end() == 0
