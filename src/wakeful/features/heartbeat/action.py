"""The action of a turn: the prompt is put together when the agent is asked, and goes the way of every prompt."""

import asyncio
from dataclasses import dataclass
from pathlib import Path

from wakeful.core.actions import Prompt
from wakeful.core.errors import FieldError
from wakeful.core.results import Result
from wakeful.core.runs import RungName
from wakeful.features.heartbeat.prompts import FILE_MAX, FILE_NAME, assemble
from wakeful.ports.action import Action, Fire, Ladder, Tells, Told
from wakeful.ports.store import SystemEvent


@dataclass(frozen=True, slots=True)
class HeartbeatTurn:
    """A turn to be taken."""

    agent: str
    prompt: str
    events: tuple[SystemEvent, ...]
    reasons: tuple[str, ...]


class HeartbeatAction:
    """Performs `HeartbeatTurn` through whoever performs prompts."""

    is_local = False

    def __init__(self, turns: Action, home: Path | None) -> None:
        self._turns = turns
        self._home = home

    def proves(self, spec: HeartbeatTurn) -> RungName:
        return self._turns.proves(Prompt("", spec.agent))

    def check(self, spec: HeartbeatTurn) -> str | FieldError | None:
        return self._turns.check(Prompt("", spec.agent))

    async def perform(self, spec: HeartbeatTurn, fire: Fire, ladder: Ladder) -> Result:
        return await self._turns.perform(await self._prompt(spec), fire, ladder)

    async def ask(self, spec: HeartbeatTurn, fire: Fire) -> Told:
        """What became of a turn that a crash cut off."""
        turns = self._turns
        return await turns.ask(await self._prompt(spec), fire) if isinstance(turns, Tells) else None

    async def _prompt(self, spec: HeartbeatTurn) -> Prompt:
        notes = None if self._home is None else await asyncio.to_thread(_read, self._home / FILE_NAME)
        return Prompt(assemble(spec.prompt, notes, spec.events, spec.reasons), spec.agent)

    async def close(self) -> None:
        """Whoever performs prompts is closed as such."""


def _read(path: Path) -> str | None:
    """The file, as far as it can be read; one that is not there says nothing."""
    try:
        with path.open("rb") as file:
            return file.read(FILE_MAX).decode("utf-8", "replace")
    except OSError:
        return None
