"""`Idempotency-Key`."""

import asyncio
import signal
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from starlette.types import Message, Receive, Scope, Send

from access import HEADERS
from edges.http.kit import MANUAL, Client, daemon, served
from postgres.server import emptied_url as url
from postgres.server import server
from wakeful import Wakeful
from wakeful.core.time.instants import DAY
from wakeful.engine.clock import SystemClock
from wakeful.ports.clock import Moment
from wakeful.server.http import idempotency as repeats_module
from wakeful.server.http import kept_responses as kept_answers
from wakeful.server.http.idempotency import Repeats
from wakeful.server.http.kept_responses import KeptAnswers

__all__ = ["server", "url"]

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


async def _sent_to_both(folder: Path, store: str | None) -> None:
    """The same keys at two nodes at the same moment: each is done once, and both give the one answer."""
    body = {"text": "the door is open", "channel": "inbox"}
    async with served(folder, store=store) as one, served(folder, store=store) as other:
        for n in range(10):
            key = {"Idempotency-Key": f"letter-{n}"}
            asked = [node.post("/api/deliveries", body, headers=key) for node in (one, other, one, other)]
            answers = await asyncio.gather(*asked)
            assert {answer.status for answer in answers} == {201}
            assert len({answer.body["id"] for answer in answers}) == 1
            assert sum("Idempotent-Replayed" in answer.headers for answer in answers) == 3
        assert len((await one.get("/api/deliveries")).body["deliveries"]) == 10


async def test_requests_at_the_same_time_at_two_processes_are_one(tmp_path: Path) -> None:
    """On one file: the store is the judge."""
    await _sent_to_both(tmp_path, None)


async def test_requests_at_the_same_time_at_two_nodes_are_one(tmp_path: Path, url: str) -> None:
    """On one server: the store is the judge."""
    await _sent_to_both(tmp_path, url)


async def test_a_node_that_died_over_a_request_does_not_keep_its_key(tmp_path: Path) -> None:
    """The next one waits for it no longer than it may be silent, then does what was asked."""
    clock = ShiftedClock()
    async with Wakeful(tmp_path / "wakeful.db", tick=False, clock=clock) as app:
        dead, alive = KeptAnswers(app), KeptAnswers(app)
        assert await dead.begin("k") is True
        assert await alive.begin("k") is False
        clock.by = kept_answers.HELD_FOR + 1_000
        assert await alive.begin("k") is True
        assert await dead.begin("k") is False


async def test_a_request_that_takes_long_keeps_its_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is held for as long as it is being answered, and another node that waits too long is told to ask again."""
    monkeypatch.setattr(kept_answers, "HELD_AGAIN", 20)
    monkeypatch.setattr(repeats_module, "WAIT_FOR", 1_000)
    clock = ShiftedClock()
    begun, ended = asyncio.Event(), asyncio.Event()

    async def inner(scope: Scope, receive: Receive, send: Send) -> None:
        begun.set()
        await ended.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"done"})

    def held_until() -> int:
        with closing(sqlite3.connect(tmp_path / "wakeful.db")) as file:
            ((until,),) = file.execute("SELECT until FROM askings")
        return int(until)

    async with Wakeful(tmp_path / "wakeful.db", tick=False, clock=clock) as app:
        one, other = (Repeats(inner, KeptAnswers(app)) for _ in range(2))
        first = asyncio.create_task(_through(one, "slow"))
        await begun.wait()
        at_first = held_until()
        clock.by = kept_answers.HELD_FOR - 5_000
        while held_until() < at_first + 5_000:
            await asyncio.sleep(0.01)
        clock.by = kept_answers.HELD_FOR + 2_000
        assert (await _through(other, "slow"))[0]["status"] == 409
        ended.set()
        assert (await first)[0]["status"] == 200
        assert (await _through(other, "slow"))[1]["body"] == b"done"


async def _through(repeats: Repeats, key: str) -> list[Message]:
    """What is answered to a POST with this key."""
    headers = [(b"idempotency-key", key.encode())]
    scope = {"type": "http", "method": "POST", "path": f"/{key}", "query_string": b"", "headers": headers}
    sent: list[Message] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    await repeats(scope, receive, send)
    return sent


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


async def test_an_answer_survives_a_kill(tmp_path: Path) -> None:
    """Asked again after kill -9 and a restart, with the same key: the same answer, and nothing is done again."""
    path = "/api/schedule/job/run?wait=true"
    with daemon(tmp_path) as first:
        async with (
            aiohttp.ClientSession(headers=HEADERS) as session,
            session.put(f"{first.address}/api/schedule/job", json=MANUAL) as put,
        ):
            assert put.status == 201
        answer = await _posted(first.address + path)
        assert first.end(signal.SIGKILL) == -signal.SIGKILL
    with daemon(tmp_path) as second:
        again = await _posted(second.address + path)
        assert again == (answer[0], answer[1], "true")
        async with aiohttp.ClientSession(headers=HEADERS) as session, session.get(f"{second.address}/api/runs") as runs:
            assert len((await runs.json())["runs"]) == 1
        assert (await _posted(second.address + "/api/schedule/job/run"))[0] == 400


async def _posted(url: str) -> tuple[int, Any, str | None]:
    async with aiohttp.ClientSession(headers=HEADERS) as session, session.post(url, headers=KEY) as response:
        return response.status, await response.json(), response.headers.get("Idempotent-Replayed")


class ShiftedClock(SystemClock):
    """The system's clock, moved by hand."""

    by = 0

    def read(self) -> Moment:
        moment = super().read()
        return moment._replace(now=moment.now + self.by)


async def test_keys_are_forgotten_after_a_day_and_when_there_are_too_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is kept is bounded by number, size and time."""
    monkeypatch.setattr(kept_answers, "KEPT_MAX", 10)
    monkeypatch.setattr(kept_answers, "PRUNE_EVERY", 1)
    done: list[str] = []

    async def inner(scope: Scope, receive: Receive, send: Send) -> None:
        done.append(scope["path"])
        await send({"type": "http.response.start", "status": 200, "headers": [(b"x", b"\xff")]})
        await send({"type": "http.response.body", "body": b"\xff\x00" * 50, "more_body": True})
        await send({"type": "http.response.body", "body": b"end"})

    clock = ShiftedClock()
    async with Wakeful(tmp_path / "wakeful.db", tick=False, clock=clock) as app:
        repeats = Repeats(inner, KeptAnswers(app))

        async def post(key: str) -> list[Message]:
            return await _through(repeats, key)

        await post("a")
        start, body = await post("a")
        assert done == ["/a"]
        assert start["headers"] == [(b"x", b"\xff"), (b"idempotent-replayed", b"true")]
        assert body["body"] == b"\xff\x00" * 50 + b"end"
        clock.by = DAY - 60_000
        await post("a")
        assert done == ["/a"]
        clock.by = DAY + 60_000
        await post("a")
        assert done == ["/a", "/a"]
        for n in range(12):
            await post(f"k{n}")
        await post("k11")
        assert done.count("/k11") == 1
        await post("a")
        assert done.count("/a") == 3
        monkeypatch.setattr(kept_answers, "KEPT_BYTES_MAX", 100)
        await post("large")
        await post("large")
        assert done.count("/large") == 2
