"""Every symptom has a chapter in the troubleshooting page, and `why` names its cause."""

from pathlib import Path

import pytest

from sessions.kit import Desk, until

pytestmark = pytest.mark.promise

PAGE = (Path(__file__).parents[2] / "docs" / "troubleshooting.md").read_text()


@pytest.mark.parametrize(
    "symptom",
    [
        '"success" but no message in history',
        "Schedule not running",
        "Wrong nextRun time",
        "Session busy (409) every run",
    ],
)
def test_the_page_names_the_symptom(symptom: str) -> None:
    """In the words of who sees it, with a cure."""
    chapter = PAGE.split(f"### {symptom}")[1].split("\n### ")[0].split("\n## ")[0]
    assert "**`why` says**" in chapter and ("**Cure**" in chapter or "→" in chapter)


def test_success_but_no_message_in_history(desk: Desk) -> None:
    """ "Async dispatch failed silently": not silently."""
    desk.server.manner = "lies"
    desk.put(agent="s5")
    desk.run()
    assert "is unconfirmed (it got as far as accepted): accepted, and no activity" in desk.why()


def test_schedule_not_running(desk: Desk) -> None:
    """ "enabled: false in definition": says since when and by whom, and that a PATCH ends it."""
    desk.put(enabled=False)
    assert "does not run because it has been disabled since" in desk.why() and "by a person" in desk.why()
    desk.api.ask("PATCH", f"/api/schedule/{desk.slug}", {"enabled": True})
    assert "disabled" not in desk.why()


def test_wrong_next_run_time(desk: Desk) -> None:
    """ "Cron expression issue": in plain words and in its zone, and shown before anything is written."""
    cron = {"type": "cron", "expression": "0 9 * * 1-5", "timezone": "Asia/Shanghai"}
    body = {"schedule": cron, "prompt": "hi"}
    status, rehearsed = desk.api.ask("PUT", f"/api/schedule/{desk.slug}?dryRun=true", body)
    assert status in (200, 201) and len(rehearsed["next"]) == 5
    assert desk.api.ask("GET", f"/api/schedule/{desk.slug}")[0] == 404
    planned = desk.put(cron)["nextRun"]
    assert "will run at" in desk.why(at=planned) and "09:00 (Asia/Shanghai)" in desk.why(at=planned)
    later = planned.replace("T01:00", "T02:30")  # not when it runs: the sentence says when it does
    assert "because it runs every weekday at 09:00 (Asia/Shanghai)" in desk.why(at=later)
    bad = {"schedule": {"type": "cron", "expression": "0 25 * * *"}, "prompt": "hi"}
    status, refusal = desk.api.ask("PUT", f"/api/schedule/{desk.slug}", bad)
    assert status == 400 and refusal["errors"][0]["field"] == "schedule.expression"


def test_session_busy_every_run(desk: Desk) -> None:
    """ "Previous run still active": the session is named busy, and until when it is waited."""
    desk.server.statuses = [409]
    desk.due()
    desk.status("waiting")
    assert "is waiting until" in desk.why() and "because its target is busy: Session busy" in desk.why()


def test_doctor_is_content(desk: Desk) -> None:
    """The clock is alive, and nothing is stuck or failing: at the latest when a late tick is over."""

    def is_content() -> bool:
        health = desk.api.get("/healthz")
        return health["status"] == "ok" and all(finding["level"] == "ok" for finding in health["findings"])

    until(is_content)
