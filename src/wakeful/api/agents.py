"""Agents: what can be asked of them."""

import asyncio
import re
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Final

from wakeful.api.operation import Noun, Returns, perform
from wakeful.api.parameters import Param
from wakeful.api.schedules import Started
from wakeful.app.agents import OWN_FUNCTION, AgentState
from wakeful.app.bootstrap import agents_of
from wakeful.core.errors import refuse
from wakeful.core.fields import shown
from wakeful.core.refusals import NotFound
from wakeful.core.returned import returned
from wakeful.features.money.queries import AgentCost, cost_of_agents
from wakeful.features.schedules import commands, queries
from wakeful.features.schedules.agents import AgentRecord, agent_records

TEST_PROMPT: Final = "This is a test of the connection. Reply with one short sentence."
TEST_SLUG: Final = "agent-test."
PROMPT_MAX: Final = 10_000
_LOOK: Final = 250
_OPEN: Final = ("running", "waiting")
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
_NAME_SCHEMA: Final = {"type": "string", "examples": ["default"], "pattern": f"^{_NAME.pattern}$"}


@dataclass(frozen=True, slots=True)
class Agents:
    """All agents of this daemon."""

    agents: list[AgentState]


def known_agent(name: str) -> str:
    """A name that an agent may have; 404 for any other text."""
    if not _NAME.fullmatch(name):
        raise NotFound(f"there is no agent {shown(name)}")
    return name


def prompt_of(text: str) -> str:
    """A test prompt."""
    if not 0 < len(text) <= PROMPT_MAX:
        refuse("prompt", f"has {len(text)} characters; write 1 to {PROMPT_MAX}, or leave it out")
    return text


class AgentTurns(Noun):
    """Agents, and turns to test them."""

    @perform(
        "GET /api/agents",
        "List agents",
        Returns(returned(Agents, name="AgentList"), "By name."),
        least="read",
        id="list_agents",
        tag="agents",
    )
    async def agents(self) -> Agents:
        """A program's version is determined once, and again when its file changes. The list does not wait for a slow
        program: its version is null until then."""
        app = self._app
        records, costs = await app._look(
            lambda tx, now: (agent_records(tx), cost_of_agents(tx, zone=app._money_zone, now=now))
        )
        views = [
            self._view(name, records.get(name, AgentRecord()), costs.get(name, AgentCost(0.0, 0.0)))
            for name in sorted(agents_of(app._open))
        ]
        return Agents(list(await asyncio.gather(*views)))

    @perform(
        "POST /api/agents/{name}/test",
        "Test an agent with a real prompt",
        Returns(returned(Started), "The run was requested; read it at /api/runs/{id}."),
        statuses=(202,),
        refuses=(404, 409),
        id="test_agent",
        tag="agents",
        body_name="AgentTest",
        body_says="A test prompt.",
    )
    async def test_agent(
        self,
        name: Annotated[str, Param(schema=_NAME_SCHEMA, read=known_agent)],
        *,
        prompt: Annotated[str | None, Param(read=prompt_of, example="Reply with one short sentence.")] = None,
    ) -> Started:
        """One turn in a new session. Its temporary schedule is removed afterwards; the run stays in the ledger."""
        app, slug = self._app, _slug(name)
        if name not in agents_of(app._open):
            raise NotFound(f"there is no agent {name!r}; see: wakeful agents")
        definition = {
            "schedule": {"type": "manual"},
            "prompt": prompt or TEST_PROMPT,
            "agent": name,
            "sessionConfig": {"persistSession": False},
            "timeout": "15m",
        }
        await app.schedules.put(slug, definition)
        started = await app.schedules.run(slug)
        assert isinstance(started, Started)  # noqa: S101 - it was not waited for
        app._begin(self._remove_when_over(slug, started.run_id))
        return started

    async def _view(self, name: str, record: AgentRecord, cost: AgentCost) -> AgentState:
        app = self._app
        settings = app._host.settings
        written = None if settings is None else settings().loaded.settings.agents.get(name)
        program = OWN_FUNCTION if written is None else await app._programs.of(name, written)
        return AgentState(
            name=name,
            adapter=program.adapter,
            program=program.path,
            version=program.version,
            is_found=program.is_found,
            problem=program.problem,
            proves=agents_of(app._open)[name].proves,
            last_turn=record.last_turn,
            turns=list(record.turns),
            sessions=record.sessions,
            cost=cost,
        )

    async def _remove_when_over(self, slug: str, run_id: int) -> None:
        """Remove a test's schedule once its run has ended. After a crash it stays until the next test."""
        app = self._app
        while (await app._look(lambda tx, _: queries.run(tx, run_id))).outcome in _OPEN:
            await app.sleep(_LOOK)
        with suppress(NotFound):  # a person was faster
            await app._command(lambda tx, now: commands.remove(tx, slug, hooks=app._open.hooks, now=now))


def _slug(name: str) -> str:
    """The schedule that tests this agent."""
    plain = "".join(char if char.isascii() and (char.isalnum() or char in "._-") else "-" for char in name.lower())
    return f"{TEST_SLUG}{plain}"[:64]
