"""One at a time, and not more often than once an hour."""

import json

import pytest

from sessions.kit import Desk, until

pytestmark = pytest.mark.promise

TEXT = "Minimum interval is 60 minutes (1 hour)"


@pytest.mark.parametrize(
    "schedule",
    [
        {"type": "interval", "intervalMinutes": 59},
        {"type": "every", "every": "30m"},
        {"type": "cron", "expression": "*/30 * * * *"},
        {"type": "cron", "expression": "0,30 9 * * *"},
        {"type": "times", "times": ["09:00", "09:30"]},
    ],
)
def test_more_often_than_hourly_is_refused(desk: Desk, schedule: dict[str, object]) -> None:
    """ "Returns HTTP 400 if interval < 60 minutes": its exact text, looking at a whole cycle; nothing is written."""
    status, refusal = desk.api.ask("PUT", f"/api/schedule/{desk.slug}", {"schedule": schedule, "prompt": "hi"})
    assert (status, refusal["error"]) == (400, TEXT)
    (named,) = refusal["errors"]
    assert named["field"] == "schedule" and named["message"].startswith(f"{TEXT} for an agent, because")
    assert desk.api.ask("GET", f"/api/schedule/{desk.slug}")[0] == 404


@pytest.mark.parametrize(
    "schedule", [{"type": "interval", "intervalMinutes": 60}, {"type": "cron", "expression": "0 * * * *"}]
)
def test_hourly_is_allowed(desk: Desk, schedule: dict[str, object]) -> None:
    """ "intervalMinutes >= 60 required", "next two run times must be ≥60 minutes apart"."""
    assert desk.put(schedule)["nextRun"] is not None


def test_a_file_that_breaks_the_limit_is_refused_and_said(desk: Desk) -> None:
    """ "Skips schedules that violate the limit (catches manual edits)": the edit is reported, the old one stays."""
    desk.put({"type": "interval", "intervalMinutes": 60})
    file = until(lambda: one if (one := desk.file("definition.json")).exists() else None)
    definition = json.loads(file.read_text())
    file.write_text(json.dumps({**definition, "schedule": {"type": "interval", "intervalMinutes": 5}}))
    log = desk.home / "server.log"
    until(lambda: any(desk.slug in line and TEXT in line for line in log.read_text().splitlines()))
    assert desk.get()["schedule"] == definition["schedule"]


def test_a_check_that_takes_long_is_not_joined_by_another(desk: Desk) -> None:
    """ "Only one at a time"; "Long-running tasks — Don't re-queue if still running": a second run is refused."""
    desk.put()
    desk.hold()
    desk.api.ask("POST", f"/api/schedule/{desk.slug}/run")
    desk.status("running")
    status, refusal = desk.api.ask("POST", f"/api/schedule/{desk.slug}/run")
    assert status == 409 and "already has an open run" in refusal["detail"]
    desk.let_go()
    assert desk.ended()["outcome"] == "succeeded"
    assert len(desk.messages()) == 1
