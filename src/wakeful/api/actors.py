"""Who asks for an operation: a person or program with a role, or an agent that reaches only what it owns."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from wakeful.features.schedules import owned

Role: TypeAlias = Literal["read", "operate", "admin"]
Agent: TypeAlias = owned.Actor
RIGHTS: Final[Mapping[str, int]] = {"read": 0, "operate": 1, "admin": 2}


ONLY_WAKES: Final = "a command's run may only report its result, wake the heartbeat, and call wake_me"


class Refused(Exception):
    """The role of who asks does not permit the operation."""


@dataclass(frozen=True, slots=True)
class Actor:
    """Who asks."""

    role: Role | Literal["agent"] = "admin"
    name: str = ""
    agent: Agent | None = None
    run_id: int | None = None  # the run that it asks from


PROGRAM: Final = Actor()
"""The program that this code runs in: it may do everything."""
