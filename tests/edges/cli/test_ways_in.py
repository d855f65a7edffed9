"""Every way to add a schedule leads to the same alarm, and every zone is shown."""

import json
import sqlite3
import time
import urllib.request
from contextlib import closing
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from edges.cli.kit import WITHIN, Cli, daemon
from far_away import hour_away

pytestmark = pytest.mark.promise

BERLIN = ZoneInfo("Europe/Berlin")
HOUR = hour_away(BERLIN)
DAILY = f"0 {HOUR} * * *"
DEFINITION = {"schedule": {"type": "cron", "expression": DAILY, "timezone": "Europe/Berlin"}, "prompt": "good morning"}
WAYS = ["by-cli", "by-file", "by-rest"]


def next_runs(cli: Cli) -> dict[str, str]:
    """When each schedule of the three runs next, as the daemon says."""
    listed = cli.ask("ls", "-o", "json").json["schedules"]
    return {one["slug"]: one["nextRun"] for one in listed if one["slug"] in WAYS}


def alarms(home: Path) -> dict[str, int]:
    """When each rings, as the store has it."""
    asked = "SELECT slug, due_at FROM schedules JOIN alarms ON kind = 'schedule' AND ref = schedule_id"
    with closing(sqlite3.connect(home / "wakeful.db")) as database:
        return dict(database.execute(asked).fetchall())


def test_every_way_in_leads_to_the_same_alarm(tmp_path: Path) -> None:
    """4, OC#8734, OC#8180: by command, over REST and as a file. Each has its next run at once, in the store, and after
    a restart."""
    home = tmp_path / "home"
    with daemon(home) as cli:
        said = cli.ask("add", "by-cli", "--cron", DAILY, "--tz", "Europe/Berlin", "--prompt", "good morning")
        assert said.code == 0, said.err
        address = json.loads((home / "wakeful.lock").read_text())["address"]
        request = urllib.request.Request(
            f"{address}/api/schedule/by-rest",
            json.dumps(DEFINITION).encode(),
            {"content-type": "application/json"},
            method="PUT",
        )
        with urllib.request.urlopen(request, timeout=WITHIN) as answer:
            assert answer.status == 201
        folder = home / "schedule" / "by-file"
        folder.mkdir(parents=True)
        (folder / "definition.json").write_text(json.dumps({"slug": "by-file", **DEFINITION}))
        until = time.monotonic() + WITHIN
        while len(next_runs(cli)) < len(WAYS) and time.monotonic() < until:
            time.sleep(0.05)
        first = next_runs(cli)
        assert sorted(first) == WAYS
        assert len(set(first.values())) == 1
        rings = alarms(home)
    with daemon(home) as cli:
        assert next_runs(cli) == first
    told = datetime.fromisoformat(first["by-cli"])
    assert (told.astimezone(BERLIN).hour, told.minute) == (HOUR, 0)
    assert {rings[slug] for slug in WAYS} == {int(told.timestamp() * 1000)}


def test_a_user_in_another_zone_than_the_daemon_sees_which_clock_counts(cli: Cli) -> None:
    """49, HA PR#88581: from Tokyo, to a daemon in Berlin. The zone is the daemon's, stored by name and said; times are
    shown on both clocks; a bare time is not guessed."""
    said = cli.ask("add", "zoneless", "--cron", "0 9 * * *", "--command", "true", TZ="Asia/Tokyo")
    assert said.code == 0, said.err
    first, heading, *rows = said.out.splitlines()
    assert first == "zoneless added: every day at 09:00 (Europe/Berlin)"
    assert heading.split() == ["TIME", "LEFT", "IN", "Europe/Berlin"]
    assert all(" JST " in row and "09:00 CE" in row for row in rows)
    shown = cli.ask("show", "zoneless", "-o", "json").json
    assert shown["schedule"]["timezone"] == "Europe/Berlin"
    told = datetime.fromisoformat(shown["nextRun"])
    assert told.astimezone(ZoneInfo("Europe/Berlin")).hour == 9
    refused = cli.ask("add", "guess", "--at", "2099-01-01T09:00:00", "--command", "true", TZ="Asia/Tokyo")
    assert refused.code != 0
    assert "--at" in refused.err
    assert "offset" in refused.err
