"""The heartbeat of several nodes on one database."""

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any

from postgres.cluster import until
from postgres.server import Server
from wakeful import RunView, Wakeful, every
from wakeful.core.run.runs import RungName
from wakeful.features.heartbeat.feature import HeartbeatFeature
from wakeful.features.heartbeat.rules import HeartbeatTerms
from wakeful.integrations.agents.one_shot import OneShot
from wakeful.ports.action import Ladder
from wakeful.ports.agent import Answer, Exchange, Fate, Replied, Turn


class Scribe:
    """An agent that all nodes share: it writes down what it hears, and how many speak to it at once."""

    proves: RungName = "finished"
    knows: Mapping[str, type] = {}

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.at_once = self.at_once_max = 0

    def check(self, config: Mapping[str, Any]) -> str | None:
        return None

    def begin(self, turn: Turn) -> Exchange:
        async def send(ladder: Ladder) -> Answer:
            await ladder.climb("sent")
            self.at_once += 1
            self.at_once_max = max(self.at_once_max, self.at_once)
            await asyncio.sleep(0.05)
            self.at_once -= 1
            self.heard.append(turn.prompt)
            return Replied("HEARTBEAT_OK", "a-session")

        return OneShot(send)

    async def ask(self, turn: Turn) -> Fate:
        return None

    async def close(self) -> None: ...


async def test_wakes_on_all_nodes_become_turns_one_at_a_time_and_every_event_is_heard(url: str, server: Server) -> None:
    """Three nodes are woken at once, again and again: no event is lost, no two turns overlap, nobody waits for ever."""
    since = server.log_size()
    scribe = Scribe()
    terms = HeartbeatTerms(enabled=True, every=1_000)
    async with AsyncExitStack() as stack:
        nodes = [
            await stack.enter_async_context(
                Wakeful(url, name=name, agents=lambda *_: {"default": scribe}, heartbeat=HeartbeatFeature(terms))
            )
            for name in "abc"
        ]
        await nodes[0].add("check", every("10s"), event="Check BTC RSI")
        await nodes[1].run_now("check")
        for number in range(12):
            wakes = (node.request_wake("hook", f"event {number} of {place}") for place, node in enumerate(nodes))
            await asyncio.gather(*wakes)
            await asyncio.sleep(0.1)

        async def is_heard() -> bool:
            return not (await nodes[0].turns.system_events()).events

        await until(is_heard)
        told = "\n".join(scribe.heard)
        assert all(told.count(f"> event {number} of {place}\n") == 1 for number in range(12) for place in range(3))
        assert "> Check BTC RSI" in told
        assert scribe.at_once_max == 1

        turns: list[RunView] = []

        async def is_finished() -> bool:
            """Between two beats, which go on, every turn that was heard is in the ledger."""
            turns[:] = await nodes[2].runs("heartbeat", limit=500)
            is_turning = any(run.outcome in ("running", "waiting") for run in turns)
            is_complete = sum(run.outcome == "succeeded" for run in turns) == len(scribe.heard)
            checks = await nodes[2].runs("check")
            return not is_turning and is_complete and checks[-1].outcome == "succeeded"

        await until(is_finished)
        assert {run.session_id for run in turns if run.outcome == "succeeded"} == {"a-session"}
        assert {run.outcome for run in turns} <= {"succeeded", "skipped"}
    assert "deadlock" not in server.logged(since)
