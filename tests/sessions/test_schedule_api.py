"""The six operations on schedules, with the fields and words their clients know."""

import pytest

from sessions.kit import Desk

pytestmark = pytest.mark.promise

FIELDS = {
    "slug", "prompt", "enabled", "schedule", "sessionConfig", "lastRun", "lastResult", "lastError", "nextRun",
    "sessionId", "createdAt", "updatedAt",
}  # fmt: skip


def test_list_all_schedules_with_status(desk: Desk) -> None:
    """GET /api/schedule."""
    desk.put()
    listed = desk.api.get(f"/api/schedule?q={desk.slug}")["schedules"]
    assert [one["slug"] for one in listed] == [desk.slug]
    assert set(listed[0]) >= FIELDS | {"status"}


def test_get_specific_schedule(desk: Desk) -> None:
    """GET /api/schedule/:slug, and 404 with a text for one that is not there."""
    desk.put({"type": "cron", "expression": "0 9 * * 1-5"})
    found = desk.get()
    assert set(found) >= FIELDS
    assert found["schedule"]["expression"] == "0 9 * * 1-5"
    status, refusal = desk.api.ask("GET", f"/api/schedule/{desk.slug}-x")
    assert status == 404 and desk.slug in refusal["error"]


def test_create_and_update_schedule(desk: Desk) -> None:
    """PUT /api/schedule/:slug, with a full definition; the same again changes nothing."""
    body = {
        "slug": desk.slug,
        "prompt": "Generate daily standup summary from git commits",
        "enabled": True,
        "schedule": {"type": "cron", "expression": "0 9 * * 1-5"},
        "sessionConfig": {"model": "claude-sonnet", "persistSession": True},
    }
    path = f"/api/schedule/{desk.slug}"
    status, made = desk.api.ask("PUT", path, body)
    assert (status, made["slug"]) == (201, desk.slug) and made["nextRun"] is not None
    status, same = desk.api.ask("PUT", path, body)
    assert (status, same["version"]) == (200, made["version"])
    status, changed = desk.api.ask("PUT", path, {**body, "prompt": "shorter"})
    assert (status, changed["prompt"], changed["version"]) == (200, "shorter", made["version"] + 1)
    assert changed["nextRun"] == made["nextRun"]


def test_partial_update(desk: Desk) -> None:
    """PATCH /api/schedule/:slug toggles `enabled`; what is disabled does not fire, and is planned anew afterwards."""
    made = desk.put()
    path = f"/api/schedule/{desk.slug}"
    status, off = desk.api.ask("PATCH", path, {"enabled": False})
    assert (status, off["enabled"], off["nextRun"]) == (200, False, None)
    status, on = desk.api.ask("PATCH", path, {"enabled": True})
    assert (status, on["enabled"], on["nextRun"]) == (200, True, made["nextRun"])


def test_delete_schedule(desk: Desk) -> None:
    """DELETE /api/schedule/:slug; of an unknown one it is no success."""
    desk.put()
    assert desk.api.ask("DELETE", f"/api/schedule/{desk.slug}")[0] == 204
    assert desk.api.ask("DELETE", f"/api/schedule/{desk.slug}")[0] == 404


def test_run_immediately(desk: Desk) -> None:
    """POST /api/schedule/:slug/run: also while disabled; its error is told, not swallowed; the cadence stays."""
    planned = desk.put()["nextRun"]
    status, accepted = desk.api.ask("POST", f"/api/schedule/{desk.slug}/run")
    assert status == 202
    run = desk.ended()
    assert (run["runId"], run["trigger"], run["outcome"]) == (accepted["runId"], "manual", "succeeded")
    assert desk.get()["nextRun"] == planned
    desk.api.ask("PATCH", f"/api/schedule/{desk.slug}", {"enabled": False})
    desk.server.statuses = [500]
    failed = desk.run()
    assert (failed["outcome"], failed["error"]) == ("failed", "HTTP 500 Internal Server Error: told to say 500")
    assert desk.get()["consecutiveErrors"] == 0


def test_a_slug_is_no_path(desk: Desk) -> None:
    """Nothing is written outside the folder."""
    for slug in ("..%2F..%2Fx", "%2e%2e", "a%2Fb", "A", "x" * 65):
        status, _ = desk.api.ask("PUT", f"/api/schedule/{slug}", {"schedule": {"type": "manual"}, "prompt": "x"})
        assert status in (400, 404), slug
    assert not (desk.home.parent / "x").exists()
