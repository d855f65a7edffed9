"""Every operation, asked by every role, by an agent and by runs, against one table of expectations."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from edges.http.kit import Client
from edges.http.test_access import ADMIN, AGENT, OPERATE, OTHER_AGENT, READ, bearer, guarded
from patience import PATIENCE
from wakeful import Wakeful
from wakeful.api.actors import Actor, Agent, Refused
from wakeful.api.nouns import NOUNS
from wakeful.api.operation import operations_of
from wakeful.core.self_scheduling.limits import SelfSchedulingTerms
from wakeful.integrations.agents.call import CallAgent

# Who may: r: read, o: operate, a: admin, g: agents and their runs, c: the runs of commands; -: it checks a token of its
# own, or needs none.
EXPECTED = """
-     GET /
roa   GET /api/agents
oa    POST /api/agents/{name}/test
roa   GET /api/alerts
oa    POST /api/alerts/{id}/acknowledge
a     POST /api/apply
roa   GET /api/approvals
a     POST /api/approvals/{id}
roa   GET /api/budget
a     PUT /api/budget
oa    POST /api/budget/{agent}/release
roa   GET /api/calendar.ics
a     GET /api/calendar/key
a     POST /api/calendar/key
roagc GET /api/caller
roa   GET /api/channels
a     POST /api/channels/{name}/messages
oa    POST /api/channels/{name}/test
a     POST /api/channels/{name}/touch
roa   GET /api/config
roa   GET /api/cost
roa   GET /api/deliveries
a     POST /api/deliveries
a     DELETE /api/deliveries/{id}
roa   GET /api/deliveries/{id}
oa    POST /api/deliveries/{id}/retry
roa   GET /api/export
roa   GET /api/forecast
roa   GET /api/forms/schedule
roa   GET /api/forms/slot
roa   GET /api/forms/workflow
roa   GET /api/heartbeat
oa    POST /api/heartbeat/pause
oa    POST /api/heartbeat/resume
-     POST /api/hooks/{name}
a     POST /api/import
roa   GET /api/inbox
oa    POST /api/inbox/read
a     DELETE /api/inbox/{id}
oa    POST /api/inbox/{id}/read
a     POST /api/login-codes
a     DELETE /api/logins
roa   GET /api/nodes
oa    POST /api/pause
oa    POST /api/replay
oa    POST /api/resume
roa   GET /api/routes
roa   GET /api/runs
roa   GET /api/runs/{id}
oa    POST /api/runs/{id}/cancel
-     POST /api/runs/{id}/receipt
oa    POST /api/runs/{id}/replay
roag  GET /api/schedule
ag    DELETE /api/schedule/{slug}
roag  GET /api/schedule/{slug}
a     PATCH /api/schedule/{slug}
ag    PUT /api/schedule/{slug}
oa    POST /api/schedule/{slug}/acknowledge
oa    DELETE /api/schedule/{slug}/backfill
oa    POST /api/schedule/{slug}/backfill
roag  GET /api/schedule/{slug}/next
oag   POST /api/schedule/{slug}/pause
oag   POST /api/schedule/{slug}/resume
oa    POST /api/schedule/{slug}/run
roag  GET /api/schedule/{slug}/runs
roa   GET /api/schedule/{slug}/stats
roag  GET /api/schedule/{slug}/why
oa    POST /api/simulate
roa   GET /api/slots
a     DELETE /api/slots/{name}
roa   GET /api/slots/{name}
a     PATCH /api/slots/{name}
a     PUT /api/slots/{name}
oa    POST /api/slots/{name}/poll
oa    POST /api/slots/{name}/resume
roa   GET /api/slots/{name}/runs
oa    POST /api/slots/{name}/wake
roa   GET /api/stream
roa   GET /api/system-events
roa   GET /api/timeline
roa   GET /api/today
oagc  POST /api/tools/{name}
oa    POST /api/understand
roa   GET /api/upcoming
oagc  POST /api/wake
roa   GET /api/workflows
a     DELETE /api/workflows/{id}
roa   GET /api/workflows/{id}
a     PATCH /api/workflows/{id}
a     PUT /api/workflows/{id}
oa    POST /api/workflows/{id}/pause
oa    POST /api/workflows/{id}/resume
oa    POST /api/workflows/{id}/run
roa   GET /api/workflows/{id}/runs
oa    POST /api/workflows/{id}/runs/{run}/resolve
roa   GET /api/workflows/{id}/sessions
roa   GET /api/workflows/{id}/topics/{topic}/messages
a     POST /api/workflows/{id}/topics/{topic}/messages
oa    POST /api/workflows/{id}/topics/{topic}/replay
oa    POST /api/workflows/{id}/topics/{topic}/skip
-     GET /healthz
roa   GET /metrics
-     GET /readyz
"""
# What an agent may ask of its own schedule `tidy`, and what it is told. Of others' it is told that there is none; a PUT
# makes one of its own.
OWNED = {
    "GET /api/schedule/{slug}": 200,
    "GET /api/schedule/{slug}/next": 200,
    "GET /api/schedule/{slug}/runs": 200,
    "GET /api/schedule/{slug}/why": 200,
    "PUT /api/schedule/{slug}": 200,
    "POST /api/schedule/{slug}/pause": 200,
    "POST /api/schedule/{slug}/resume": 200,
    "DELETE /api/schedule/{slug}": 204,
}
ROLES = {"r": READ, "o": OPERATE, "a": ADMIN, "g": AGENT}
ACTORS = {
    "r": Actor("read"),
    "o": Actor("operate"),
    "a": Actor("admin"),
    "g": Actor("agent", agent=Agent("coder")),
    "c": Actor("agent", agent=Agent("default", 1, "build", 0, None, is_agent_run=False)),
}
OPEN_ENDED = {"GET /api/stream"}
PROMPT = {"schedule": {"type": "manual"}, "prompt": "What is new?", "agent": "coder"}
TURN = {"schedule": {"type": "every", "every": "2h"}, "prompt": "Tidy up"}


def expected() -> dict[str, str]:
    """Who may send a request, by its route."""
    lines = [line.split(maxsplit=1) for line in EXPECTED.strip().splitlines()]
    return {route: who for who, route in lines}


@asynccontextmanager
async def working(path: Path) -> AsyncIterator[tuple[Client, dict[str, str]]]:
    """An API with a turn and a command's run that last, and the tokens of their runs."""
    over = asyncio.Event()

    def agents(_: Any, registry: Any) -> Any:
        async def wait(prompt: str = "") -> str:
            await over.wait()
            return "done"

        registry.register("bot", wait)
        return {name: CallAgent("bot", registry) for name in ("coder", "writer", "default")}

    terms = SelfSchedulingTerms(approval="never")
    async with guarded(path, settings={"agents": agents, "self_scheduling": terms}) as api:
        tokens = {}
        for name, work in (("turn", PROMPT), ("command", {"schedule": {"type": "manual"}, "call": {"target": "bot"}})):
            assert (await api.put(name, work, headers=bearer(ADMIN))).status == 201
            run_id = (await api.post(f"/api/schedule/{name}/run", headers=bearer(ADMIN))).body["runId"]
            tokens[name] = await token_of(api, int(run_id))
        try:
            yield api, tokens
        finally:
            over.set()


