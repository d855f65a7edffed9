"""What the tests of agents share: fires, a ladder that remembers, servers, and waiting for a condition."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from agents.server import AgentServer, ChatServer, serving
from climbing import eventually, ladder
from wakeful.ports.action import Fire

__all__ = ["eventually", "ladder"]


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
async def server(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[AgentServer]:
    """A server whose files are in our home folder, as those of a server on the same machine are."""
    async with serving(AgentServer()) as server:
        monkeypatch.setenv("HOME", server.environ["HOME"])
        yield server


@pytest.fixture
async def chat() -> AsyncIterator[ChatServer]:
    async with serving(ChatServer()) as server:
        yield server
