"""Each response of an agent server and each error, as the API and the file show it."""

import pytest

from sessions.kit import Desk, seconds_until, until

pytestmark = pytest.mark.promise

MINUTES = 60


def test_200_message_accepted(desk: Desk) -> None:
    """ "Record success, calculate next run": success is recorded when the agent is done, not when it is asked."""
    desk.put()
    desk.hold()
    desk.api.ask("POST", f"/api/schedule/{desk.slug}/run")
    run = until(lambda: next((one for one in desk.runs() if one["rung"] in ("accepted", "started")), None))
    assert (run["outcome"], desk.get()["lastResult"]) == ("running", None)
    desk.let_go()
    assert desk.ended()["outcome"] == "succeeded"
    state = desk.get()
    assert state["lastResult"] == "success" and 0 < seconds_until(state["nextRun"]) <= 60 * MINUTES


def test_404_session_not_found(desk: Desk) -> None:
    """ "Create new session, retry", "update sessionId": in the same run, and the file knows it."""
    desk.put()
    lost = desk.run()["sessionId"]
    del desk.server.sessions[lost]
    run = desk.run()
    assert (run["outcome"], run["attempt"]) == ("succeeded", 1)
    assert run["sessionId"] == desk.get()["sessionId"] != lost
    until(lambda: (desk.last_run() or {}).get("sessionId") == run["sessionId"])


def test_409_session_busy(desk: Desk) -> None:
    """ "Record error, delay 1 hour": "Session busy" in lastError, nextRun in an hour, and no error in the count."""
    desk.server.statuses = [409]
    desk.due()
    state = desk.status("waiting")
    assert (state["lastResult"], state["lastError"], state["consecutiveErrors"]) == ("error", "Session busy", 0)
    assert 58 * MINUTES < seconds_until(state["nextRun"]) <= 60 * MINUTES
    told = until(lambda: last if (last := desk.last_run()) and last["lastError"] else None)
    assert (told["lastError"], told["nextRun"]) == ("Session busy", state["nextRun"])
    assert "because its target is busy: Session busy" in desk.why()
    assert desk.runs()[0]["reason"] == "busy"


def test_409_of_a_manual_run_is_told_at_once(desk: Desk) -> None:
    """A person waits: nothing is put off, the cadence stays as it is."""
    planned = desk.put()["nextRun"]
    desk.server.statuses = [409]
    run = desk.run()
    assert (run["outcome"], run["error"], desk.get()["nextRun"]) == ("failed", "Session busy", planned)


def test_429_wait_as_told(desk: Desk) -> None:
    """The server says when."""
    desk.server.statuses, desk.server.headers = [429], {"Retry-After": "600"}
    desk.due()
    state = desk.status("waiting")
    assert state["lastError"].startswith("HTTP 429") and state["statusReason"] == "throttled"
    assert 8 * MINUTES < seconds_until(state["nextRun"]) <= 10 * MINUTES


def test_500_resume_failed(desk: Desk) -> None:
    """ "Log error, retry on next 30-min interval"."""
    desk.server.statuses = [500]
    desk.due()
    state = desk.status("waiting")
    assert (state["lastResult"], state["statusReason"]) == ("error", "retry")
    assert state["lastError"] == "HTTP 500 Internal Server Error: told to say 500"
    assert 28 * MINUTES < seconds_until(state["nextRun"]) <= 30 * MINUTES
    assert until(lambda: _grep(desk, "waits (retry) until"))[0].endswith(state["lastError"])


def test_network_error(desk: Desk) -> None:
    """ "Log error, retry on next 30-min interval": the host and what to look at are named."""
    desk.due(agent="nowhere")
    state = desk.status("waiting")
    assert state["lastError"] == "127.0.0.1:9: connection refused; is the server running on this port?"
    assert 28 * MINUTES < seconds_until(state["nextRun"]) <= 30 * MINUTES
    (line,) = until(lambda: [one for one in desk.log_lines() if one["phase"] == "error"][:1])
    assert "connection refused" in line["details"]["error"] and line["flow_id"]


def _grep(desk: Desk, word: str) -> list[str]:
    lines = (desk.home / "server.log").read_text().splitlines()
    return [line for line in lines if "SCHEDULER" in line and desk.slug in line and word in line]
