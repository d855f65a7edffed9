"""`/api/schedule`."""

import asyncio
from pathlib import Path
from typing import Any

from edges.http.kit import EVERY, MANUAL, Client, served
from wakeful.integrations.agents.call import CallAgent
from wakeful.ports.clock import Clock

MINUTELY_PROMPT = {"schedule": {"type": "interval", "intervalMinutes": 30}, "prompt": "hello"}


async def test_a_put_creates_then_updates_and_reads_back(api: Client) -> None:
    """201 with where it is, then 200; what GET says is what PUT said."""
    created = await api.put("report")
    assert (created.status, created.headers["Location"]) == (201, "/api/schedule/report")
    assert created.body["nextRun"] is not None
    assert (await api.get("/api/schedule/report")).body == created.body
    updated = await api.put("report", {**EVERY, "timeout": "5m"})
    assert (updated.status, updated.body["timeout"], updated.body["version"]) == (200, "5m", 2)


async def test_each_new_schedule_reads_as_the_response_to_its_put_said(tmp_path: Path) -> None:
    """The response is made from what was written, and is what is stored."""
    daily = {"type": "cron", "expression": "0 9 * * *", "timezone": "Europe/Berlin"}
    command = {"command": {"argv": ["true"]}}
    definitions = [
        {"schedule": daily, "prompt": "hello"},
        {"schedule": daily, "enabled": False, **command},
        {"schedule": daily, "stagger": "5m", "exclude": {"dates": ["2999-01-01"]}, **command},
        {"schedule": daily, "activeHours": {"start": "08:00", "end": "10:00", "timezone": "UTC"}, **command},
        {"schedule": daily, "runOn": ["gpu"], "lane": "one", **command},
        {"schedule": {"type": "every", "every": "2h"}, "expiresAt": "2999-01-01T00:00:00Z", **command},
        {"schedule": {"type": "at", "at": "2999-01-30T09:00:00", "timezone": "Europe/Berlin"}, **command},
        {"schedule": {"type": "manual"}, "retry": {"times": 2}, **command},
        {"schedule": "weekdays at 9:00", **command},
    ]

    def agents(_: Clock, registry: Any) -> Any:
        registry.register("bot", lambda prompt: "hi")
        return {"default": CallAgent("bot", registry)}

    async with served(tmp_path, agents=agents) as api:
        for number, definition in enumerate(definitions):
            created = await api.put(f"new-{number}", definition)
            assert created.status == 201, created.body
            read = await api.get(f"/api/schedule/new-{number}")
            assert (read.body, read.headers["ETag"]) == (created.body, created.headers["ETag"])


async def test_what_was_read_may_be_written_again(api: Client) -> None:
    """Read-back fields in a PUT are ignored: it is the same definition, and nothing changes."""
    created = await api.put("report")
    again = await api.put("report", created.body)
    assert (again.status, again.body["version"]) == (200, 1)
    assert again.headers["ETag"] == created.headers["ETag"]


async def test_a_schedule_is_returned_as_it_was_written_with_the_zone_filled_in(api: Client) -> None:
    """Each kind by its own words; where its grid begins, nobody who did not write it is made to read or to keep."""
    kinds = [
        {"type": "cron", "expression": "0 9 * * 1-5", "timezone": "Asia/Shanghai"},
        {"type": "every", "every": "120m"},
        {"type": "every", "every": "2h", "anchor": "2026-01-30T09:00:00+01:00"},
        {"type": "interval", "intervalMinutes": 90},
        {"type": "once", "at": "2999-01-30T09:00:00+01:00"},
        {"type": "at", "at": "2999-01-30T09:00:00", "timezone": "Europe/Berlin"},
        {"type": "times", "times": ["18:00", "09:00"], "timezone": "UTC"},
        {"type": "afterReset", "slot": "main", "offsetMinutes": 1},
        {"type": "manual"},
    ]
    for number, kind in enumerate(kinds):
        slug = f"kind-{number}"
        written = await api.put(slug, {"schedule": kind, "command": {"argv": ["true"]}})
        assert (written.status, written.body["schedule"]) == (201, kind)
        again = await api.put(slug, {"schedule": kind, "command": {"argv": ["true"]}})
        assert (again.body["version"], again.body["nextRun"]) == (1, written.body["nextRun"])
        other = await api.ask("PATCH", f"/api/schedule/{slug}", {"timeout": "5m"})
        assert (other.body["schedule"], other.body["nextRun"]) == (kind, written.body["nextRun"])
    for kind in ({"type": "cron", "expression": "0 9 * * *"}, {"type": "times", "times": ["09:00"]}):
        filled = (await api.put("filled", {"schedule": kind, "command": {"argv": ["true"]}})).body["schedule"]
        assert filled == {**kind, "timezone": filled["timezone"]} and filled["timezone"]


