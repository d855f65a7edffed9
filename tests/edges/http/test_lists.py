"""Lists: pages, filters, cursors, and what they cost."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from edges.http.kit import EVERY, MANUAL, Client, served
from edges.http.steps import Steps
from far_away import minute_away
from patience import PATIENCE
from wakeful import New, once
from wakeful.core.time.timing import Every

MANY = 10_000


async def test_a_list_goes_on_where_the_page_before_ended(api: Client) -> None:
    """In slug order, without gap or repetition; the last page has no `next`."""
    for slug in ("c", "a", "e", "b", "d"):
        await api.put(slug)
    seen: list[str] = []
    cursor = ""
    for _ in range(3):
        page = (await api.get(f"/api/schedule?limit=2{cursor}")).body
        seen += [schedule["slug"] for schedule in page["schedules"]]
        cursor = f"&cursor={page['next']}"
    assert (seen, page["next"]) == (["a", "b", "c", "d", "e"], None)


async def test_a_list_can_be_narrowed_by_status_and_by_text(api: Client) -> None:
    """The text is looked for in the slug and in what the schedule does, whatever its case."""
    await api.put("one", {**EVERY, "command": {"argv": ["make", "Report"]}})
    await api.put("two")
    await api.put("report-daily")
    await api.post("/api/schedule/two/pause")

    async def slugs(query: str) -> list[str]:
        return [schedule["slug"] for schedule in (await api.get(f"/api/schedule?{query}")).body["schedules"]]

    assert await slugs("status=paused") == ["two"]
    assert await slugs("status=idle") == ["one", "report-daily"]
    assert await slugs("q=REPORT") == ["one", "report-daily"]
    assert await slugs("q=argv") == []
    assert await slugs("q=report&status=paused") == []
    assert await slugs("q=") == ["one", "report-daily", "two"]


async def test_those_in_trouble_can_be_asked_for(api: Client) -> None:
    """Failing or late, in slug order and page by page; one that a person paused or disabled is neither."""
    await api.put("well")
    await api.put("halted")
    await api.post("/api/schedule/halted/pause")
    await api.put("off", {**EVERY, "enabled": False})
    failing = ("fails", "fails-too")
    for slug in failing:
        await api.put(slug, {"command": {"argv": ["false"]}, "schedule": "in 1s"})
    async with asyncio.timeout(PATIENCE):
        while {(await api.get(f"/api/schedule/{slug}")).body["health"] for slug in failing} != {"failing"}:
            await asyncio.sleep(0.05)
    first = (await api.get("/api/schedule?troubled=true&limit=1")).body
    rest = (await api.get(f"/api/schedule?troubled=true&cursor={first['next']}")).body
    assert [one["slug"] for one in first["schedules"] + rest["schedules"]] == ["fails", "fails-too"]
    assert rest["next"] is None
    for health, slugs in {
        "failing": ["fails", "fails-too"],
        "off": ["halted", "off"],
        "ok": ["well"],
        "late": [],
    }.items():
        page = (await api.get(f"/api/schedule?health={health}")).body
        assert [one["slug"] for one in page["schedules"]] == slugs


async def test_parameters_that_make_no_sense_are_refused(api: Client) -> None:
    """Also unknown ones: a misspelt filter must not list everything."""
    for query in ("limit=0", "limit=1001", "limit=x", "status=asleep", "cursor=../x", "stauts=idle", "q=" + "x" * 201):
        refused = await api.get(f"/api/schedule?{query}")
        assert refused.status == 400, query
        assert refused.body["errors"][0]["field"] == query.partition("=")[0]
    assert "did you mean 'status'" in (await api.get("/api/schedule?stauts=idle")).body["error"]
    assert (await api.get("/api/nodes?x=1")).status == 400


@pytest.mark.torture
async def test_a_page_costs_the_same_among_ten_thousand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """First page, last page, and what lies ahead: the database does as much for each as among a hundred."""
    steps = Steps(monkeypatch)
    paths = [
        "/api/schedule?limit=50",
        "/api/schedule?limit=50&cursor=s00040",
        "/api/upcoming?limit=50",
        "/api/schedule?limit=50&recent=20&cursor=s00020",
        "/api/timeline?cursor=s00020",
    ]
    async with served(tmp_path) as api:
        await fill(api, 100)
        few = [await steps.of(api, path) for path in paths]
        assert all(few)
        await fill(api, MANY)
        many = [await steps.of(api, path.replace("s000", "s05")) for path in paths]
        assert [path for path, before, now in zip(paths, few, many, strict=True) if now > 3 * before] == []


@pytest.mark.torture
async def test_among_ten_thousand_a_filter_that_nothing_fits_leads_to_the_end(api: Client) -> None:
    """Work is bounded, and the cursor goes on."""
    await fill(api, MANY)
    for halted in ("status=paused", "status=disabled", "troubled=true"):
        assert (await api.get(f"/api/schedule?{halted}")).body == {
            "schedules": [],
            "next": None,
        }  # found, not looked for
    pages, cursor = 0, ""
    while cursor is not None:
        page = (await api.get(f"/api/schedule?status=running&limit=50{cursor}")).body
        assert page["schedules"] == []
        pages += 1
        cursor = None if page["next"] is None else f"&cursor={page['next']}"
    assert pages == MANY // 1_000 + 1


async def test_schedules_are_asked_for_by_name(api: Client) -> None:
    """Those that are there, in slug order; names that are none, and too many of them, are refused."""
    for slug in ("a", "b", "c"):
        await api.put(slug)
    page = (await api.get("/api/schedule?slugs=c,a,gone")).body
    assert ([one["slug"] for one in page["schedules"]], page["next"]) == (["a", "c"], None)
    for wrong in ("", ",", "../x", ",".join(f"s{n}" for n in range(101))):
        refused = await api.get(f"/api/schedule?slugs={wrong}")
        assert (refused.status, refused.body["errors"][0]["field"]) == (400, "slugs"), wrong


async def test_a_schedule_says_in_words_when_it_runs(api: Client) -> None:
    """Read back, rehearsed and listed."""
    daily = {**EVERY, "schedule": {"type": "times", "times": ["09:00"], "timezone": "UTC"}}
    assert (await api.put("daily", daily, query="?dryRun=true")).body["description"] == "at 09:00 every day (UTC)"
    await api.put("daily", daily)
    (listed,) = (await api.get("/api/schedule")).body["schedules"]
    assert listed["description"] == "at 09:00 every day (UTC)"


async def test_recent_rows_of_the_ledger_are_listed_beside_each_schedule(api: Client) -> None:
    """Newest first, so many of each, in short: an error of any length is cut, a reply is left out."""
    await api.put("good", MANUAL)
    await api.put("bad", {**MANUAL, "command": {"argv": ["sh", "-c", "printf %0500d 7 >&2; exit 3"]}})
    for slug in ("good", "bad", "good", "good"):
        await api.post(f"/api/schedule/{slug}/run?wait=true")
    bad, good = (await api.get("/api/schedule?recent=2")).body["schedules"]
    assert [run["outcome"] for run in good["recent"]] == ["succeeded", "succeeded"]
    assert int(good["recent"][0]["runId"]) > int(good["recent"][1]["runId"])
    assert [(run["outcome"], len(run["error"])) for run in bad["recent"]] == [("failed", 200)]
    assert "recent" not in (await api.get("/api/schedule")).body["schedules"][0]
    assert (await api.get("/api/schedule?recent=31")).status == 400


async def test_the_timeline_has_what_was_and_what_is_to_come(api: Client) -> None:
    """Of each schedule its runs and its planned instants between two times; none of one that is paused."""
    timing = {"type": "cron", "expression": f"{minute_away()} * * * *", "timezone": "Europe/Berlin"}
    hourly = {**EVERY, "schedule": timing}
    for slug in ("job", "still"):
        await api.put(slug, hourly)
    await api.post("/api/schedule/still/pause")
    run_id = (await api.post("/api/schedule/job/run?wait=true")).body["runId"]
    told = (await api.get("/api/timeline")).body
    job, still = told["rows"]
    assert ([run["runId"] for run in job["runs"]], len(job["planned"])) == ([run_id], 24)
    assert (job["timezone"], job["wholeSince"], job["wholeUntil"]) == ("Europe/Berlin", told["since"], told["until"])
    assert (still["status"], still["planned"], still["runs"]) == ("paused", [], [])
    assert (job["health"], still["health"]) == ("ok", "off")
    planned = (await api.get("/api/schedule/job/next?count=24")).body["times"]
    assert job["planned"] == planned
    later = (await api.get(f"/api/timeline?slugs=job&since={planned[0]}&until={planned[2]}")).body
    assert (later["rows"][0]["runs"], later["rows"][0]["planned"]) == ([], planned[:3])
    assert (await api.get("/api/timeline?until=2020-01-01T00:00:00Z")).body["errors"][0]["field"] == "until"


async def test_the_timeline_is_bounded_and_says_how_far_it_reaches(api: Client) -> None:
    """A schedule that rings more often than can be shown is cut, on the side of the past and on that of the future."""
    await api.put("often", {**MANUAL, "schedule": {"type": "every", "every": "10s"}})
    hours = outside_hours()
    await api.put("narrow", {**EVERY, "schedule": {"type": "every", "every": "10s"}, **hours})
    (narrow, often) = (await api.get("/api/timeline?limit=2")).body["rows"]
    assert (len(often["planned"]), often["wholeUntil"]) == (120, often["planned"][-1])
    assert (len(narrow["planned"]), narrow["wholeUntil"]) == (120, narrow["planned"][-1])
    assert narrow["planned"][0][11:16] == hours["activeHours"]["start"]
    assert narrow["wholeUntil"] < (await api.get("/api/timeline")).body["until"]
    page = (await api.get("/api/timeline?limit=1")).body
    assert ([row["slug"] for row in page["rows"]], page["next"]) == (["narrow"], "narrow")
    assert (await api.get("/api/timeline?limit=51")).status == 400


def outside_hours() -> dict[str, Any]:
    """Active hours that begin in twelve hours and last one."""
    hour = (datetime.now(UTC).hour + 12) % 24
    return {"activeHours": {"start": f"{hour:02}:00", "end": f"{(hour + 1) % 24:02}:00", "timezone": "UTC"}}


async def test_the_ledger_lists_all_runs_newest_first(api: Client) -> None:
    """With a cursor, and narrowed by outcome."""
    await api.put("good", MANUAL)
    await api.put("bad", {**MANUAL, "command": {"argv": ["false"]}})
    for slug in ("good", "bad", "good"):
        await api.post(f"/api/schedule/{slug}/run?wait=true")
    page = (await api.get("/api/runs?limit=2")).body
    assert [run["slug"] for run in page["runs"]] == ["good", "bad"]
    rest = (await api.get(f"/api/runs?limit=2&cursor={page['next']}")).body
    assert ([run["slug"] for run in rest["runs"]], rest["next"]) == (["good"], None)
    failed = (await api.get("/api/runs?outcome=failed")).body["runs"]
    assert [run["slug"] for run in failed] == ["bad"]
    for bad in ("limit=0", "cursor=-1", "outcome=great", "colour=x", "since=x"):
        assert (await api.get(f"/api/runs?{bad}")).status == 400


async def test_one_run_has_its_ladder_and_its_attempts(api: Client) -> None:
    """How far it got, and when."""
    await api.put("job", MANUAL)
    run_id = (await api.post("/api/schedule/job/run?wait=true")).body["runId"]
    run = (await api.get(f"/api/runs/{run_id}")).body
    assert (run["rung"], run["attempts"][0]["outcome"]) == ("finished", "succeeded")
    assert set(run["ladder"]) >= {"sent", "started"}
    for missing in ("999999", "x", "9" * 30, "-1", "1.0", "%00"):
        assert (await api.get(f"/api/runs/{missing}")).status == 404


async def test_what_is_to_come_is_in_order(api: Client) -> None:
    """Of all schedules; paused and disabled ones do not come, one that goes on later comes after that."""
    day, following = (f"{datetime.now(UTC) + timedelta(days=days):%Y-%m-%d}" for days in (30, 31))
    times: dict[str, Any] = {"type": "times", "timezone": "UTC"}
    await api.put("nine", {**EVERY, "schedule": {**times, "times": ["09:00"]}})
    await api.put("ten", {**EVERY, "schedule": {**times, "times": ["10:00"]}})
    await api.put("off", {**EVERY, "enabled": False})
    await api.put("paused", EVERY)
    await api.post("/api/schedule/paused/pause")
    await api.put("later", {**EVERY, "schedule": {**times, "times": ["09:30"]}})
    await api.post("/api/schedule/later/pause", {"until": f"{day}T00:00:00Z"})
    fires = (await api.get(f"/api/upcoming?until={following}T00:00:00Z&limit=1000")).body
    listed = [(fire["plannedAt"], fire["slug"]) for fire in fires["upcoming"]]
    assert listed == sorted(listed)
    assert [slug for at, slug in listed if at > day] == ["nine", "later", "ten"]
    assert {slug for at, slug in listed if at < day} == {"nine", "ten"}
    assert (fires["isCut"], fires["until"]) == (False, f"{following}T00:00:00.000Z")


async def test_what_is_to_come_is_bounded(api: Client) -> None:
    """A cut list says up to where it is whole; active hours leave out what will not start."""
    await api.put("often", {**EVERY, "schedule": {"type": "every", "every": "10s"}})
    cut = (await api.get("/api/upcoming?limit=3")).body
    assert (len(cut["upcoming"]), cut["isCut"]) == (3, True)
    assert cut["until"] >= cut["upcoming"][-1]["dueAt"]
    # Half a day at least passes before it may start: more instants than are looked at.
    hour = (datetime.now().astimezone().hour + 20) % 24
    hours = {"start": f"{hour:02}:00", "end": f"{hour:02}:01"}
    often = {**EVERY, "schedule": {"type": "every", "every": "10s"}, "activeHours": hours}
    await api.put("often", often)
    assert (await api.get("/api/upcoming")).body["upcoming"] is not None
    for bad in ("until=soon", "limit=0", "limit=1001", "days=7"):
        assert (await api.get(f"/api/upcoming?{bad}")).status == 400
    assert (await api.get("/api/upcoming?until=1971-01-01T00:00:00Z")).body["upcoming"] == []


async def fill(api: Client, count: int) -> None:
    await api.app.add_many([New(f"s{n:05}", Every(3_600_000), command=["true"]) for n in range(count)])


async def test_finished_one_shots_can_be_left_out_or_asked_for(tmp_path: Path) -> None:
    """Without the parameter the list is as it always was."""
    async with served(tmp_path) as api:
        await api.app.add("shot", once("+1s"), command=["true"])
        await api.app.add("dud", once("+1s"), command=["false"], retry={"times": 0})
        await api.put("every")

        async def slugs(query: str = "") -> list[str]:
            return [one["slug"] for one in (await api.get(f"/api/schedule{query}")).body["schedules"]]

        async with asyncio.timeout(PATIENCE):
            while await slugs("?status=done") != ["dud", "shot"]:
                await asyncio.sleep(0.05)
        assert await slugs() == ["dud", "every", "shot"]
        assert await slugs("?finished=false") == ["dud", "every"]
        assert await slugs("?finished=true") == ["shot"]
        assert (await api.get("/api/schedule?finished=maybe")).status == 400


async def test_the_ledger_of_a_removed_schedule_stays_under_its_slug(tmp_path: Path) -> None:
    """A new one of that slug has a ledger of its own."""
    async with served(tmp_path) as api:
        await api.put("job", MANUAL)
        first = (await api.post("/api/schedule/job/run?wait=true")).body["runId"]
        assert (await api.ask("DELETE", "/api/schedule/job")).status == 204
        assert [run["runId"] for run in (await api.get("/api/schedule/job/runs")).body["runs"]] == [first]
        assert (await api.get("/api/schedule/job/stats")).body["counts"] == {"succeeded": 1}
        assert (await api.get("/api/schedule/job")).status == 404
        await api.put("job", MANUAL)
        assert (await api.get("/api/schedule/job/runs")).body["runs"] == []
        assert (await api.get("/api/schedule/never/runs")).status == 404