async def token_of(api: Client, run_id: int) -> str:
    """The token of a run, once it is running."""
    parts = api.app._open
    async with asyncio.timeout(PATIENCE):
        while True:
            run = (await parts.store.read(lambda tx: tx.runs.lock([run_id])))[run_id]
            if run.outcome == "running" and parts.run_tokens is not None:
                return parts.run_tokens.token(run_id, run.fence)
            await asyncio.sleep(0.01)


def path_of(route: str) -> str:
    """A path of this route, of something that does not exist."""
    return re.sub(r"\{(\w+)\}", lambda name: "999999" if name[1] in ("id", "run") else "none", route.partition(" ")[2])


async def test_the_table_has_every_operation(tmp_path: Path) -> None:
    """A new operation needs a line here."""
    async with guarded(tmp_path) as api:
        paths = (await api.get("/api/openapi.json", headers=bearer(ADMIN))).body["paths"]
    described = {f"{method.upper()} {path}" for path, methods in paths.items() for method in methods}
    without_role = {"POST /login", "POST /logout"}
    assert described - without_role <= expected().keys()


@pytest.mark.parametrize("role", ROLES)
async def test_each_role_may_do_what_the_table_says(tmp_path: Path, role: str) -> None:
    """With 403 for everything else."""
    async with guarded(tmp_path) as api:
        wrong = {}
        for route, permitted in expected().items():
            if route in OPEN_ENDED or permitted == "-":
                continue
            answer = await api.ask(route.split()[0], path_of(route), {}, headers=bearer(ROLES[role]))
            if (answer.status != 403) != (role in permitted):
                wrong[route] = answer.status
    assert wrong == {}


