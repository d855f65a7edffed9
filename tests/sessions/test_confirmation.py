"""A turn is confirmed from end to end, retried when it failed later, and told by more than the session's history."""

import json
import urllib.request

import pytest

from patience import PATIENCE
from sessions.kit import Desk, seconds_until, until

pytestmark = pytest.mark.promise


def test_no_end_to_end_confirmation(desk: Desk) -> None:
    """ "the scheduler still shows success": a message that is accepted and never processed does not, and is alerted."""
    desk.server.manner = "lies"
    desk.put(agent="s0")
    run = desk.run()
    assert (run["outcome"], run["rung"]) == ("unconfirmed", "accepted")
    assert "no activity within 1s" in run["error"]
    state = desk.get()
    assert (state["lastResult"], state["lastError"]) == ("error", run["error"])
    assert "is unconfirmed (it got as far as accepted)" in desk.why()
    assert until(lambda: [line for line in _server_log(desk) if "unconfirmed" in line and run["error"] in line])


def test_no_retry_for_async_failures(desk: Desk) -> None:
    """ "Errors during the actual LLM conversation are not reported back": they are, and retried by policy."""
    desk.server.manner = "errors"
    desk.due()
    state = desk.status("waiting")
    assert (state["lastError"], state["statusReason"]) == ("the model is out of order", "retry")
    assert 0 < seconds_until(state["nextRun"]) <= 30 * 60
    (attempt,) = desk.runs()[0]["attempts"]
    assert (attempt["outcome"], attempt["rung"]) == ("failed", "started")


def test_async_failures_are_counted_where_nothing_is_retried(desk: Desk) -> None:
    """With no retry the run has failed, and the count of errors has gone up."""
    desk.server.manner = "errors"
    desk.due(retry={"times": 0})
    assert (desk.ended()["outcome"], desk.get()["consecutiveErrors"]) == ("failed", 1)


def test_session_history_is_not_the_only_truth(desk: Desk) -> None:
    """ "To verify a scheduled task actually ran, check events.jsonl": the ledger has read it already."""
    desk.server.reply = "three commits, all green"
    desk.put()
    run = desk.run()
    desk.server.reply = "all is well"
    assert (run["outcome"], run["reply"]) == ("succeeded", "three commits, all green")
    assert desk.server.sessions[run["sessionId"]].events[-1]["type"] == "session.idle"


def test_late_proof_turns_it_into_what_it_was(desk: Desk) -> None:
    """A receipt, posted by the agent long after, to the address that came with the message."""
    desk.server.manner = "lies"
    desk.put(agent="s1")
    assert desk.run()["outcome"] == "unconfirmed"
    (message,) = desk.messages()
    receipt = json.dumps({"rung": "finished", "text": "done after all"}).encode()
    urllib.request.urlopen(message.headers["X-Wakeful-Receipt"], receipt, timeout=PATIENCE).close()
    (run,) = desk.runs()
    assert (run["outcome"], run["reply"]) == ("succeeded", "done after all")
    assert desk.get()["lastResult"] == "success"


def test_an_owner_may_be_content_with_accepted(desk: Desk) -> None:
    """By wish (`success`), or because the server can be seen no further (`proves`); a wish beyond that is refused."""
    desk.server.manner = "lies"
    desk.put(agent="s2", success="accepted")
    run = desk.run()
    assert (run["outcome"], run["rung"]) == ("succeeded", "accepted")
    desk.put(slug=f"{desk.slug}-blind", agent="blind")
    assert desk.run(f"{desk.slug}-blind")["rung"] == "accepted"
    body = {"schedule": {"type": "manual"}, "prompt": "hi", "agent": "blind", "success": "finished"}
    status, refusal = desk.api.ask("PUT", f"/api/schedule/{desk.slug}-blind", body)
    assert (status, refusal["errors"][0]["field"]) == (400, "success")
    assert 'write "accepted", or leave it out' in refusal["error"]


def _server_log(desk: Desk) -> list[str]:
    return (desk.home / "server.log").read_text().splitlines()
