"""The same API over PostgreSQL: what depends on transactions and locks."""

import asyncio
from pathlib import Path

from edges.http.kit import EVERY, MANUAL, served
from postgres.server import emptied_url as url
from postgres.server import server

__all__ = ["server", "url"]


async def test_writes_guards_and_rehearsals_on_postgresql(tmp_path: Path, url: str) -> None:
    """A rehearsal leaves no trace, an old tag writes nothing, one of many racing writers with a tag wins."""
    async with served(tmp_path, store=url) as api:
        assert (await api.put("job", query="?dryRun=true")).status == 200
        assert (await api.get("/api/schedule/job")).status == 404
        tag = {"If-Match": (await api.put("job")).headers["ETag"]}
        racing = [api.put("job", {**EVERY, "timeout": f"{n}m"}, headers=tag) for n in range(1, 9)]
        statuses = sorted(answer.status for answer in await asyncio.gather(*racing))
        assert statuses == [200] + [412] * 7
        assert (await api.ask("PATCH", "/api/schedule/job", {"timeout": None}, headers=tag)).status == 412
        first = {"If-None-Match": "*"}
        made = await asyncio.gather(
            *(api.put("new", {**EVERY, "timeout": f"{n}m"}, headers=first) for n in range(1, 9))
        )
        assert sorted(answer.status for answer in made) == [201] + [412] * 7


async def test_questions_on_postgresql(tmp_path: Path, url: str) -> None:
    """Lists, runs, what is to come, why, health."""
    async with served(tmp_path, store=url) as api:
        await api.put("job", MANUAL)
        await api.put("every")
        assert (await api.post("/api/schedule/job/run?wait=true")).body["outcome"] == "succeeded"
        assert len((await api.get("/api/schedule?q=JOB")).body["schedules"]) == 1
        assert len((await api.get("/api/runs?outcome=succeeded")).body["runs"]) == 1
        assert (await api.get("/api/upcoming?limit=1")).body["upcoming"][0]["slug"] == "every"
        assert (await api.get("/api/schedule/job/why")).status == 200
        assert (await api.get("/healthz")).body["status"] == "ok"
        assert (await api.get("/api/nodes")).body["nodes"][0]["isAlive"] is True