async def test_a_pause_says_until_when_and_when_it_goes_on(api: Client) -> None:
    """`nextRun` is when something of it will happen next, also where that is after a pause."""
    daily = {"type": "cron", "expression": "0 9 * * *", "timezone": "UTC"}
    await api.put("report", {"schedule": daily, "command": {"argv": ["true"]}})
    until = {"until": "2999-01-01T12:00:00+01:00"}
    paused = (await api.post("/api/schedule/report/pause", until)).body
    assert (paused["status"], paused["enabled"]) == ("paused", True)
    assert (paused["statusReason"], paused["nextRun"]) == ("until 2999-01-01T11:00:00.000Z", "2999-01-02T09:00:00.000Z")
    for_good = (await api.post("/api/schedule/report/pause")).body
    assert (for_good["statusReason"], for_good["nextRun"]) == (None, None)


async def test_a_patch_takes_back_only_what_there_is(api: Client) -> None:
    """Unknown fields are refused by name, also where they are null."""
    await api.put("report")
    refused = await api.ask("PATCH", "/api/schedule/report", {"maxLatenes": None, "timeout": None})
    assert refused.status == 400
    assert refused.body["errors"] == [{"field": "maxLatenes", "message": "unknown field; did you mean 'maxLateness'?"}]
    assert (await api.ask("PATCH", "/api/schedule/report", {"maxLateness": None, "nextRun": None})).status == 200


async def test_a_missing_schedule_is_a_404_with_the_problem_shape(api: Client) -> None:
    """Every refusal is problem+json, with all its fields."""
    missing = await api.get("/api/schedule/nothing")
    assert missing.status == 404
    assert missing.headers["Content-Type"] == "application/problem+json"
    assert set(missing.body) == {"type", "title", "status", "detail", "errors", "error"}
    assert missing.body["error"] == "there is no schedule 'nothing'"


async def test_prompts_more_often_than_hourly_are_refused_in_the_words_clients_know(api: Client) -> None:
    """Clients of the session scheduler compare this very text."""
    for schedule in ({"type": "interval", "intervalMinutes": 30}, {"type": "cron", "expression": "*/30 * * * *"}):
        refused = await api.put("often", {"schedule": schedule, "prompt": "hello"})
        assert refused.status == 400
        assert refused.body["error"] == "Minimum interval is 60 minutes (1 hour)"
        assert "limits.agent_interval_min in wakeful.toml" in refused.body["detail"]  # the cure, for people


async def test_every_fault_is_named_at_once(api: Client) -> None:
    """A person corrects a body once, not once per mistake."""
    bad = {"schedule": {"type": "cron", "expression": "61 * * * *"}, "comand": 1, "timeout": 7, "command": {"argv": []}}
    refused = await api.put("bad", bad)
    assert refused.status == 400
    assert {error["field"] for error in refused.body["errors"]} >= {"comand", "timeout", "command.argv"}
    assert "\n" not in refused.body["error"]


async def test_the_slug_in_the_body_must_match_the_path(api: Client) -> None:
    """A file copied to the wrong place is not written over another schedule."""
    assert (await api.put("one", {**EVERY, "slug": "one"})).status == 201
    assert (await api.put("one", {**EVERY, "slug": "two"})).status == 400


