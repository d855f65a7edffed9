"""What a person looks at: the files, the searches in the log, the session's history, the forced run."""

import json

import pytest

from sessions.kit import Desk, until

pytestmark = pytest.mark.promise

PAST = "2026-01-01T00:00:00.000Z"


def test_view_schedule_definition(desk: Desk) -> None:
    """ "cat definition.json": what was written, spelt out."""
    desk.put(sessionConfig={"model": "claude-sonnet", "persistSession": True})
    file = until(lambda: one if (one := desk.file("definition.json")).exists() else None)
    told = json.loads(file.read_text())
    assert (told["slug"], told["prompt"], told["enabled"]) == (desk.slug, f"news of {desk.slug}?", True)
    assert told["sessionConfig"] == {"model": "claude-sonnet", "persistSession": True}


def test_view_last_run_state(desk: Desk) -> None:
    """ "cat last-run.json": before the first run there is a next one, and no last."""
    made = desk.put()
    told = until(desk.last_run)
    assert told == {
        "lastRun": None,
        "lastResult": None,
        "lastError": None,
        "sessionId": None,
        "nextRun": made["nextRun"],
    }


def test_check_session_history(desk: Desk) -> None:
    """ "Find session ID from schedule", "did the message actually send?": the id leads to the events."""
    desk.put()
    desk.run()
    told = until(lambda: last if (last := desk.last_run()) and last["sessionId"] else None)
    events = desk.server.sessions[told["sessionId"]].events
    assert [event["type"] for event in events][:1] == ["user.message"]
    assert events[0]["data"]["content"] == f"[scheduler:{desk.slug}] news of {desk.slug}?"


def test_check_server_logs(desk: Desk) -> None:
    """ "grep SCHEDULER server.log", "grep 'zalem-daily-stats' server.log": both find it."""
    desk.put()
    run = desk.run()
    wanted = f"[SCHEDULER] {desk.slug}: run {run['runId']} succeeded"
    until(lambda: wanted in (desk.home / "server.log").read_text())


def test_force_a_test_run(desk: Desk) -> None:
    """ "Set nextRun to the past": one run, in the session that is named, without a restart; the cadence stays."""
    planned = desk.put()["nextRun"]
    desk.server.add(f"mine-{desk.slug}")
    until(desk.last_run)
    forged = {"lastRun": PAST, "lastResult": "success", "lastError": None, "nextRun": PAST}
    desk.file("last-run.json").write_text(json.dumps({**forged, "sessionId": f"mine-{desk.slug}"}))
    until(lambda: any(run["outcome"] == "succeeded" for run in desk.runs()))
    (run,) = desk.runs()
    assert run["sessionId"] == f"mine-{desk.slug}" and run["startedAt"] > PAST
    assert desk.get()["nextRun"] == planned
    settled = {"lastResult": "success", "lastRun": run["startedAt"], "nextRun": planned}
    until(lambda: settled.items() <= (desk.last_run() or {}).items())
    assert len(desk.messages()) == 1


def test_forcing_a_disabled_one_does_nothing(desk: Desk) -> None:
    """ "enabled: false": it stands in for the schedule's own firing."""
    desk.put(enabled=False)
    told = until(desk.last_run)
    desk.file("last-run.json").write_text(json.dumps({**told, "nextRun": PAST}))
    until(lambda: (desk.last_run() or {}).get("nextRun", PAST) is None)  # read, refused, and written again
    assert desk.runs() == [] and desk.messages() == []
