"""A program with one operation more. It asks for it in every way, and prints what came back.

A program of its own: the table is read when the server is loaded, so the entry has to be there before.
"""

import asyncio
import json
import sys
from collections.abc import Awaitable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from wakeful import manual
from wakeful.api import nouns, tools
from wakeful.api.actors import Actor, Agent, Refused
from wakeful.api.operation import Blocking, Returns, write
from wakeful.api.parameters import Param
from wakeful.api.schedules import Schedules
from wakeful.api.shared_parameters import SlugPath
from wakeful.core.refusals import NotFound
from wakeful.core.returned import returned
from wakeful.core.self_scheduling.limits import SelfSchedulingTerms
from wakeful.ports.store import Tx
from wakeful.sync import Wakeful as SyncWakeful


@dataclass(frozen=True, slots=True)
class Copies:
    """How many copies were counted."""

    slug: str
    seen_copies: Annotated[int, "as many as were asked for"]


class Counted(Schedules):
    """Schedules with one operation more."""

    @write(
        "POST /api/schedule/{slug}/count",
        "Count copies",
        Returns(returned(Copies), "The number."),
        refuses=(404,),
        id="count_copies",
        body_name="Counting",
        body_says="What is counted.",
        agents=True,
    )
    def count_copies(
        self, tx: Tx, now: int, slug: SlugPath, *, copies: Annotated[int, Param("how many", least=1, most=3)] = 1
    ) -> Copies:
        """Counts copies of one schedule."""
        return Copies(self._seen(tx, slug, now).slug, copies)


class BlockingCounted(Counted, Blocking):
    """The same for programs without an event loop."""


nouns.NOUNS["schedules"] = Counted  # type: ignore[index]  # as if it were written there
tools.TOOLS["count_copies"] = Counted.count_copies  # type: ignore[index]  # likewise

JOB = {"schedule": {"type": "manual"}, "command": {"argv": ["true"]}}
CODER, WRITER = Agent("coder"), Agent("writer")


async def refusal(asked: Awaitable[object]) -> str:
    """Why it was refused."""
    try:
        await asked
    except (NotFound, Refused) as refused:
        return f"{type(refused).__name__}: {refused}"
    return "permitted"


async def ask(path: Path) -> dict[str, Any]:
    """Over REST, in Python, and as a tool."""
    from edges.http.test_access import ADMIN, AGENT, OPERATE, OTHER_AGENT, READ, bearer, guarded

    tokens = {"admin": ADMIN, "operate": OPERATE, "read": READ, "owner": AGENT, "other": OTHER_AGENT}
    async with guarded(path, settings={"self_scheduling": SelfSchedulingTerms(approval="never")}) as api:
        assert (await api.put("people", JOB, headers=bearer(ADMIN))).status == 201
        made = await api.put("own", JOB, headers=bearer(AGENT))
        assert made.status == 201, made
        rest = {
            f"{name} {slug}": (await api.post(f"/api/schedule/{slug}/count", {"copies": 2}, headers=bearer(token)))
            for name, token in tokens.items()
            for slug in ("people", "own" if name in ("owner", "other") else "coder.own")
        }
        wrong = [
            (await api.post(f"/api/schedule/people/count{query}", body, headers=bearer(ADMIN))).body["detail"]
            for query, body in (("", {"copies": 4}), ("", {"copys": 2}), ("?dry=1", {}))
        ]
        document = (await api.get("/api/openapi.json", headers=bearer(ADMIN))).body
        app = api.app
        python = {
            "program": (await Counted(app).count_copies("people", copies=3)).seen_copies,
            "read": await refusal(Counted(app, Actor("read")).count_copies("people")),
            "other": await refusal(Counted(app, Actor("agent", agent=WRITER)).count_copies("own")),
            "owner": (await Counted(app, Actor("agent", agent=CODER)).count_copies("own")).slug,
        }
        by_name = {
            agent.agent: (
                await tools.call_tool(app, Actor("agent", agent=agent), "count_copies", {"slug": "own", "copies": 2})
            ).content
            for agent in (CODER, WRITER)
        }
        over_rest = await api.post("/api/tools/count_copies", {"slug": "own", "copies": 2}, headers=bearer(AGENT))
        return {
            "rest": {name: answer.status for name, answer in rest.items()},
            "body": rest["owner own"].body,
            "wrong": wrong,
            "openapi": document["paths"]["/api/schedule/{slug}/count"]["post"],
            "schemas": {name: document["components"]["schemas"][name] for name in ("Copies", "Counting")},
            "python": python,
            "tool": by_name,
            "tool over REST": over_rest.body["content"],
            "tool schema": tools.schema_of(Counted.count_copies),
        }


def ask_blocking(path: Path) -> dict[str, Any]:
    """Through the blocking twin, without an event loop."""
    with SyncWakeful(path / "sync.db", tick=False) as app:
        app.add("people", manual(), command=["true"])
        noun = BlockingCounted(app.inner, app.portal)
        return {"slug": noun.count_copies("people", copies=2).slug, "inherited": noun.get("people").slug}


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    print(json.dumps({**asyncio.run(ask(folder)), "sync": ask_blocking(folder)}))