async def test_what_is_no_slug_is_refused_everywhere(api: Client) -> None:
    """400 where it would be made, 404 where it would be found; never a path on the disk."""
    asked = [("GET", ""), ("PATCH", ""), ("DELETE", ""), ("POST", "/run"), ("GET", "/runs"), ("GET", "/next")]
    for slug in ["..%2f..%2fx", "%2e%2e", "A", "a%00b", "x" * 65, "heartbeat", "%F0%9F%92%A9", "a%20b", "%ff"]:
        assert (await api.put(slug)).status in (400, 404)
        for method, path in asked:
            answer = await api.ask(method, f"/api/schedule/{slug}{path}", {} if method == "PATCH" else None)
            assert answer.status == 404, (slug, method, path, answer)


async def test_a_patch_merges(api: Client) -> None:
    """RFC 7396: objects merge, null takes back, everything else replaces."""
    await api.put("job", {**EVERY, "timeout": "5m", "retry": {"times": 3, "delay": "1m"}})
    patched = await api.ask("PATCH", "/api/schedule/job", {"timeout": None, "retry": {"times": 5}})
    assert patched.status == 200
    assert (patched.body["timeout"], patched.body["retry"]) == ("2h", {"times": 5, "delay": "1m"})
    assert (await api.ask("PATCH", "/api/schedule/job", {"schedule": {"every": "3h"}})).body["schedule"][
        "every"
    ] == "3h"
    other = {"schedule": {"type": "cron", "expression": "0 9 * * *", "timezone": "UTC"}}
    assert (await api.ask("PATCH", "/api/schedule/job", other)).body["schedule"] == other["schedule"]


async def test_a_patch_that_cannot_be_merged_is_refused(api: Client) -> None:
    """No name in a patch can reach anything but a field of the definition."""
    await api.put("job")
    for body in (
        [],
        1,
        "x",
        {"slug": "other"},
        {"self": 1},
        {"if_version": 1},
        {"catch_up": "all"},
        {"schedule": None},
    ):
        assert (await api.ask("PATCH", "/api/schedule/job", body)).status == 400
    assert (await api.ask("PATCH", "/api/schedule/job", raw="null")).status == 400


async def test_patching_enabled_switches_off_and_on(api: Client) -> None:
    """`enabled: false` disables, `enabled: true` equals resume."""
    await api.put("job")
    off = (await api.ask("PATCH", "/api/schedule/job", {"enabled": False})).body
    assert (off["status"], off["enabled"], off["nextRun"]) == ("disabled", False, None)
    on = (await api.ask("PATCH", "/api/schedule/job", {"enabled": True})).body
    assert (on["status"], on["enabled"]) == ("idle", True)


async def test_deleting_takes_it_away_once(api: Client) -> None:
    """204 without a body, then 404."""
    await api.put("job")
    gone = await api.ask("DELETE", "/api/schedule/job")
    assert (gone.status, gone.body) == (204, "")
    assert (await api.ask("DELETE", "/api/schedule/job")).status == 404


async def test_a_dry_run_tells_and_changes_nothing(api: Client) -> None:
    """The definition as it would be, the next five times, and no trace of it."""
    tried = await api.put("job", query="?dryRun=true")
    assert (tried.status, len(tried.body["next"])) == (200, 5)
    assert (await api.get("/api/schedule/job")).status == 404
    created = await api.put("job")
    tried = await api.ask("PATCH", "/api/schedule/job?dryRun=true", {"schedule": {"every": "5h"}})
    assert (tried.status, tried.body["schedule"]["every"], len(tried.body["next"])) == (200, "5h", 5)
    assert (await api.get("/api/schedule/job")).body == created.body
    assert (await api.put("job", MINUTELY_PROMPT, query="?dryRun=true")).status == 400


async def test_an_etag_guards_against_writing_over_what_was_not_seen(api: Client) -> None:
    """412 for PUT, PATCH and DELETE with an old tag; a schedule made anew under its slug has another tag."""
    old = (await api.put("job")).headers["ETag"]
    new = (await api.put("job", {**EVERY, "timeout": "5m"}, headers={"If-Match": old})).headers["ETag"]
    assert new != old
    for method, body in [("PUT", EVERY), ("PATCH", {"timeout": "6m"}), ("DELETE", None)]:
        stale = await api.ask(method, "/api/schedule/job", body, headers={"If-Match": old})
        assert (stale.status, stale.headers["ETag"]) == (412, new)
    assert (await api.get("/api/schedule/job")).body["timeout"] == "5m"
    assert (await api.ask("DELETE", "/api/schedule/job", headers={"If-Match": f'"x", {new}'})).status == 204
    await api.put("job")
    assert (await api.put("job", {**EVERY, "timeout": "7m"}, headers={"If-Match": old})).status == 412


