"""`Idempotency-Key`."""

import asyncio
from typing import Any

from starlette.types import Receive, Scope, Send

from edges.http.kit import MANUAL, Client
from wakeful.core.instants import DAY
from wakeful.http import repeats
from wakeful.http.repeats import Repeats

KEY = {"Idempotency-Key": "order-1"}


async def test_a_post_sent_again_is_answered_again_and_not_done_again(api: Client) -> None:
    """The same answer, marked; one run in the ledger."""
    await api.put("job", MANUAL)
    first = await api.post("/api/schedule/job/run?wait=true", headers=KEY)
    again = await api.post("/api/schedule/job/run?wait=true", headers=KEY)
    assert (again.status, again.body) == (first.status, first.body)
    assert again.headers["Idempotent-Replayed"] == "true"
    assert "Idempotent-Replayed" not in first.headers
    assert len((await api.get("/api/runs")).body["runs"]) == 1


async def test_requests_at_the_same_time_are_one(api: Client) -> None:
    """Those that come later wait for the answer of the first."""
    await api.put("job", {**MANUAL, "command": {"argv": ["sleep", "0.2"]}})
    asked = [api.post("/api/schedule/job/run?wait=true", headers=KEY) for _ in range(10)]
    answers = await asyncio.gather(*asked)
    assert {answer.status for answer in answers} == {200}
    assert len({answer.body["runId"] for answer in answers}) == 1


async def test_a_key_that_was_used_for_something_else_is_refused(api: Client) -> None:
    """Another path, query or body under the same key is a mistake of the sender."""
    await api.put("job", MANUAL)
    await api.put("other", MANUAL)
    assert (await api.post("/api/schedule/job/run", headers=KEY)).status == 202
    for path, body in [("/api/schedule/other/run", None), ("/api/schedule/job/run?wait=true", None)]:
        refused = await api.post(path, body, headers=KEY)
        assert (refused.status, refused.body["errors"][0]["field"]) == (400, "Idempotency-Key")
    assert (await api.post("/api/schedule/job/run", {}, headers=KEY)).status == 400
    assert (await api.post("/api/schedule/job/run", headers={"Idempotency-Key": " "})).status == 400
    assert (await api.post("/api/schedule/job/run", headers={"Idempotency-Key": "x" * 256})).status == 400


async def test_what_was_refused_may_be_tried_again(api: Client) -> None:
    """A 404 did nothing: the same request later is a new one."""
    assert (await api.post("/api/schedule/job/run", headers=KEY)).status == 404
    await api.put("job", MANUAL)
    assert (await api.post("/api/schedule/job/run", headers=KEY)).status == 202


async def test_keys_are_forgotten_after_a_day_and_when_there_are_too_many(monkeypatch: Any) -> None:
    """Memory is bounded by number, size and time."""
    monkeypatch.setattr(repeats, "KEPT_MAX", 10)
    now = 0
    done: list[str] = []

    async def inner(scope: Scope, receive: Receive, send: Send) -> None:
        done.append(scope["path"])
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"x" * 100})

    kept = Repeats(inner, monotonic=lambda: now)

    async def post(key: str) -> None:
        headers = [(b"idempotency-key", key.encode())]
        scope = {"type": "http", "method": "POST", "path": f"/{key}", "query_string": b"", "headers": headers}

        async def receive() -> Any:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Any) -> None: ...

        await kept(scope, receive, send)

    await post("a")
    await post("a")
    assert done == ["/a"]
    now = DAY - 1
    await post("a")
    assert done == ["/a"]
    now = DAY
    await post("a")
    assert done == ["/a", "/a"]
    for n in range(50):
        await post(f"k{n}")
    assert len(kept._kept) <= 11
    await post("a")
    assert done.count("/a") == 3
