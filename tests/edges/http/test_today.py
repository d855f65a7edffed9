"""What needs a person, what happened, and the search in the ledger, over HTTP."""

import asyncio
from typing import Any

from edges.http.kit import MANUAL, Client
from patience import PATIENCE

FALSE = {"command": {"argv": ["sh", "-c", "echo done; echo 'no such table' >&2; exit 3"]}}


async def until(api: Client, condition: Any) -> Any:
    """Look at today until it is so."""
    async with asyncio.timeout(PATIENCE):
        while not condition(today := (await api.get("/api/today")).body):
            await asyncio.sleep(0.05)
    return today


def of_kind(today: Any, kind: str) -> list[Any]:
    return [item for item in today["attention"] if item["kind"] == kind]


async def test_a_calm_day_is_short(api: Client) -> None:
    """Nothing needs a person; what comes next is listed, each schedule once."""
    await api.put("well")
    await api.put("later", {"schedule": {"type": "every", "every": "2h"}, "command": {"argv": ["true"]}})
    today = (await api.get("/api/today")).body
    assert [item for item in today["attention"] if item["level"] != "note"] == []
    assert [fire["slug"] for fire in today["upcoming"]] == ["well", "later"]
    assert (today["running"], today["happened"]["runs"], today["cost"]["cost"]) == ([], [], 0.0)


async def test_each_problem_is_one_item_with_what_to_act_on(api: Client) -> None:
    """A failing schedule, one that is paused, and a dead letter; the worst first."""

    async def broken(text: str) -> None:
        raise RuntimeError("it is down")

    api.app.register_channel("phone", "7", broken)
    await api.put("halted")
    await api.post("/api/schedule/halted/pause")
    await api.put("fails", {**FALSE, "schedule": "in 1s"})
    letter = (await api.post("/api/deliveries", {"text": "the kettle boils", "channel": "phone"})).body
    today = await until(api, lambda day: day["counts"]["failing"] and of_kind(day, "delivery"))
    (failing,) = of_kind(today, "failing")
    assert (failing["slug"], failing["level"]) == ("fails", "bad")
    assert "exited with 3: no such table" in failing["sentence"]
    run = (await api.get(f"/api/runs/{failing['runId']}")).body
    assert (run["slug"], run["outcome"], run["stderr"], run["output"]) == (
        "fails",
        "failed",
        "no such table\n",
        "done\n",
    )
    (delivery,) = of_kind(today, "delivery")
    assert delivery["deliveryId"] == letter["id"]
    assert "the kettle boils" in delivery["sentence"] and "it is down" in delivery["sentence"]
    (paused,) = of_kind(today, "paused")
    assert (paused["slug"], paused["level"]) == ("halted", "note")
    levels = [item["level"] for item in today["attention"]]
    assert levels == sorted(levels, key=["bad", "warn", "note"].index)
    assert today["happened"]["counts"]["failed"] >= 1
    assert today["happened"]["runs"][0]["slug"] == "fails"
    later = (await api.get(f"/api/today?since={today['now'].replace('2', '3', 1)}")).body  # a thousand years later
    assert (later["happened"]["counts"], later["happened"]["runs"]) == ({}, [])


async def test_a_manual_run_that_failed_is_an_item_until_it_is_acknowledged(api: Client) -> None:
    """Its schedule is failing wherever health is shown, with no alert. The item says that it can be acknowledged."""
    await api.put("tried", {**FALSE, "schedule": {"type": "manual"}})
    assert (await api.post("/api/schedule/tried/run?wait=true")).body["outcome"] == "failed"
    (failing,) = of_kind((await api.get("/api/today")).body, "failing")
    assert (failing["slug"], failing["byHand"], failing["level"]) == ("tried", True, "bad")
    assert failing["sentence"].startswith("Its last manual run failed: ")
    shown = (await api.get("/api/schedule?troubled=true")).body["schedules"]
    assert [(one["slug"], one["health"], one["consecutiveErrors"]) for one in shown] == [("tried", "failing", 0)]
    assert (await api.get("/api/alerts")).body["alerts"] == []
    assert (await api.post("/api/schedule/tried/acknowledge")).status == 200
    assert of_kind((await api.get("/api/today")).body, "failing") == []
    assert (await api.get("/api/schedule/tried")).body["health"] == "ok"


async def test_the_ledger_is_searched(api: Client) -> None:
    """By text in the name or what was said, by schedule, and by time; the filters add up."""
    await api.put("tea", {**MANUAL, "command": {"argv": ["echo", "the kettle BOILS"]}})
    await api.put("coffee", {**MANUAL, **FALSE})
    for slug in ("tea", "coffee", "tea"):
        await api.post(f"/api/schedule/{slug}/run?wait=true")

    async def slugs(query: str) -> list[str]:
        answer = await api.get(f"/api/runs?{query}")
        assert answer.status == 200, answer.body
        return [run["slug"] for run in answer.body["runs"]]

    assert await slugs("q=boils") == ["tea", "tea"]
    assert await slugs("q=COFF") == ["coffee"]
    assert await slugs("q=such+table") == ["coffee"]
    assert await slugs("slug=coffee") == ["coffee"]
    assert await slugs("slug=tea&q=table") == []
    assert await slugs("outcome=failed&q=tea") == []
    newest = (await api.get("/api/runs?limit=1")).body["runs"][0]
    assert await slugs(f"since={newest['startedAt']}") == ["tea"]
    assert await slugs(f"until={newest['startedAt']}") == ["coffee", "tea"]
    page = (await api.get("/api/runs?q=tea&limit=1")).body
    rest = (await api.get(f"/api/runs?q=tea&limit=1&cursor={page['next']}")).body
    assert page["runs"][0]["runId"] > rest["runs"][0]["runId"]
    assert (await api.get("/api/runs?slug=nowhere")).status == 404
