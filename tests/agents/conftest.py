"""What the tests of agents share: fires, a ladder that remembers, servers, and waiting for a condition."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from agents.server import AgentServer, ChatServer, serving
from wakeful.core.runs import RungName
from wakeful.ports.action import Fire, Process

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


def make_fire(**changed: Any) -> Fire:
    """The first attempt at one instant."""
    return Fire(
        run_id=42,
        schedule_id=7,
        slug="standup",
        planned_at=1_769_763_600_000,
        due_at=1_769_763_600_000,
        trigger="schedule",
        attempt=1,
        idempotency_key="store-7-1769763600000",
    )._replace(**changed)


@pytest.fixture
def fire() -> Fire:
    return make_fire()


@pytest.fixture
def ladder() -> RecordingLadder:
    return RecordingLadder()


@pytest.fixture
async def server() -> AsyncIterator[AgentServer]:
    async with serving(AgentServer()) as server:
        yield server


@pytest.fixture
async def chat() -> AsyncIterator[ChatServer]:
    async with serving(ChatServer()) as server:
        yield server


@pytest.fixture
def eventually() -> Eventually:
    """Wait for a condition, not for a time."""

    async def wait_for(condition: Callable[[], object]) -> None:
        async with asyncio.timeout(10):
            while not condition():
                await asyncio.sleep(0.01)

    return wait_for
