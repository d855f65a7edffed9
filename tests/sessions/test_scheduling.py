"""What scheduled sessions promise, on a daemon that is a process.

That schedules survive a restart, and that missed runs are caught up once, is in `test_restarts.py`.
"""

import pytest

from sessions.kit import Daemon, Desk, at, until

pytestmark = pytest.mark.promise


def test_reliable_scheduling(desk: Desk) -> None:
    """ "Tasks run at specified times (±5 minutes acceptable)"."""
    desk.due()
    run = desk.ended()
    assert (run["outcome"], run["trigger"]) == ("succeeded", "schedule")
    late = at(run["startedAt"]) - at(run["plannedAt"])
    assert 0 <= late.total_seconds() < 300
    assert len(desk.messages()) == 1


def test_single_execution(desk: Desk) -> None:
    """ "No parallel scheduled sessions": the second waits for the first, and says for which."""
    one, other = f"{desk.slug}-one", f"{desk.slug}-other"
    desk.server.at_work_max = 0
    desk.hold()
    desk.due(one)
    desk.due(other)
    until(lambda: sorted(desk.get(slug)["status"] for slug in (one, other)) == ["running", "waiting"])
    (waiting,) = [slug for slug in (one, other) if desk.get(slug)["status"] == "waiting"]
    (ahead,) = {one, other} - {waiting}
    (run,) = desk.runs(ahead)
    assert f"is waiting in the queue of agent {desk.agent}, behind run {run['runId']} of {ahead};" in desk.why(waiting)
    desk.let_go()
    until(lambda: [run["outcome"] for slug in (one, other) for run in desk.runs(slug)] == ["succeeded"] * 2)
    assert desk.server.at_work_max == 1


def test_session_reuse(desk: Desk) -> None:
    """ "Scheduled tasks maintain persistent sessions"."""
    desk.put()
    first, second = desk.run(), desk.run()
    assert first["sessionId"] == second["sessionId"] == desk.get()["sessionId"]
    assert len({message.path for message in desk.messages()}) == 1


def test_status_visibility(desk: Desk) -> None:
    """ "API provides schedule state (next run, last run, enabled/disabled)"."""
    fresh = desk.put()
    assert (fresh["lastRun"], fresh["lastResult"], fresh["enabled"], fresh["status"]) == (None, None, True, "idle")
    run = desk.run()
    state = desk.get()
    assert (state["lastRun"], state["lastResult"], state["lastError"]) == (run["startedAt"], "success", None)
    assert state["nextRun"] == fresh["nextRun"]
    desk.api.ask("PATCH", f"/api/schedule/{desk.slug}", {"enabled": False})
    state = desk.get()
    assert (state["enabled"], state["status"], state["nextRun"]) == (False, "disabled", None)


def test_graceful_errors(desk: Desk, running: Daemon) -> None:
    """ "Failed tasks log errors but don't crash scheduler": the error is in the log, and the next one runs."""
    desk.server.statuses = [500]
    desk.due()
    assert desk.status("waiting")["lastError"].startswith("HTTP 500")
    assert running.process.poll() is None
    until(lambda: any("HTTP 500" in str(line) for line in desk.log_lines()))
    desk.due(f"{desk.slug}-next")
    assert desk.ended(f"{desk.slug}-next")["outcome"] == "succeeded"
