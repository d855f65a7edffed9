"""The recipes of docs/dispatch.md, sent to a server on loopback that checks what the documented APIs require.

Required fields: GitHub REST `POST /repos/{owner}/{repo}/actions/workflows/{workflow_id}/dispatches` (`ref`; `inputs` is
an object of at most 25 strings here; 204) and Kubernetes `batch/v1` `Job` (`spec.template.spec.containers[].name`; a
restart policy of Never or OnFailure; 201)."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession, web

from climbing import RecordingLadder, ladder
from patience import PATIENCE
from wakeful.core.run.results import Done, Failed, Unconfirmed
from wakeful.core.schedule.actions import Http
from wakeful.core.schedule.definition_json import definition_from_json
from wakeful.engine.clock import SystemClock
from wakeful.integrations.actions.http import HttpAction
from wakeful.integrations.actions.receipts import Receipts
from wakeful.ports.action import DEADLINE, Fire

__all__ = ["ladder"]

PAGE = Path(__file__).parents[2] / "docs/dispatch.md"


class Engine:
    """Stands in for GitHub and Kubernetes: checks a request, and begins the work, which posts its receipt."""

    def __init__(self) -> None:
        self.receipts: Receipts | None = None
        self.report: dict[str, Any] | None = {"rung": "finished", "text": "done"}
        self.faults: list[str] = []
        self.url = ""

    def check(self, is_right: object, fault: str) -> None:
        if not is_right:
            self.faults.append(fault)

    async def dispatches(self, request: web.Request) -> web.Response:
        """GitHub: `workflow_dispatch`."""
        body = await request.json()
        inputs = body.get("inputs", {})
        self.check(isinstance(body.get("ref"), str) and body["ref"], "ref is required")
        self.check(set(body) <= {"ref", "inputs", "return_run_details"}, "unknown fields")
        self.check(len(inputs) <= 25 and all(isinstance(value, str) for value in inputs.values()), "inputs")
        self.check(request.headers["Accept"] == "application/vnd.github+json", "Accept")
        self.check(request.headers["Authorization"].startswith("Bearer "), "Authorization")
        await self._begin(inputs["receipt"])
        return web.Response(status=400 if self.faults else 204)

    async def jobs(self, request: web.Request) -> web.Response:
        """Kubernetes: create a Job."""
        body = await request.json()
        template = body["spec"]["template"]["spec"]
        (container,) = template["containers"]
        self.check((body["apiVersion"], body["kind"]) == ("batch/v1", "Job"), "apiVersion and kind")
        self.check(body["metadata"].get("name") or body["metadata"].get("generateName"), "metadata.name")
        labels = body["metadata"]["labels"].values()
        self.check(all(re.fullmatch(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?", one) for one in labels), "labels")
        self.check(template["restartPolicy"] in ("Never", "OnFailure"), "restartPolicy")
        self.check(container["name"] and container["image"], "containers[].name and image")
        self.check(all(set(one) == {"name", "value"} for one in container["env"]), "env")
        await self._begin(container["env"][0]["value"])
        return web.json_response(body, status=400 if self.faults else 201)

    async def receipt(self, request: web.Request) -> web.Response:
        """Of the daemon."""
        assert self.receipts is not None
        run_id, body = int(request.match_info["run"]), await request.json()
        return web.Response(text=await self.receipts.post(run_id, request.query["token"], **body))

    async def _begin(self, url: str) -> None:
        if self.report is not None:
            async with ClientSession() as session:
                await session.post(url, json=self.report)


@asynccontextmanager
async def _engine() -> AsyncIterator[Engine]:
    engine, server = Engine(), web.Application()
    server.router.add_post("/repos/{owner}/{repo}/actions/workflows/{id}/dispatches", engine.dispatches)
    server.router.add_post("/apis/batch/v1/namespaces/{namespace}/jobs", engine.jobs)
    server.router.add_post("/api/runs/{run}/receipt", engine.receipt)
    runner = web.AppRunner(server)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    engine.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    engine.receipts = Receipts(b"0" * 32, engine.url)
    try:
        yield engine
    finally:
        await runner.cleanup()


def _recipe(word: str, engine: Engine) -> Http:
    """The definition on the page, sent to our server."""
    blocks = re.findall(r"```json\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (text,) = [block for block in blocks if word in block]
    written = json.loads(text)
    written["http"]["url"] = re.sub(r"https://[^/]+", engine.url, written["http"]["url"])
    action = definition_from_json(written, default_zone="UTC", slug=written["slug"]).action
    assert isinstance(action, Http)
    return action


@pytest.mark.parametrize("word", ["api.github.com", "batch/v1"])
@pytest.mark.parametrize(
    ("report", "result"),
    [
        ({"rung": "finished", "text": "done"}, Done(reply="done")),
        ({"rung": "finished", "error": "see the log"}, Failed("see the log", rung="finished")),
    ],
)
async def test_the_request_is_valid_and_the_receipt_ends_the_run(
    word: str, report: dict[str, Any], result: object, ladder: RecordingLadder
) -> None:
    """Accepted by the engine, finished by the work."""
    async with _engine() as engine:
        assert engine.receipts is not None
        engine.report = report
        action = HttpAction(SystemClock(), receipts=engine.receipts)
        fire = Fire(7, 1, "report", 0, 0, "manual", 1, "key-7", engine.receipts.url(7))
        try:
            assert await asyncio.wait_for(action.perform(_recipe(word, engine), fire, ladder), PATIENCE) == result
        finally:
            await action.close()
        assert engine.faults == []
        assert ladder.rungs == ["sent", "accepted"]


async def test_without_a_receipt_the_run_is_unconfirmed(ladder: RecordingLadder) -> None:
    """At its deadline; the engine accepted it, and that is all that is known."""
    async with _engine() as engine:
        assert engine.receipts is not None
        engine.report = None
        action = HttpAction(SystemClock(), receipts=engine.receipts)
        fire = Fire(7, 1, "report", 0, 0, "manual", 1, "key-7", engine.receipts.url(7))
        attempt = asyncio.create_task(action.perform(_recipe("batch/v1", engine), fire, ladder))
        async with asyncio.timeout(PATIENCE):
            while "accepted" not in ladder.rungs:
                await asyncio.sleep(0.01)
        attempt.cancel(DEADLINE)
        try:
            assert isinstance(await attempt, Unconfirmed)
        finally:
            await action.close()


def test_a_receipt_needs_a_process_that_listens() -> None:
    """It is refused when it is written."""
    refusal = HttpAction(SystemClock()).check(Http("POST", "http://127.0.0.1:9/x", receipt=True))
    assert refusal is not None and "does not listen" in refusal
