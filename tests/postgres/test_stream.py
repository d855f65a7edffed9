"""Three machines on one server: whoever watches one of them sees what all of them do."""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import IO, Any

import aiohttp

import forking
from access import HEADERS
from delivery.running import Running, daemon
from patience import PATIENCE
from wakeful import Wakeful, every

WITHIN = PATIENCE
MANUAL = {"schedule": {"type": "manual"}, "command": {"argv": [sys.executable, "-c", ""]}}


async def told(response: aiohttp.ClientResponse) -> AsyncIterator[dict[str, Any]]:
    """The events of a stream, as they come, each with its id."""
    last_id = 0
    async for line in response.content:
        name, _, value = line.decode().strip().partition(": ")
        if name == "id":
            last_id = int(value)
        elif name == "data":
            yield {**json.loads(value), "id": last_id}


async def until(events: AsyncIterator[dict[str, Any]], **wanted: Any) -> list[dict[str, Any]]:
    """Everything up to the event that is like this."""
    found: list[dict[str, Any]] = []
    async with asyncio.timeout(WITHIN):
        async for event in events:
            found.append(event)
            if wanted.items() <= event.items():
                return found
    raise AssertionError(f"the stream ended: {found}")


async def line_with(said: IO[str], *words: str) -> None:
    """Read until a line has all of these words."""
    async with asyncio.timeout(WITHIN):
        while line := await asyncio.to_thread(said.readline):
            if all(word in line for word in words):
                return
    raise AssertionError(f"nothing more is said, and never {words}")


async def test_whoever_watches_one_node_sees_what_all_do(tmp_path: Path, url: str) -> None:
    """On its stream and in its log: what another daemon does, and a program that has neither page nor clock."""
    settings = f'[store]\nurl = "{url}"\n'
    async with daemon(tmp_path / "a", settings) as page, daemon(tmp_path / "b", settings) as other:
        await other.ask("PUT", "/api/schedule/theirs", MANUAL)
        await other.ask("POST", "/api/schedule/theirs/run?wait=true")
        await _log_is_followed(tmp_path / "a", other)
        await _stream_is_resumed(page, other, url)


async def _log_is_followed(home: Path, other: Running) -> None:
    """Whatever the log is told of the other's runs, and whatever it must read itself."""
    following = forking.start("wakeful.cli.main", "--home", home, "log", "-f", stderr=subprocess.DEVNULL)
    assert following.stdout is not None
    try:
        await line_with(following.stdout, "theirs", "succeeded", "run 1")
        for number in (2, 3):
            await other.ask("POST", "/api/schedule/theirs/run?wait=true")
            await line_with(following.stdout, "theirs", "succeeded", f"run {number}")
    finally:
        following.kill()
        await asyncio.to_thread(following.communicate)


async def _stream_is_resumed(page: Running, other: Running, url: str) -> None:
    """Every event once, in order, over a break."""
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(WITHIN), headers=HEADERS) as session:
        async with session.get(f"{page.address}/api/stream?streams=schedules,runs") as response:
            events = told(response)
            await other.ask("PUT", "/api/schedule/probe", MANUAL)
            first = await anext(events)  # the other may not have known yet that it is watched: then it says so
            assert first["what"] == "reset" or first["slug"] == "probe"
            await page.ask("PUT", "/api/schedule/mine", MANUAL)
            await other.ask("POST", "/api/schedule/theirs/run?wait=true")
            found = await until(events, stream="runs", slug="theirs", what="settled")
            assert found[-1]["outcome"] == "succeeded"
        program = Wakeful(url, tick=False)
        async with program:  # nobody is connected now, and what happens meanwhile is kept for who comes back
            await program.add("programmed", every("1h"), command=["true"])
            await other.ask("POST", "/api/schedule/theirs/run?wait=true")
            headers = {"Last-Event-ID": str(found[-1]["id"])}
            async with session.get(f"{page.address}/api/stream?streams=schedules,runs", headers=headers) as response:
                events = told(response)
                rest = await until(events, stream="runs", slug="theirs", what="settled")
                await program.add("programmed-too", every("1h"), command=["true"])
                rest += await until(events, stream="schedules", slug="programmed-too")
        all_of_them = [*found, *rest]
        ids = [event["id"] for event in all_of_them]
        assert ids == sorted(set(ids))
        created = [event["slug"] for event in all_of_them if event["what"] == "created"]
        assert len(created) == len(set(created))
        assert {"mine", "programmed-too"} <= set(created)
        settled = [event["runId"] for event in all_of_them if event["what"] == "settled"]
        assert len(settled) == len(set(settled)) == 2
