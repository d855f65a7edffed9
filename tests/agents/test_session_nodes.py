"""A command-line agent keeps its sessions on the disk of one node. What a turn on another node does, for a schedule,
the heartbeat and a conversation, on both stores."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from agents.replay import Player, install, recording
from postgres.cluster import until
from postgres.server import emptied_url as url
from postgres.server import server
from wakeful import Wakeful, manual
from wakeful.config import agents as written
from wakeful.core.heartbeat.conversations import conversation
from wakeful.features.heartbeat.feature import HeartbeatFeature
from wakeful.features.heartbeat.rules import HeartbeatTerms
from wakeful.features.schedules.run_views import RunView
from wakeful.integrations.actions.registry import CallRegistry
from wakeful.integrations.agents.from_settings import AgentRegistry
from wakeful.ports.clock import Clock

__all__ = ["server", "url"]

FIRST, SECOND = (recording("claude", name).stdout.split('"session_id":"')[1].split('"')[0] for name in ("slow", "ok"))


class Node(NamedTuple):
    """A real node with a home folder of its own, and a program that replays what claude printed."""

    app: Wakeful
    player: Player

    async def schedule(self) -> None:
        await self.app.add("talk", manual(), prompt="What is new?")
        await self.app.run_now("talk")

    async def heartbeat(self) -> None:
        await self.app.request_wake("manual")

    async def conversation(self) -> None:
        await self.app.people.receive("desk", "ann", "What is new?")

    async def turn(self, kind: str) -> RunView:
        """One turn to its end; the run, as it reads back."""
        slug = {"schedule": "talk", "heartbeat": "heartbeat", "conversation": conversation("desk", "ann")}[kind]
        known = {run.run_id for run in await self._runs(slug)}
        begin: Callable[[], Awaitable[None]] = getattr(self, kind)
        await begin()

        async def ended() -> list[RunView]:
            rows = await self._runs(slug)
            return [run for run in rows if run.run_id not in known and run.outcome not in ("running", "waiting")]

        await until(ended)
        return (await ended())[0]

    async def _runs(self, slug: str) -> list[RunView]:
        try:
            return await self.app.runs(slug)
        except LookupError:
            return []


@asynccontextmanager
async def node(store: str | Path, name: str, folder: Path, *scenarios: str) -> AsyncIterator[Node]:
    """One that ticks as long as this lasts."""
    player = install(folder / name / "bin", "claude", *scenarios)
    home = folder / name / "home"
    home.mkdir(parents=True, exist_ok=True)
    described = {"default": written.PresetAgent(adapter="claude", program=str(player.path), cwd=str(home))}

    def agents(clock: Clock, registry: CallRegistry) -> Any:
        return AgentRegistry(home).agents(described, clock, registry)

    beats = HeartbeatFeature(HeartbeatTerms(enabled=True))
    async with Wakeful(store, name=name, agents=agents, heartbeat=beats) as app:
        app.register_channel("desk", None, lambda *_: None)
        yield Node(app, player)


KINDS = [
    ("sqlite", "schedule"),
    ("sqlite", "heartbeat"),
    ("sqlite", "conversation"),
    ("postgres", "schedule"),
    pytest.param("postgres", "heartbeat", marks=pytest.mark.torture),
    pytest.param("postgres", "conversation", marks=pytest.mark.torture),
]


@pytest.mark.parametrize(("place", "kind"), KINDS)
async def test_a_turn_on_another_node_begins_a_session_and_says_so(
    place: str, kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """The other node does not even try to continue it; back at home, or on its own node, a session goes on."""
    store: str | Path = tmp_path / "wakeful.db"  # a home that was moved to another machine
    if place == "postgres":
        store = request.getfixturevalue("url")
    async with node(store, "a", tmp_path, "slow") as a:
        assert (await a.turn(kind)).session_id == FIRST
        again = await a.turn(kind)
        assert (again.session_id, again.output) == (FIRST, None)
        assert [FIRST in call.argv for call in a.player.calls()] == [False, True]
    async with node(store, "b", tmp_path, "ok") as b:
        moved = await b.turn(kind)
        assert moved.outcome == "succeeded"
        assert moved.output == f"[the session {FIRST} is on the node a, not here: a new one was started]"
        assert (await b.turn(kind)).session_id == moved.session_id == SECOND
        assert [("--resume" in call.argv, SECOND in call.argv) for call in b.player.calls()] == [
            (False, False),
            (True, True),
        ]
    async with node(store, "renamed", tmp_path / "x", "ok") as c:  # a node without the disk
        assert "is on the node b" in ((await c.turn(kind)).output or "")
