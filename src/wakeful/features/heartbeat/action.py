"""The action of a heartbeat turn: assembles the prompt when the turn starts and sends it like any other prompt."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from wakeful.core.errors import FieldError
from wakeful.core.heartbeat.acknowledgement import AckRules
from wakeful.core.run.results import Done, Result
from wakeful.core.run.runs import RungName
from wakeful.core.schedule.actions import Memory, Prompt
from wakeful.features.heartbeat.prompts import FILE_MAX, FILE_NAME, assemble, is_blank
from wakeful.ports.action import Action, Fire, Inquirable, Ladder, Told
from wakeful.ports.store import SystemEvent

Notes: TypeAlias = Callable[[], Awaitable[str | None]]
"""Reads HEARTBEAT.md; None if there is no such file."""


@dataclass(frozen=True, slots=True)
class NothingToDo:
    """The output of a beat that needs no turn: its file is empty and no event is waiting."""


@dataclass(frozen=True, slots=True)
class HeartbeatTurn:
    """A turn to perform."""

    agent: str
    prompt: str
    events: tuple[SystemEvent, ...]
    reasons: tuple[str, ...]
    ack: AckRules = field(default_factory=AckRules)
    session_config: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_beat(self) -> bool:
        """Whether only the clock requested it and it carries no events."""
        return self.reasons == ("interval",) and not self.events


class HeartbeatAction:
    """Performs `HeartbeatTurn` through the action that performs prompts."""

    is_local = False

    def __init__(self, turns: Action, notes: Notes) -> None:
        self._turns = turns
        self._notes = notes

    def proves(self, spec: HeartbeatTurn) -> RungName:
        return self._turns.proves(Prompt("", spec.agent, spec.session_config))

    def check(self, spec: HeartbeatTurn) -> str | FieldError | None:
        return self._turns.check(Prompt("", spec.agent, spec.session_config))

    async def perform(self, spec: HeartbeatTurn, fire: Fire, ladder: Ladder) -> Result:
        notes = await self._notes()
        if notes is not None and is_blank(notes) and spec.is_beat:
            return Done("claimed", carries=NothingToDo())
        return await self._turns.perform(_prompt(spec, notes), fire, ladder)

    async def ask(self, spec: HeartbeatTurn, fire: Fire) -> Told:
        """The fate of a turn that was interrupted by a crash."""
        turns = self._turns
        return await turns.ask(_prompt(spec, await self._notes()), fire) if isinstance(turns, Inquirable) else None

    async def close(self) -> None:
        """The prompt action is closed by its owner."""


def notes_in(home: Path | None) -> Notes:
    """Reads the file in this folder; without a folder there is none."""

    async def read() -> str | None:
        return None if home is None else await asyncio.to_thread(_read, home / FILE_NAME)

    return read


def _prompt(spec: HeartbeatTurn, notes: str | None) -> Prompt:
    """HEARTBEAT.md is sent with each turn and not kept in the transcript; events and replies are."""
    text = assemble(spec.prompt, notes, spec.events, spec.reasons)
    memory = Memory(assemble(spec.prompt, None, spec.events, spec.reasons), spec.ack)
    return Prompt(text, spec.agent, spec.session_config, memory)


def _read(path: Path) -> str | None:
    """The file's text; None if it does not exist or cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(FILE_MAX).decode("utf-8", "replace")
    except OSError:
        return None
