"""An agent that does as it is told, on any clock."""

from collections.abc import Callable, Mapping
from typing import Any

from wakeful.core.run.runs import RungName
from wakeful.core.time.instants import MINUTE, Duration
from wakeful.ports.action import Ladder
from wakeful.ports.agent import Accepted, Answer, Fate, NoSign, Sight, Turn
from wakeful.ports.clock import Clock


class Puppet:
    """An agent and its exchange in one: answers and looks as its script says."""

    proves: RungName = "finished"
    knows: Mapping[str, type] = {"bad": int}

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.answer: Answer = Accepted("s-1", 5 * MINUTE)
        self.takes: Duration = 0
        self.sights: Callable[[Duration], Sight] = lambda since: NoSign()
        self.ends: bool = True
        self.turns: list[Turn] = []
        self.asked: list[Turn] = []
        self.looks: list[Duration] = []
        self.cancels = self.cleans = 0
        self.fate: Fate = None
        self._since = 0

    def check(self, config: Mapping[str, Any]) -> str | None:
        return "this will not do" if "bad" in config else None

    def begin(self, turn: Turn) -> "Puppet":
        self.turns.append(turn)
        return self

    async def ask(self, turn: Turn) -> Fate:
        self.asked.append(turn)
        return self.fate

    async def close(self) -> None: ...

    async def send(self, ladder: Ladder) -> Answer:
        await ladder.climb("sent")
        await self.clock.sleep(self.takes)
        self._since = self.clock.read().monotonic
        return self.answer

    async def look(self) -> Sight:
        since = self.clock.read().monotonic - self._since
        self.looks.append(since)
        return self.sights(since)

    async def cancel(self) -> bool:
        self.cancels += 1
        return self.ends

    async def clean_up(self, *, is_over: bool) -> None:
        self.cleans += is_over


def at(*steps: tuple[Duration, Sight]) -> Callable[[Duration], Sight]:
    """What is seen from which moment on."""
    return lambda since: [sight for begin, sight in ((0, NoSign()), *steps) if begin <= since][-1]