async def test_star_asks_for_something_or_for_nothing(api: Client) -> None:
    """`If-Match: *` writes only over something, `If-None-Match: *` only where nothing is."""
    assert (await api.put("job", headers={"If-Match": "*"})).status == 412
    assert (await api.put("job", headers={"If-Match": '"1-0"'})).status == 412
    assert (await api.ask("DELETE", "/api/schedule/job", headers={"If-Match": '"1-0"'})).status == 404
    assert (await api.put("job", headers={"If-None-Match": "*"})).status == 201
    assert (await api.put("job", headers={"If-None-Match": "*"})).status == 412
    assert (await api.put("job", headers={"If-Match": "*"})).status == 200
    assert (await api.put("job", headers={"If-Match": "no quotes"})).status == 400


async def test_a_manual_run_is_accepted_or_waited_for(api: Client) -> None:
    """202 with the run's id; with `wait`, 200 with the run as it ended."""
    await api.put("job", MANUAL)
    accepted = await api.post("/api/schedule/job/run?wait=true")
    assert (accepted.status, accepted.body["outcome"], accepted.body["trigger"]) == (200, "succeeded", "manual")
    accepted = await api.post("/api/schedule/job/run")
    assert (accepted.status, list(accepted.body)) == (202, ["runId"])
    assert (await api.get(f"/api/runs/{accepted.body['runId']}")).body["slug"] == "job"


async def test_a_run_that_takes_longer_than_the_wait_is_still_under_way(api: Client) -> None:
    """202 after the timeout; meanwhile another request for a run is a conflict."""
    await api.put("slow", {**MANUAL, "command": {"argv": ["sleep", "20"]}})
    late = await api.post("/api/schedule/slow/run?wait=true&timeout=100ms")
    assert (late.status, list(late.body)) == (202, ["runId"])
    again = await api.post("/api/schedule/slow/run")
    assert again.status == 409
    assert late.body["runId"] in again.body["error"]
    assert (await api.get("/api/schedule/slow")).body["status"] == "running"


async def test_a_wait_that_makes_no_sense_is_refused_before_anything_runs(api: Client) -> None:
    """400, and no run in the ledger."""
    await api.put("job", MANUAL)
    for query in ("timeout=2m", "timeout=x", "wait=perhaps", "timeout=-1", "waits=true"):
        assert (await api.post(f"/api/schedule/job/run?{query}")).status == 400
    assert (await api.get("/api/runs")).body["runs"] == []


async def test_pause_and_resume(api: Client) -> None:
    """A paused one keeps `enabled: true`; a pause may have an end, which must lie ahead."""
    await api.put("job")
    paused = await api.post("/api/schedule/job/pause")
    assert (paused.status, paused.body["status"], paused.body["enabled"]) == (200, "paused", True)
    resumed = await api.post("/api/schedule/job/resume", {})
    assert (resumed.status, resumed.body["status"]) == (200, "idle")
    assert (await api.post("/api/schedule/job/pause", {"until": "2999-01-01T00:00:00+02:00"})).status == 200
    for bad in ({"until": "2001-01-01T00:00:00Z"}, {"until": "tomorrow"}, {"until": 5}, {"untill": "x"}, []):
        assert (await api.post("/api/schedule/job/pause", bad)).status == 400
    assert (await api.post("/api/schedule/none/pause")).status == 404
    await api.put("once", {"schedule": {"type": "manual"}, "command": {"argv": ["true"]}, "enabled": False})
    assert (await api.post("/api/schedule/once/pause")).status == 409


