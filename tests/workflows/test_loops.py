"""Workflows that feed each other through the API: the limit of one workflow holds for the whole loop."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from edges.http.kit import Client, served
from features.kit import World, virtual
from wakeful import Context, Prepare
from wakeful.core.workflow import rules
from workflows.handlers import Handler, handling, take_all
from workflows.kit import Calls, named, rows, state_of
from workflows.kit import take_all as take


def loop(world: World, bench: Any, *names: str) -> dict[str, Calls]:
    """Workflows in a ring: each passes on to the next what it gets."""
    calls: dict[str, Calls] = {}
    for name, following in zip(names, (*names[1:], names[0]), strict=True):
        calls[name] = prepare = Calls(world, take)

        def passing(to: str) -> Any:
            async def send(ctx: Context) -> None:
                await bench.workflow(to).publish("mail", ctx.run_id, 1)

            return send

        consumer = bench.workflow(name).consumer(subscribe=["mail"], name="digest")(named(prepare))
        consumer.mutate(passing(following))
    return calls


@pytest.mark.parametrize("names", [("one",), ("one", "two"), ("one", "two", "three")])
def test_a_loop_through_workflows_is_limited(
    names: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """All runs of the loop together, in any minute; it goes on in the next one, and says so."""
    monkeypatch.setattr(rules, "LOOP_RUNS_MAX", 60)

    @virtual
    async def story(world: World) -> None:
        bench = world.bench()
        calls = loop(world, bench, *names)
        await bench.start()
        await world.sleep("1s")
        await bench.workflow(names[0]).publish("mail", "a", 1)
        await world.sleep("30s")
        runs = sum(len(ctx.messages["mail"]) for of_one in calls.values() for ctx in of_one.contexts)
        assert 60 - len(names) <= runs <= 60 + len(names)
        views = [await state_of(bench, name) for name in names]
        assert any(view["limitedUntil"] is not None for view in views)
        assert all(view["error"] is None for view in views)
        await world.sleep("5m")
        after = sum(len(ctx.messages["mail"]) for of_one in calls.values() for ctx in of_one.contexts)
        assert runs + 3 * 60 <= after <= runs + 6 * 60 + 6
        published = rows(world, "SELECT published_by FROM messages WHERE message_id <> 'a'")
        assert all(row["published_by"] is not None for row in published)
        await bench.stop()

    story(tmp_path=tmp_path)


@virtual
async def test_requests_and_replies_are_no_loop(world: World) -> None:
    """One asks, the other replies to a topic that leads nowhere: as fast as they can."""
    bench = world.bench()
    asking, replying, reading = Calls(world, take_one), Calls(world, take_one), Calls(world, take_one)

    async def ask(ctx: Context) -> None:
        await bench.workflow("server").publish("requests", ctx.run_id, 1)

    async def reply(ctx: Context) -> None:
        await bench.workflow("client").publish("replies", ctx.run_id, 1)

    bench.workflow("client").consumer(subscribe=["work"], name="ask")(named(asking)).mutate(ask)
    bench.workflow("client").consumer(subscribe=["replies"], name="read")(named(reading))
    bench.workflow("server").consumer(subscribe=["requests"], name="serve")(named(replying)).mutate(reply)
    await bench.start()
    for n in range(400):
        await bench.workflow("client").publish("work", f"m{n}", 1)
    await world.sleep("50s")
    assert (await state_of(bench, "client"))["topics"]["replies"]["consumed"] == 400
    await bench.stop()


def take_one(ctx: Context) -> Prepare:
    for topic, messages in ctx.messages.items():
        if messages:
            return Prepare({topic: [messages[0].id]})
    return Prepare()


@pytest.fixture
async def handler() -> AsyncIterator[Handler]:
    async with handling() as one:
        yield one


async def test_a_loop_of_web_handlers_that_pass_on_their_run(
    handler: Handler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each publishes to the other over REST, with the header it got."""
    monkeypatch.setattr(rules, "LOOP_RUNS_MAX", 20)
    async with served(tmp_path) as client, aiohttp.ClientSession() as session:

        async def send(data: Any) -> dict[str, Any]:
            other = "two" if data["workflow"] == "one" else "one"
            where = f"{client.base}/api/workflows/{other}/topics/mail/messages"
            body, headers = {"id": data["runId"], "payload": 1}, {"X-Wakeful-Run": data["runId"]}
            async with session.post(where, json=body, headers=headers) as answer:
                assert answer.status == 201, await answer.text()
            return {}

        handler.answers |= {"prepare": take_all, "mutate": send}
        http = {"http": {"url": f"{handler.address}/x"}}
        for name in ("one", "two"):
            definition = {"consumers": {"digest": {"subscribe": ["mail"], "handler": http}}}
            assert (await client.ask("PUT", f"/api/workflows/{name}", definition)).status == 201
        await client.post("/api/workflows/one/topics/mail/messages", {"id": "a", "payload": 1})
        await limited(client)
        assert 18 <= handler.phases().count("mutate") <= 22
        refused = await client.post(
            "/api/workflows/one/topics/mail/messages", {"id": "b"}, headers={"X-Wakeful-Run": "x"}
        )
        assert refused.status == 404


async def limited(client: Client) -> None:
    for _ in range(3000):
        views = [(await client.get(f"/api/workflows/{name}")).body for name in ("one", "two")]
        if any(view["limitedUntil"] is not None for view in views):
            return
        await asyncio.sleep(0.02)
    raise AssertionError(views)
