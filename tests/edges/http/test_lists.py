"""Lists: pages, filters, cursors, and what they cost."""

import time
from datetime import datetime
from typing import Any

from edges.http.kit import EVERY, MANUAL, Client
from wakeful.app import New
from wakeful.core.actions import Command
from wakeful.core.timing import Every

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


async def test_parameters_that_make_no_sense_are_refused(api: Client) -> None:
    """Also unknown ones: a misspelt filter must not list everything."""
    for query in ("limit=0", "limit=1001", "limit=x", "status=asleep", "cursor=../x", "stauts=idle", "q=" + "x" * 201):
        refused = await api.get(f"/api/schedule?{query}")
        assert refused.status == 400, query
        assert refused.body["errors"][0]["field"] == query.partition("=")[0]
    assert "did you mean 'status'" in (await api.get("/api/schedule?stauts=idle")).body["error"]
    assert (await api.get("/api/nodes?x=1")).status == 400


async def test_a_page_costs_the_same_among_ten_thousand(api: Client) -> None:
    """First page, last page, and a filter that nothing fits: work is bounded, and the cursor leads to the end."""
    await fill(api, 100)
    few = await cost(api, "/api/schedule?limit=50")
    await fill(api, MANY)
    assert await cost(api, "/api/schedule?limit=50") < few * 5 + 0.05
    assert await cost(api, "/api/schedule?limit=50&cursor=s09900") < few * 5 + 0.05
    assert await cost(api, "/api/upcoming?limit=50") < few * 20 + 0.2
    pages, cursor = 0, ""
    while cursor is not None:
        page = (await api.get(f"/api/schedule?status=paused&limit=50{cursor}")).body
        assert page["schedules"] == []
        pages += 1
        cursor = None if page["next"] is None else f"&cursor={page['next']}"
    assert pages == MANY // 1_000 + 1


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
    for bad in ("limit=0", "cursor=-1", "outcome=great", "slug=x"):
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
    now = datetime.now().astimezone()
    year = now.year + 1
    times: dict[str, Any] = {"type": "times", "timezone": "UTC"}
    await api.put("nine", {**EVERY, "schedule": {**times, "times": ["09:00"]}})
    await api.put("ten", {**EVERY, "schedule": {**times, "times": ["10:00"]}})
    await api.put("off", {**EVERY, "enabled": False})
    await api.put("paused", EVERY)
    await api.post("/api/schedule/paused/pause")
    await api.put("later", {**EVERY, "schedule": {**times, "times": ["09:30"]}})
    await api.post("/api/schedule/later/pause", {"until": f"{year}-06-01T00:00:00Z"})
    fires = (await api.get(f"/api/upcoming?until={year}-06-02T00:00:00Z&limit=1000")).body
    listed = [(fire["plannedAt"], fire["slug"]) for fire in fires["upcoming"]]
    assert listed == sorted(listed)
    assert [slug for at, slug in listed if at > f"{year}-06-01"] == ["nine", "later", "ten"]
    assert {slug for at, slug in listed if at < f"{year}-06-01"} == {"nine", "ten"}
    assert (fires["isCut"], fires["until"]) == (False, f"{year}-06-02T00:00:00.000Z")


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
    await api.app.add_many([New(f"s{n:05}", Every(3_600_000), Command(("true",)), {}) for n in range(count)])


async def cost(api: Client, path: str) -> float:
    """Seconds, the best of a few."""
    best = 1e9
    for _ in range(5):
        begun = time.perf_counter()
        assert (await api.get(path)).status == 200
        best = min(best, time.perf_counter() - begun)
    return best
