"""A `mutate` that returned happened: whatever its reply looks like, it is never called again, and nobody is asked."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from edges.http.kit import Client, served
from features.kit import World, virtual
from sampling import sampled
from wakeful import Produced, Publish
from workflows.handlers import Handler, flow, handling, says
from workflows.kit import Inbox, counts
from workflows.test_programs import app, until

__all__ = ["app"]

NOTHING = object()


@pytest.fixture
async def handler() -> AsyncIterator[Handler]:
    async with handling() as one:
        yield one


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    async with served(tmp_path) as one:
        yield one


async def seen(client: Client, is_so: Callable[[Any], bool]) -> Any:
    for _ in range(3000):
        view = (await client.get("/api/workflows/inbox")).body
        if is_so(view):
            return view
        await asyncio.sleep(0.02)
    raise AssertionError(view)


async def cut(request: web.Request) -> web.StreamResponse:
    """A status of 200, and a body that breaks off."""
    response = web.StreamResponse(headers={"Content-Length": "1000"})
    await response.prepare(request)
    await response.write(b'{"result": "se')
    assert request.transport is not None
    request.transport.abort()
    return response


async def publish(client: Client, handler: Handler) -> None:
    assert (await client.ask("PUT", "/api/workflows/inbox", flow(handler.address))).status == 201
    await client.post("/api/workflows/inbox/topics/mail/messages", {"id": "a", "payload": 1})


def told(handler: Handler) -> Any:
    """The mutation that the last `next` was told, for a run that had one."""
    return [asked["mutation"] for asked in handler.asked if asked["phase"] == "next"][-1]


VALUES: list[Any] = [
    ({"result": {"id": 7}}, {"id": 7}),
    ({"result": None}, NOTHING),
    ({}, NOTHING),
    (says(204), NOTHING),
    (says(200, "null"), NOTHING),
    ({"ok": True}, {"ok": True}),
    ({"result": 1, "ok": True}, {"result": 1, "ok": True}),
    ({"result": 1, "messages": [], "state": None}, 1),
    ({"result": 1, "usage": {"input": 7}}, 1),
    ({"usage": {"input": 7}}, NOTHING),
    ({"id": "m1", "usage": {"input": 7}}, {"id": "m1", "usage": {"input": 7}}),
    ([1, "two"], [1, "two"]),
    (5, 5),
    (says(200, "sent"), "sent"),
    (says(201, "<html>ok</html>"), "<html>ok</html>"),
]


@pytest.mark.parametrize(("reply", "result"), sampled(VALUES, every=3, offset=2))
async def test_the_result_is_the_value(client: Client, handler: Handler, reply: Any, result: Any) -> None:
    """An object with nothing but a `result` is unwrapped, any other value is the result, and text is a string."""
    handler.script["mutate"] = [reply]
    await publish(client, handler)
    view = await seen(client, lambda view: view["topics"]["mail"]["consumed"] == 1)
    assert (view["error"], handler.phases().count("mutate")) == (None, 1)
    assert told(handler) == {"outcome": "applied"} | ({} if result is NOTHING else {"result": result})


LOST: list[Any] = [
    pytest.param({"messages": [{"topic": "mail", "id": "b", "payload": 1}]}, "messages, which", id="messages"),
    pytest.param({"result": 1, "state": {"n": 1}}, "state, which", id="state"),
    pytest.param({"reservations": [1]}, "reservations, which", id="reservations"),
    pytest.param(says(200, '{"result": NaN}'), "not JSON", id="NaN"),
    pytest.param(says(200, "[" * 200_000), "not JSON", id="too deep"),
    pytest.param(lambda _: "x" * 5_000_000, "longer than", id="too long"),
    pytest.param(cut, "broke during the response", id="cut"),
]


@pytest.mark.parametrize(("reply", "words"), sampled(LOST, every=3))
async def test_a_result_that_cannot_be_used_stops_before_next(
    client: Client, handler: Handler, reply: Any, words: str
) -> None:
    """It is applied without a result, the sentence says so, and `resume` goes on at `next`."""
    if reply is cut:
        handler.raw["mutate"] = [cut]
    else:
        handler.script["mutate"] = [reply]
    await publish(client, handler)
    view = await seen(client, lambda view: view["error"] is not None)
    assert "the side effect happened, but its result is lost" in view["error"] and words in view["error"]
    assert "it is unknown" not in view["error"]
    assert (view["openRun"]["phase"], view["openRun"]["mutation"]) == ("mutated", "applied")
    assert (view["openRun"]["awaits"], view["topics"]["mail"]["reserved"]) == ("stopped", 1)
    nexts = handler.phases().count("next")
    refused = await client.post(
        f"/api/workflows/inbox/runs/{view['openRun']['runId']}/resolve", {"choice": "didNotHappen"}
    )
    assert refused.status == 409
    assert (await client.post("/api/workflows/inbox/resume")).status == 200
    view = await seen(client, lambda view: view["topics"]["mail"]["consumed"] == 1)
    assert (handler.phases().count("mutate"), handler.phases().count("next")) == (1, nexts + 1)
    assert told(handler) == {"outcome": "applied"}


@pytest.mark.parametrize(("mode", "is_stopped"), [("garbage", False), ("much", True)])
async def test_a_program_that_exits_with_0_did_it(app: Any, tmp_path: Path, mode: str, is_stopped: bool) -> None:
    """What it printed is its result, or is lost; it is not called again."""
    (tmp_path / "mutate").write_text(mode)
    await app.workflow("inbox").publish("mail", "a", 1)
    if is_stopped:
        view = await until(app, lambda view: view["error"] is not None)
        assert "printed more than" in view["error"] and view["openRun"]["phase"] == "mutated"
        await app.workflow("inbox").resume()
    await until(app, lambda view: view["topics"]["mail"]["consumed"] == 1)


class Opaque:
    """What a client library returns."""


RETURNED: list[Any] = [
    pytest.param("sent", {"result": "sent"}, None, id="text"),
    pytest.param(lambda _: [1, 2], {"result": [1, 2]}, None, id="list"),
    pytest.param({"ok": True}, {"result": {"ok": True}}, None, id="object"),
    pytest.param(lambda _: Opaque(), {}, "not JSON", id="opaque"),
    pytest.param(lambda _: Produced([Publish("mail", "b")]), {}, "messages, which", id="messages"),
]


@pytest.mark.parametrize(("value", "kept", "words"), RETURNED)
def test_a_function_that_returned_did_it(value: Any, kept: Any, words: str | None, tmp_path: Path) -> None:
    """Whatever it returned; the same rules as for a reply over HTTP."""

    @virtual
    async def story(world: World) -> None:
        inbox = Inbox(world, period="30d")
        bench = await inbox.open()
        inbox.mutate.script = [value]
        await inbox.flow.publish("mail", "a", 1)
        await world.sleep("1m")
        view = await inbox.flow.get()
        if words is not None:
            assert words in view["error"] and view["openRun"]["phase"] == "mutated"
            await inbox.flow.resume()
            await world.sleep("1m")
        assert (await counts(bench), inbox.mutate.count) == ({"consumed": 1}, 1)
        assert inbox.next.contexts[-1].mutation == {"outcome": "applied"} | kept
        await bench.stop()

    story(tmp_path=tmp_path)


def test_a_function_that_returns_as_its_time_ends_did_it(tmp_path: Path) -> None:
    """It catches its cancellation and returns: that is proof."""

    @virtual
    async def story(world: World) -> None:
        inbox = Inbox(world, period="30d", timeout="10s")

        async def late(_: Any) -> str:
            try:
                await world.clock.sleep(60_000)
            except asyncio.CancelledError:
                return "sent after all"
            return "too late"

        inbox.mutate.script = [late]
        bench = await inbox.open()
        await inbox.flow.publish("mail", "a", 1)
        await world.sleep("5m")
        assert (await counts(bench), inbox.mutate.count) == ({"consumed": 1}, 1)
        assert inbox.next.contexts[-1].mutation == {"outcome": "applied", "result": "sent after all"}
        await bench.stop()

    story(tmp_path=tmp_path)
