"""How a turn is sent and which session gets it, over the real protocol."""

from typing import Any

import pytest

from sessions.kit import Desk, until

pytestmark = pytest.mark.promise


def test_a_due_task_is_posted_to_the_messages_of_its_session(desk: Desk) -> None:
    """ "POST /api/sessions/:id/messages": the bare prompt, marked as the scheduler's by its fields, under a key."""
    desk.due()
    run = desk.ended()
    (message,) = desk.messages()
    assert message.path == f"/api/sessions/{run['sessionId']}/messages"
    assert message.body == {
        "prompt": f"news of {desk.slug}?",
        "source": "scheduler",
        "scheduleSlug": desk.slug,
        "correlationId": message.headers["Idempotency-Key"],
    }
    assert message.headers["X-Wakeful-Run"] == run["runId"]
    assert message.headers["X-Wakeful-Receipt"].startswith(f"{desk.api.address}/api/runs/{run['runId']}/receipt?token=")


def test_last_run_json_is_updated_with_the_result(desk: Desk) -> None:
    """ "update last-run.json with result": all five fields, and the same as the API says."""
    desk.put()
    run = desk.run()
    told = until(lambda: last if (last := desk.last_run()) and last["lastResult"] else None)
    assert told == {
        "lastRun": run["startedAt"],
        "lastResult": "success",
        "lastError": None,
        "sessionId": run["sessionId"],
        "nextRun": desk.get()["nextRun"],
    }


def test_the_run_tells_how_far_it_got_and_what_came_back(desk: Desk) -> None:
    """The ladder, the reply and the tokens are in the ledger."""
    desk.put()
    run = desk.run()
    assert (run["outcome"], run["rung"], run["reply"]) == ("succeeded", "finished", "all is well")
    assert (run["usage"]["input"], run["usage"]["output"], run["usage"]["total"]) == (10, 3, 13)
    assert list(run["ladder"])[:2] == ["sent", "accepted"]


def test_persistent_sessions(desk: Desk) -> None:
    """ "First run creates session, subsequent runs reuse": one session, with the model that was asked for."""
    desk.put(sessionConfig={"model": "claude-sonnet"})
    session_id = desk.run()["sessionId"]
    assert desk.run()["sessionId"] == session_id
    made = desk.server.sessions[session_id].made_with
    assert made["model"] == "claude-sonnet" and made["description"].endswith(desk.slug)
    assert [one.path for one in desk.messages()] == [f"/api/sessions/{session_id}/messages"] * 2


def test_ephemeral_sessions(desk: Desk) -> None:
    """ "Fresh session each run": two runs, two sessions, neither left behind nor taken for the schedule's own."""
    desk.put(sessionConfig={"persistSession": False})
    assert [desk.run()["outcome"], desk.run()["outcome"]] == ["succeeded", "succeeded"]
    used = {message.path.split("/")[3] for message in desk.messages()}
    assert len(used) == 2 and not used & set(desk.server.sessions)
    assert desk.get()["sessionId"] is None


def test_sessions_do_not_accumulate(desk: Desk) -> None:
    """ "Persistent sessions accumulate; may need max-sessions config": the setting is there, and it counts."""
    assert desk.api.get("/api/config")["settings"]["agents"]["default"]["sessions_max"] == 50


def test_every_exchange_has_a_flow_id(desk: Desk) -> None:
    """Request and response of one exchange share it, with the schedule and how long it took."""
    desk.put()
    desk.run()
    lines = until(lambda: _message_lines(desk))
    assert [line["phase"] for line in lines] == ["request", "response"]
    assert len({line["flow_id"] for line in lines}) == 1
    assert lines[1]["duration_ms"] >= 0 and lines[1]["details"]["status"] == 200
    flows = [line["flow_id"] for line in desk.log_lines() if line.get("flow_id") and line["phase"] == "request"]
    assert len(flows) == len(set(flows)) > 3


def test_the_requests_of_http_schedules_are_heard_as_well(desk: Desk) -> None:
    """One flow id for the request and its answer; the query, where keys are often put, is in neither."""
    url = f"{desk.server.url}/api/sessions?key=hidden"
    status, _ = desk.api.ask(
        "PUT", f"/api/schedule/{desk.slug}", {"schedule": {"type": "manual"}, "http": {"url": url, "method": "GET"}}
    )
    assert status == 201
    assert desk.run()["outcome"] == "succeeded"
    lines = until(lambda: found if len(found := _lines(desk, "http-request")) == 2 else None)
    assert lines[0]["flow_id"] == lines[1]["flow_id"] and lines[1]["details"]["status"] == 200
    assert "hidden" not in str(lines)


def _lines(desk: Desk, action: str) -> list[dict[str, Any]]:
    return [line for line in desk.log_lines() if line["action"] == action]


def _message_lines(desk: Desk) -> list[dict[str, object]] | None:
    lines = _lines(desk, "agent-message")
    return lines if len(lines) == 2 else None
