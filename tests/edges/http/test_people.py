"""Deliveries, channels and the inbox over HTTP."""

import asyncio
from typing import Any

from edges.http.kit import Client
from patience import PATIENCE


async def eventually(api: Client, path: str, condition: Any) -> Any:
    """Ask until the answer is as it should be."""
    async with asyncio.timeout(PATIENCE):
        while not condition(found := (await api.get(path)).body):
            await asyncio.sleep(0.05)
    return found


async def test_a_text_is_sent_and_lies_in_the_inbox(api: Client) -> None:
    """Queued, delivered, read, taken away."""
    made = await api.post("/api/deliveries", {"text": "hello\x1b[1m"})
    assert made.status == 201
    assert (made.body["status"], made.body["channel"], made.body["text"]) == ("pending", "inbox", "hello[1m")
    path = f"/api/deliveries/{made.body['id']}"
    seen = await eventually(api, path, lambda body: body["status"] == "delivered")
    assert (seen["attempts"], seen["lastError"], seen["nextAttemptAt"]) == (1, None, None)
    inbox = (await api.get("/api/inbox")).body
    assert inbox["unread"] == 1
    (item,) = inbox["items"]
    assert (item["text"], item["readAt"]) == ("hello[1m", None)
    assert (await api.post(f"/api/inbox/{item['id']}/read")).status == 204
    assert (await api.get("/api/inbox?unread=true")).body == {"items": [], "next": None, "unread": 0}
    assert (await api.post(f"/api/inbox/{item['id']}/read", {"read": False})).status == 204
    assert (await api.get("/api/inbox")).body["unread"] == 1
    assert (await api.post("/api/inbox/read")).status == 204
    assert (await api.get("/api/inbox")).body["unread"] == 0
    assert (await api.ask("DELETE", f"/api/inbox/{item['id']}")).status == 204
    assert (await api.ask("DELETE", f"/api/inbox/{item['id']}")).status == 404
    assert (await api.post(f"/api/inbox/{item['id']}/read")).status == 404
    assert (await api.post(f"{path}/retry")).status == 409


async def test_deliveries_are_listed_tried_again_and_discarded(api: Client) -> None:
    """By status, page by page."""

    async def broken(text: str) -> None:
        raise RuntimeError("it is down")

    api.app.register_channel("phone", "7", broken)
    made = [(await api.post("/api/deliveries", {"text": str(n), "channel": "phone"})).body for n in range(3)]
    first = await eventually(api, f"/api/deliveries/{made[0]['id']}", lambda body: body["lastError"])
    assert first["lastError"] == "RuntimeError: it is down"
    page = (await api.get("/api/deliveries?status=pending&limit=2")).body
    assert [one["text"] for one in page["deliveries"]] == ["2", "1"]
    rest = (await api.get(f"/api/deliveries?status=pending&limit=2&cursor={page['next']}")).body
    assert [one["text"] for one in rest["deliveries"]] == ["0"]
    assert rest["next"] is None
    before = first["attempts"]
    assert (await api.post(f"/api/deliveries/{made[0]['id']}/retry")).status == 200
    await eventually(api, f"/api/deliveries/{made[0]['id']}", lambda body: body["attempts"] > before)
    assert (await api.ask("DELETE", f"/api/deliveries/{made[0]['id']}")).status == 204
    assert (await api.get(f"/api/deliveries/{made[0]['id']}")).status == 404
    assert (await api.ask("DELETE", f"/api/deliveries/{made[0]['id']}")).status == 404
    (phone, inbox) = (await api.get("/api/channels")).body["channels"]
    assert (phone["name"], phone["type"], phone["to"], phone["source"], phone["pending"]) == (
        "phone",
        "python",
        "7",
        "program",
        2,
    )
    assert (inbox["name"], inbox["source"]) == ("inbox", "built-in")


async def test_what_cannot_be_is_refused_by_field(api: Client) -> None:
    """Never 422, and nothing is queued."""
    for body, field in [
        ({"text": ""}, "text"),
        ({"text": "\x07"}, "text"),
        ({"text": 5}, "text"),
        ({"text": "x", "channel": "fax"}, "channel"),
        ({"text": "x", "chanel": "phone"}, "chanel"),
        ([], ""),
        ({"text": None}, "text"),
        ({}, "text"),
    ]:
        refused = await api.post("/api/deliveries", body)
        assert (refused.status, refused.body["errors"][0]["field"]) == (400, field), body
    assert (await api.get("/api/deliveries?status=lost")).status == 400
    assert (await api.get("/api/deliveries?cursor=x")).status == 400
    assert (await api.get("/api/deliveries/none")).status == 404
    assert (await api.get("/api/deliveries")).body["deliveries"] == []
    unknown = await api.put("x", {"schedule": {"type": "manual"}, "command": {"argv": ["true"]},
                                     "deliver": {"channel": "fax"}})  # fmt: skip
    assert (unknown.status, unknown.body["errors"][0]["field"]) == (400, "deliver.channel")


async def test_a_touch_decides_where_things_go(api: Client) -> None:
    """And an unknown channel is a 404 that names those there are."""
    got: list[str] = []

    async def deliver(text: str) -> None:
        got.append(text)

    api.app.register_channel("a", None, deliver)
    api.app.register_channel("b", None, deliver)
    touched = await api.post("/api/channels/b/touch", {"to": "7"})
    assert (touched.status, touched.body["last"]["channel"], touched.body["last"]["to"]) == (200, "b", "7")
    made = (await api.post("/api/deliveries", {"text": "x"})).body
    assert (made["channel"], made["to"]) == ("b", "7")
    assert (await api.post("/api/channels/b/touch")).status == 200
    missing = await api.post("/api/channels/c/touch")
    assert missing.status == 404
    assert "a, b, inbox" in missing.body["detail"]


async def test_a_message_nobody_would_answer_is_said_so(api: Client) -> None:
    """503 with the cure, and nothing is kept of it; a bad one is refused first."""
    api.app.register_channel("a", None, lambda text: None)
    unanswered = await api.post("/api/channels/a/messages", {"to": "7", "text": "hello?"})
    assert unanswered.status == 503
    assert "heartbeat" in unanswered.body["detail"]
    assert (await api.get("/api/channels")).body["last"] is None
    assert (await api.post("/api/channels/a/messages", {"to": "7"})).status == 400
    assert (await api.post("/api/channels/nowhere/messages", {"to": "7", "text": "x"})).status == 404


async def test_a_run_says_what_became_of_its_reply(api: Client) -> None:
    """A fact of its own beside the outcome."""
    await api.put(
        "say", {"schedule": {"type": "manual"}, "command": {"argv": ["echo", "hi"]}, "deliver": {"channel": "last"}}
    )
    started = await api.post("/api/schedule/say/run?wait=true")
    run_id = started.body["runId"]
    run = await eventually(
        api, f"/api/runs/{run_id}", lambda body: body.get("delivery", {}).get("status") == "delivered"
    )
    assert (run["outcome"], run["delivery"]["channel"]) == ("succeeded", "inbox")
    (item,) = (await api.get("/api/inbox")).body["items"]
    assert (item["text"], item["slug"], item["runId"]) == ("hi", "say", run_id)