async def test_the_next_times_lie_strictly_after(api: Client) -> None:
    """Also when the + of an offset was not escaped."""
    daily = {"schedule": {"type": "times", "times": ["09:00"], "timezone": "UTC"}, "command": {"argv": ["true"]}}
    await api.put("daily", daily)
    asked = await api.get("/api/schedule/daily/next?count=2&after=2030-01-01T10:00:00+01:00")
    assert asked.body == {"times": ["2030-01-02T09:00:00.000Z", "2030-01-03T09:00:00.000Z"]}
    for bad in ("count=0", "count=1001", "count=x", "after=noon", "before=1"):
        assert (await api.get(f"/api/schedule/daily/next?{bad}")).status == 400


async def test_runs_and_statistics_of_a_schedule(api: Client) -> None:
    """Newest first, in pages; counts and rate in the statistics."""
    await api.put("job", MANUAL)
    ids = [(await api.post("/api/schedule/job/run?wait=true")).body["runId"] for _ in range(3)]
    page = (await api.get("/api/schedule/job/runs?limit=2")).body
    assert [run["runId"] for run in page["runs"]] == ids[:0:-1]
    rest = (await api.get(f"/api/schedule/job/runs?limit=2&cursor={page['next']}")).body
    assert ([run["runId"] for run in rest["runs"]], rest["next"]) == (ids[:1], None)
    stats = (await api.get("/api/schedule/job/stats?since=2020-01-01T00:00:00Z")).body
    assert (stats["counts"], stats["successRate"], stats["streak"]) == ({"succeeded": 3}, 1.0, 3)
    assert stats["lastRun"].endswith("Z")
    assert (await api.get("/api/schedule/job/runs?cursor=x")).status == 400


async def test_a_clamped_interval_is_told(api: Client) -> None:
    """Something that was changed on the way in is not changed in silence."""
    often = await api.put("often", {**EVERY, "schedule": {"type": "every", "every": "1s"}})
    assert often.body["schedule"]["every"] == "10s"
    assert "below the minimum" in often.headers["Wakeful-Warning"]


async def test_many_writers_lose_nothing(api: Client) -> None:
    """What was answered with success is there."""
    answers = await asyncio.gather(*(api.put(f"job-{n:03}") for n in range(100)))
    assert {answer.status for answer in answers} == {201}
    assert len((await api.get("/api/schedule?limit=1000")).body["schedules"]) == 100


async def test_retries_by_exception_read_back_and_bad_ones_are_refused(api: Client) -> None:
    """In one shape with the Python API."""
    retry = {"times": 4, "delay": "10s", "backoff": 2, "delayMax": "1h", "on": ["OSError"], "giveUpOn": ["ValueError"]}
    call = {"schedule": EVERY["schedule"], "call": {"target": "time:time"}}
    written = await api.put("job", {**call, "retry": retry})
    assert (written.status, written.body["retry"]) == (201, retry)
    patched = await api.ask("PATCH", "/api/schedule/job", {"retry": {"on": None, "times": 2}})
    assert patched.body["retry"] == {name: value for name, value in retry.items() if name != "on"} | {"times": 2}
    refused = await api.put("bad", {**call, "retry": {"on": ["NoSuchError"], "backoff": 99}})
    assert refused.status == 400
    assert {error["field"] for error in refused.body["errors"]} == {"retry.on", "retry.backoff"}
    refused = await api.put("bad", {**EVERY, "retry": {"on": ["OSError"]}})
    assert (refused.status, refused.body["errors"][0]["field"]) == (400, "retry.on")


async def test_a_schedule_may_be_one_text(api: Client) -> None:
    """It is stored in its structured form; a text with two meanings is refused with both."""
    written = await api.put("report", {"schedule": "weekdays at 9:00 Europe/Berlin", "command": {"argv": ["true"]}})
    assert written.status == 201
    assert written.body["schedule"] == {"type": "cron", "expression": "0 9 * * 1-5", "timezone": "Europe/Berlin"}
    patched = await api.ask("PATCH", "/api/schedule/report", {"schedule": "every 2h"})
    assert patched.body["schedule"] == {"type": "every", "every": "2h"}
    refused = await api.put("report", {"schedule": "20m", "command": {"argv": ["true"]}})
    assert refused.status == 400
    assert refused.body["errors"] == [
        {"field": "schedule", "message": "'20m' has two meanings; write 'every 20m' or 'in 20m'"}
    ]
