"""Cancelling a handler's run: during its side effect nothing proves what happened, so a person is asked."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from edges.http.kit import Client, served
from features.kit import World, virtual
from wakeful.core.time.instants import MINUTE
from workflows.handlers import Handler, flow, handling
from workflows.kit import Inbox, counts, ledger


@pytest.fixture
async def handler() -> AsyncIterator[Handler]:
    async with handling() as one:
        yield one


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    async with served(tmp_path) as one:
        yield one


async def seen(client: Client, is_so: Callable[[Any], Any]) -> Any:
    for _ in range(3000):
        view = (await client.get("/api/workflows/inbox")).body
        if is_so(view):
            return view
        await asyncio.sleep(0.02)
    raise AssertionError(view)


@pytest.mark.parametrize("choice", ["retry", "didNotHappen", "skip"])
async def test_cancelling_during_the_side_effect_asks_a_person(client: Client, handler: Handler, choice: str) -> None:
    """The server finishes what it got: the reservations stay, Today has an entry, and each answer is possible."""
    asked, finish, finished = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def slow(_: Any) -> dict[str, Any]:
        asked.set()
        await finish.wait()
        finished.set()
        return {"result": "sent"}

    await client.ask("PUT", "/api/workflows/inbox", flow(handler.address))
    handler.script["mutate"] = [slow]
    await client.post("/api/workflows/inbox/topics/mail/messages", {"id": "a", "payload": 1})
    await asked.wait()
    run_id = (await seen(client, lambda view: view["openRun"]))["openRun"]["runId"]
    assert (await client.get(f"/api/runs/{run_id}")).body["rung"] == "sent"
    assert (await client.post(f"/api/runs/{run_id}/cancel")).status == 202
    view = await seen(client, lambda view: view["error"] is not None)
    finish.set()
    await finished.wait()
    assert "it was cancelled during its side effect; it is unknown whether it happened" in view["error"]
    assert (view["openRun"]["awaits"], view["topics"]["mail"]["reserved"]) == ("uncertain", 1)
    run = (await client.get(f"/api/runs/{run_id}")).body
    assert (run["outcome"], run["reason"]) == ("waiting", "uncertain")
    assert [(one["outcome"], one["rung"]) for one in run["attempts"]] == [("unknown", "sent")]
    today = (await client.get("/api/today")).body
    assert any("it was cancelled during its side effect" in item["sentence"] for item in today["attention"])
    assert (await client.get("/api/alerts")).body["alerts"] == []
    assert (await client.post(f"/api/runs/{run_id}/cancel")).status == 409
    assert (await client.post(f"/api/workflows/inbox/runs/{run_id}/resolve", {"choice": choice})).status == 200
    status = "skipped" if choice == "skip" else "consumed"
    view = await seen(client, lambda view: view["topics"]["mail"][status] == 1 and view["openRun"] is None)
    assert view["error"] is None
    assert handler.phases().count("mutate") == (1 if choice == "skip" else 2)


@virtual
async def test_a_function_that_is_cancelled_in_its_side_effect(world: World) -> None:
    """The same for a function: how far it got is not known."""
    world.sleep_max = MINUTE
    inbox = Inbox(world, period="30d")
    bench = await inbox.open()
    inbox.mutate.script = [3_600_000, 200_000]  # the second call is long enough to be cancelled, too
    await inbox.flow.publish("mail", "a", 1)
    await world.sleep("1m")
    run_id = int((await inbox.flow.get())["openRun"]["runId"])
    assert (await bench.ledger.get(run_id)).rung == "started"
    await bench.cancel(run_id)
    await world.sleep("1m")
    view = await inbox.flow.get()
    assert (view["openRun"]["awaits"], await counts(bench)) == ("uncertain", {"reserved": 1})
    assert bench.alerted == []
    await inbox.flow.resolve(run_id, "retry")
    await world.sleep("10m")
    assert await counts(bench) == {"consumed": 1}
    await bench.stop()


@virtual
async def test_a_run_that_is_cancelled_in_prepare_is_cancelled(world: World) -> None:
    """Nothing happened outside: the message is pending, and the consumer runs again later."""
    inbox = Inbox(world, period="30d")
    bench = await inbox.open()
    inbox.prepare.script = [3_600_000]
    await inbox.flow.publish("mail", "a", 1)
    await world.sleep("1s")
    view = await inbox.flow.get()
    await bench.cancel(int(view["openRun"]["runId"]))
    await world.sleep("1s")
    assert (await ledger(bench))[-1] == "cancelled"
    await world.sleep("1m")
    assert await counts(bench) == {"consumed": 1}
    await bench.stop()
