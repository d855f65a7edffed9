"""An app's agents: listed, and tested with a real prompt."""

from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from wakeful.app import bootstrap
from wakeful.app.definitions import Definitions
from wakeful.core.refusals import NotFound
from wakeful.core.run.runs import RungName
from wakeful.features.schedules import commands, queries
from wakeful.features.schedules.agents import agent_records
from wakeful.features.schedules.views import RunView

TEST_PROMPT: Final = "This is a test of the connection. Reply with one short sentence."
TEST_SLUG: Final = "agent-test."
_LOOK: Final = 250
_OPEN: Final = ("running", "waiting")


@dataclass(frozen=True, slots=True)
class AgentView:
    """One agent of this process, with its last turn and sessions from the ledger."""

    name: str
    proves: RungName
    last_turn: RunView | None
    sessions: int
    turns: tuple[RunView, ...] = ()  # the newest turns, including the last one


class Agents(Definitions):
    """Lists and tests agents."""

    async def agents(self) -> list[AgentView]:
        """All agents of this process, ordered by name."""
        here = bootstrap.agents_of(self._open)
        known = await self._open.store.read(agent_records)
        return [
            AgentView(
                name,
                here[name].proves,
                known[name].last_turn if name in known else None,
                known[name].sessions if name in known else 0,
                known[name].turns if name in known else (),
            )
            for name in sorted(here)
        ]

    async def test_agent(self, name: str, prompt: str | None = None) -> RunView:
        """Send a real prompt in a new session: a manual run of a schedule that is removed afterwards."""
        if name not in bootstrap.agents_of(self._open):
            raise NotFound(f"there is no agent {name!r}; see: wakeful agents")
        slug = _slug(name)
        definition = {
            "schedule": {"type": "manual"},
            "prompt": prompt or TEST_PROMPT,
            "agent": name,
            "sessionConfig": {"persistSession": False},
            "timeout": "15m",
        }
        await self.put(slug, definition)
        run_id = await self._command(lambda tx, now: commands.run_now(tx, slug, now=now))
        self._begin(self._remove_when_over(slug, run_id))
        return await self._open.store.read(lambda tx: queries.run(tx, run_id))

    async def _remove_when_over(self, slug: str, run_id: int) -> None:
        """Remove a test's schedule once its run has ended. After a crash it stays until the next test."""
        while (await self._open.store.read(lambda tx: queries.run(tx, run_id))).outcome in _OPEN:
            await self._clock.sleep(_LOOK)
        with suppress(NotFound):  # a person was faster
            await self._command(lambda tx, now: commands.remove(tx, slug, hooks=self._open.hooks, now=now))


def _slug(name: str) -> str:
    """The schedule that tests this agent."""
    plain = "".join(char if char.isascii() and (char.isalnum() or char in "._-") else "-" for char in name.lower())
    return f"{TEST_SLUG}{plain}"[:64]
