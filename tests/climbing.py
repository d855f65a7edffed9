"""What tests of actions and agents share: a ladder that remembers, and waiting for a condition."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from patience import PATIENCE
from wakeful.core.run.runs import RungName
from wakeful.ports.action import Process

Eventually = Callable[[Callable[[], object]], Awaitable[None]]


class RecordingLadder:
    """Remembers what was climbed; raises instead if told to, and lets a test look on at each rung."""

    def __init__(self) -> None:
        self.rungs: list[RungName] = []
        self.process: Process | None = None
        self.refuses: dict[RungName, Exception] = {}
        self.on_rung: Callable[[RungName], object] = lambda rung: None

    async def climb(self, rung: RungName, *, process: Process | None = None) -> None:
        if rung in self.refuses:
            raise self.refuses[rung]
        self.on_rung(rung)
        self.rungs.append(rung)
        self.process = process or self.process


@pytest.fixture
def ladder() -> RecordingLadder:
    return RecordingLadder()


@pytest.fixture
def eventually() -> Eventually:
    """Wait for a condition, not for a time."""

    async def wait_for(condition: Callable[[], object]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not condition():
                await asyncio.sleep(0.01)

    return wait_for
