"""Edits while a run is under way, and the zone of all times."""

import pytest

from sessions.kit import Desk, at, until

pytestmark = pytest.mark.promise


def test_updates_while_running(desk: Desk) -> None:
    """ "Complete current run, reload definition after": the run ends as it began, the next one has the new prompt."""
    desk.put(prompt="the old one")
    desk.hold()
    desk.api.ask("POST", f"/api/schedule/{desk.slug}/run")
    desk.status("running")
    until(lambda: len(desk.messages()) == 1)
    desk.put(prompt="the new one")
    assert desk.get()["status"] == "running"
    desk.let_go()
    assert desk.ended()["outcome"] == "succeeded"
    desk.run()
    assert [message.body["prompt"] for message in desk.messages()] == ["the old one", "the new one"]


def test_another_agent_begins_with_a_session_of_its_own(desk: Desk) -> None:
    """A session of the old one would mean nothing to it."""
    desk.put()
    before = desk.run()["sessionId"]
    desk.put(agent="default")
    assert desk.get()["sessionId"] is None
    assert desk.run()["sessionId"] != before


def test_deleting_while_running(desk: Desk) -> None:
    """The run ends, and stays in the ledger; nothing of it runs again."""
    desk.put()
    desk.hold()
    _, accepted = desk.api.ask("POST", f"/api/schedule/{desk.slug}/run")
    until(lambda: len(desk.messages()) == 1)
    assert desk.api.ask("DELETE", f"/api/schedule/{desk.slug}")[0] == 204
    desk.let_go()
    until(lambda: desk.api.get(f"/api/runs/{accepted['runId']}")["outcome"] == "succeeded")
    until(lambda: not desk.file("definition.json").parent.exists())


def test_disabling_while_running(desk: Desk) -> None:
    """What runs may end; it is the next that does not come."""
    desk.put()
    desk.hold()
    desk.api.ask("POST", f"/api/schedule/{desk.slug}/run")
    until(lambda: len(desk.messages()) == 1)
    desk.api.ask("PATCH", f"/api/schedule/{desk.slug}", {"enabled": False})
    desk.let_go()
    assert desk.ended()["outcome"] == "succeeded"
    assert desk.get()["status"] == "disabled"


def test_all_times_are_in_utc(desk: Desk) -> None:
    """ "All times stored in UTC": written in any zone, told in one, and 9 o'clock in Berlin is 9 o'clock in Berlin."""
    made = desk.put({"type": "cron", "expression": "0 9 * * *", "timezone": "Europe/Berlin"})
    assert made["nextRun"].endswith("Z") and made["createdAt"].endswith("Z")
    assert at(made["nextRun"]).hour in (7, 8)
    once = desk.put({"type": "once", "at": "2999-01-30T09:00:00+02:00"}, f"{desk.slug}-once")
    assert once["nextRun"] == "2999-01-30T07:00:00.000Z"
