"""A command-line agent keeps its sessions on the disk of one node. What a turn on another node does."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from agents.replay import Player, install, recording
from postgres.cluster import BRISK, SHORT, until
from wakeful.app import bootstrap
from wakeful.config import agents as written
from wakeful.core.schedule.actions import Prompt
from wakeful.core.schedule.definition import Definition
from wakeful.core.time.timing import Manual
from wakeful.features.schedules import commands, queries
from wakeful.features.schedules.checks import Checked, ScheduleLimits
from wakeful.integrations.actions.registry import CallRegistry
from wakeful.integrations.agents.from_settings import AgentRegistry
from wakeful.ports.clock import Clock
from wakeful.stores.postgres import PostgresStore

SLUG = "talk"


class Node(NamedTuple):
    """A real node with a home folder of its own, and a program that replays what claude printed."""

    parts: bootstrap.Parts
    player: Player

    async def turn(self) -> dict[str, Any]:
        """One turn to its end; the run, as it reads back."""
        now = self.parts.clock.read().now
        run_id = await self.parts.store.write(lambda tx: commands.run_now(tx, SLUG, now=now))
        self.parts.engine.ring_bell()

        async def read() -> dict[str, Any]:
            return (await self.parts.store.read(lambda tx: queries.run(tx, run_id))).to_json()

        async def is_over() -> bool:
            return (await read())["outcome"] not in ("running", "waiting")

        await until(is_over)
        return await read()


@asynccontextmanager
async def node(url: str, name: str, folder: Path, *scenarios: str) -> AsyncIterator[Node]:
    """One that ticks as long as this lasts."""
    player = install(folder / name / "bin", "claude", *scenarios)
    home = folder / name / "home"
    home.mkdir(parents=True, exist_ok=True)
    described = {"default": written.PresetAgent(adapter="claude", program=str(player.path), cwd=str(home))}

    def agents(clock: Clock, registry: CallRegistry) -> Any:
        return AgentRegistry(home).agents(described, clock, registry)

    store = await PostgresStore.open(url, timeouts=BRISK)
    parts = await bootstrap.assemble(
        store,
        store.clock,
        registry=CallRegistry(),
        limits=SHORT,
        schedule_limits=ScheduleLimits(),
        timezone="UTC",
        name=name,
        agents=agents,
    )
    await parts.engine.start()
    try:
        yield Node(parts, player)
    finally:
        await parts.engine.stop()
        await store.close()


async def test_a_turn_on_another_node_begins_a_session_and_says_so(url: str, tmp_path: Path) -> None:
    """The other node does not even try to continue it; back at home, or on its own node, a session goes on."""
    first_session, second_session = (
        recording("claude", name).stdout.split('"session_id":"')[1].split('"')[0] for name in ("slow", "ok")
    )
    async with node(url, "a", tmp_path, "slow") as a:
        definition = Definition(SLUG, Manual(), Prompt("What is new?"))
        now = a.parts.clock.read().now
        await a.parts.store.write(
            lambda tx: commands.put_many(tx, [Checked(definition, False)], hooks=a.parts.hooks, now=now)
        )
        assert (await a.turn())["sessionId"] == first_session
        again = await a.turn()
        assert (again["sessionId"], again.get("output")) == (first_session, None)
        assert [first_session in call.argv for call in a.player.calls()] == [False, True]
    async with node(url, "b", tmp_path, "ok") as b:
        moved = await b.turn()
        assert moved["outcome"] == "succeeded"
        assert moved["output"] == f"[the session {first_session} is on the node a, not here: a new one was started]"
        assert (await b.turn())["sessionId"] == moved["sessionId"] == second_session
        assert [("--resume" in call.argv, second_session in call.argv) for call in b.player.calls()] == [
            (False, False),
            (True, True),
        ]
    async with node(url, "renamed", tmp_path / "x", "ok") as c:  # a node of that name, but without the disk
        assert "is on the node b" in (await c.turn())["output"]
