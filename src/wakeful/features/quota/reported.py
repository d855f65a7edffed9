"""An agent's slot: its readings come with the agent's turns. Nothing polls or wakes it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from wakeful.core.slot.slot import ReadFailure, Reading, SlotRules
from wakeful.core.time.instants import Instant
from wakeful.ports.action import Fire, Ladder
from wakeful.ports.quota import WakeFailure

PROVIDER: Final = "agent"
REPORTED_RULES: Final = SlotRules(is_polled=False)


@dataclass(frozen=True, slots=True)
class ReportedSlot:
    """The definition of an agent's slot."""

    agent: str

    def to_json(self) -> dict[str, Any]:
        return {"enabled": True, "provider": PROVIDER, "agent": self.agent}


def reported_definition(agent: str) -> str:
    """The stored definition of an agent's slot."""
    return json.dumps({"provider": PROVIDER, "agent": agent}, ensure_ascii=False, sort_keys=True)


def reported_slot(data: object) -> ReportedSlot | None:
    """The agent's slot that this definition describes, if it does."""
    if not isinstance(data, Mapping) or data.get("provider") != PROVIDER or not isinstance(data.get("agent"), str):
        return None
    return ReportedSlot(data["agent"])


def is_reported(definition: str) -> bool:
    """Whether a stored definition belongs to an agent's slot."""
    try:
        return reported_slot(json.loads(definition)) is not None
    except ValueError:
        return False


class ReportedQuota:
    """Stands in for a provider: it can be neither read nor woken."""

    can_wake = False
    has_statistics = False

    def __init__(self, agent: str) -> None:
        self._agent = agent

    @property
    def mark(self) -> str:
        return f"{PROVIDER}:{self._agent}"

    async def read(self, action: str) -> Reading | ReadFailure:
        return ReadFailure("unreadable", self._reported_only)

    async def wake(self, action: str, fire: Fire, ladder: Ladder) -> WakeFailure | None:
        return WakeFailure(self._reported_only)

    async def statistics(self, reading: Reading, *, now: Instant) -> Mapping[str, Any] | ReadFailure:
        return ReadFailure("unreadable", self._reported_only)

    async def close(self) -> None: ...

    @property
    def _reported_only(self) -> str:
        return f"agent {self._agent} reports its quota with its turns"
