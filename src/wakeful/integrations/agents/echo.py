"""The echo agent: replies with the prompt. For a first try, without a model, a key or a cost."""

from collections.abc import Mapping
from typing import Any

from wakeful.core.run.runs import RungName
from wakeful.integrations.actions.reply import reply_of
from wakeful.integrations.agents.one_shot import OneShot
from wakeful.integrations.agents.reply import marked
from wakeful.ports.action import Ladder, NeverReceived
from wakeful.ports.agent import Answer, Exchange, Fate, Replied, Turn


class EchoAgent:
    """Built in."""

    proves: RungName = "finished"
    knows: Mapping[str, type] = {"model": str}

    def check(self, config: Mapping[str, Any]) -> str | None:
        return None

    def begin(self, turn: Turn) -> Exchange:
        async def send(ladder: Ladder) -> Answer:
            await ladder.climb("sent")
            return Replied(reply_of(marked(turn.prompt, turn.fire.slug)), usage={"cost": 0.0})

        return OneShot(send)

    async def ask(self, turn: Turn) -> Fate:
        return NeverReceived()  # it has no effect that could be repeated

    async def close(self) -> None: ...
