"""Five troubles in a home, for whoever is asked what is wrong: a dead agent, a failing command, a stuck delivery, a
budget that is reached, and a schedule that somebody paused by mistake.

`python -m page.troubles HOME` (with `tests` on the path) writes the settings, starts a daemon there, plants the
troubles and prints the address of its page and the token. It runs until Ctrl-C.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from access import TOKEN, send_token_by_default
from edges.http.kit import Daemon, daemon
from far_away import hour_away, zone_at_noon
from page.kit import ask
from patience import PATIENCE

TURN: Final = """
import json
print(json.dumps({"reply": "done", "usage": {"input_tokens": 9000, "output_tokens": 900, "cost": 0.75}}))
"""
SETTINGS: Final = f"""
[schedules]
timezone = "{zone_at_noon()}"

[alerts]
errors = 1
channel = "inbox"

[agents.writer]
adapter = "command"
argv = [{json.dumps(sys.executable)}, "-c", {json.dumps(TURN)}]
format = "json"
reply_key = "reply"
usage_key = "usage"

[agents.coder]
adapter = "command"
argv = ["CODER"]

[channels.pager]
type = "webhook"
url = "http://127.0.0.1:9/page"
allow_private = true

[delivery]
retries_max = 1

[limits]
every_min = "1s"
agent_interval_min = "1s"
"""
_MANUAL: Final = {"type": "manual"}
_OFTEN: Final = {"type": "every", "every": "1s"}
_DAILY: Final = {"type": "cron", "expression": f"0 {hour_away(by=6)} * * *", "timezone": "UTC"}  # today in that zone


def plant(one: Daemon) -> None:
    """Make the five troubles, and some schedules that are fine; return when each is there."""
    _dead_agent(one)
    _failing_command(one)
    _stuck_delivery(one)
    _budget_reached(one)
    _paused_by_mistake(one)
    for slug in ("tidy", "report", "backup"):
        _put(one, slug, _DAILY, command={"argv": ["true"]})
        ask(one, "POST", f"/api/schedule/{slug}/run?wait=true")


def _dead_agent(one: Daemon) -> None:
    """Its program was there, and is removed."""
    _put(one, "review", _DAILY, prompt="Review the open pull requests.", agent="coder", retry={"times": 0})
    _until_it_fails(one, "review", program=one.home / "coder")


def _failing_command(one: Daemon) -> None:
    _put(one, "nightly-import", _DAILY, command={"argv": ["cp", "/no/such/export.csv", "."]})
    _until_it_fails(one, "nightly-import")


def _stuck_delivery(one: Daemon) -> None:
    """Nothing listens where its reply goes."""
    _put(one, "on-call", _MANUAL, command={"argv": ["echo", "disk is full"]}, deliver={"channel": "pager"})
    ask(one, "POST", "/api/schedule/on-call/run?wait=true")
    _until(lambda: ask(one, "GET", "/api/deliveries?status=dead")["deliveries"])


def _budget_reached(one: Daemon) -> None:
    """One turn uses all of it, and the next does not fit."""
    _put(one, "digest", _DAILY, prompt="Summarise the news.", agent="writer", budget={"perDay": 0.5})
    ask(one, "POST", "/api/schedule/digest/run?wait=true")
    _until(lambda: [row for row in ask(one, "GET", "/api/budget")["budgets"] if row["spent"] >= row["limit"]])
    ask(one, "POST", "/api/schedule/digest/run?wait=true")


def _paused_by_mistake(one: Daemon) -> None:
    """It used to run every day, and nobody set an end to the pause."""
    _put(one, "stand-up", _DAILY, command={"argv": ["echo", "good morning"]})
    ask(one, "POST", "/api/schedule/stand-up/run?wait=true")
    ask(one, "POST", "/api/schedule/stand-up/pause", {})


def _put(one: Daemon, slug: str, schedule: Any, **definition: Any) -> None:
    ask(one, "PUT", f"/api/schedule/{slug}", {"schedule": schedule, **definition})


def _until_it_fails(one: Daemon, slug: str, *, program: Path | None = None) -> None:
    """It fires every second until it has failed, and then once a day. Without its program it cannot be edited."""
    ask(one, "PATCH", f"/api/schedule/{slug}", {"schedule": _OFTEN})
    hidden = None if program is None else program.rename(program.with_suffix(".old"))
    _until(lambda: ask(one, "GET", f"/api/schedule/{slug}")["health"] == "failing")
    if program is not None and hidden is not None:
        hidden.rename(program)
    ask(one, "PATCH", f"/api/schedule/{slug}", {"schedule": _DAILY})
    if program is not None:
        program.unlink()


def _until(found: Callable[[], object]) -> None:
    give_up = time.monotonic() + PATIENCE
    while not found():
        assert time.monotonic() < give_up
        time.sleep(0.2)


def write_settings(home: Path) -> None:
    """A home whose agents and channels can get into trouble."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    program = home / "coder"
    program.write_text("#!/bin/sh\necho 'two pull requests are open'\n", encoding="utf-8")
    program.chmod(0o700)
    (home / "wakeful.toml").write_text(SETTINGS.replace("CODER", str(program)), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("home", type=Path)
    home = parser.parse_args().home
    send_token_by_default()
    write_settings(home)
    with daemon(home) as one:
        plant(one)
        sys.stdout.write(f"{one.address} {TOKEN}\n")
        sys.stdout.flush()
        try:
            while True:
                time.sleep(3600)
        except KeyboardInterrupt:
            return


if __name__ == "__main__":
    main()