@pytest.mark.parametrize(("run", "letter"), [("turn", "g"), ("command", "c")])
async def test_each_run_may_do_what_the_table_says(tmp_path: Path, run: str, letter: str) -> None:
    """A turn what its agent may; a command's run reports and wakes, and may list nothing."""
    async with working(tmp_path) as (api, runs):
        wrong = {}
        for route, permitted in expected().items():
            if route in OPEN_ENDED or permitted == "-":
                continue
            answer = await api.ask(route.split()[0], path_of(route), {}, headers=bearer(runs[run]))
            if (answer.status != 403) != (letter in permitted):
                wrong[route] = answer.status
    assert wrong == {}


@pytest.mark.parametrize("route", OWNED)
async def test_an_agent_and_its_run_reach_what_the_agent_owns(tmp_path: Path, route: str) -> None:
    """By its own short name; for another agent it does not exist, and a command's run may not ask."""
    method, path = route.split()
    path = path.replace("{slug}", "tidy")
    body = TURN if method == "PUT" else None
    async with working(tmp_path) as (api, runs):
        assert (await api.put("tidy", TURN, headers=bearer(AGENT))).status == 201
        asking = {"another agent": OTHER_AGENT, "a command": runs["command"], "its run": runs["turn"], "itself": AGENT}
        told = {}
        for who, token in asking.items():
            told[who] = (await api.ask(method, path, body, headers=bearer(token))).status
            if method == "DELETE" and told[who] == 204:
                assert (await api.put("tidy", TURN, headers=bearer(AGENT))).status == 201
        assert told == {
            "another agent": 201 if method == "PUT" else 404,
            "a command": 403,
            "its run": OWNED[route],
            "itself": OWNED[route],
        }
        if "o" in expected()[route] or "a" in expected()[route]:
            answer = await api.ask(method, path.replace("tidy", "coder.tidy"), body, headers=bearer(ADMIN))
            assert answer.status == OWNED[route]


def test_the_table_has_what_agents_may_own() -> None:
    """An operation on a name that an agent may ask for needs a line."""
    assert {route for route, who in expected().items() if "g" in who and "{slug}" in route} == OWNED.keys()


async def test_an_agent_lists_only_what_it_owns(tmp_path: Path) -> None:
    """What has no name is not refused; it is shortened."""
    async with working(tmp_path) as (api, _):
        assert (await api.put("tidy", TURN, headers=bearer(AGENT))).status == 201
        listed = {
            token: [one["slug"] for one in (await api.get("/api/schedule", headers=bearer(token))).body["schedules"]]
            for token in (AGENT, OTHER_AGENT, READ)
        }
        assert listed == {AGENT: ["coder.tidy"], OTHER_AGENT: [], READ: ["coder.tidy", "command", "turn"]}


@pytest.mark.parametrize("letter", ACTORS)
async def test_in_python_each_actor_may_do_what_the_table_says(tmp_path: Path, letter: str) -> None:
    """The same checks, before anything else: not even the arguments are looked at."""
    app, actor = Wakeful(tmp_path / "wakeful.db"), ACTORS[letter]
    who = expected()
    for noun in NOUNS.values():
        for one in operations_of(noun):
            permitted = who[one.route].replace("-", "roa")  # strangers may ask a daemon for its health, over REST only
            if letter in permitted:
                assert one.may(actor), one.route
                continue
            with pytest.raises(Refused):
                await one.then(noun(app, actor), None)
