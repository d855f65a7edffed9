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
from wakeful.core.schedule.pre_check import CheckFailed, CheckSpec, Found, PreCheck, with_output
from wakeful.features.heartbeat.prompts import FILE_MAX, FILE_NAME, assemble, is_blank
from wakeful.ports.action import Action, Fire, Inquirable, Ladder, Told
from wakeful.ports.store import SystemEvent

Notes: TypeAlias = Callable[[], Awaitable[str | None]]
"""Reads HEARTBEAT.md; None if there is no such file."""


@dataclass(frozen=True, slots=True)
class NothingToDo:
    """The result of a beat that needs no turn: no event waits, and its file is empty or its check found nothing."""

    is_checked: bool = False
    error: str | None = None  # its check failed, and by the settings that does not start a turn


@dataclass(frozen=True, slots=True)
class HeartbeatTurn:
    """A turn to perform."""

    agent: str
    prompt: str
    events: tuple[SystemEvent, ...]
    reasons: tuple[str, ...]
    ack: AckRules = field(default_factory=AckRules)
    session_config: Mapping[str, Any] = field(default_factory=dict)
    check: PreCheck | None = None

    @property
    def is_beat(self) -> bool:
        """Whether only the clock requested the turn and it carries no events."""
        return self.reasons == ("interval",) and not self.events

    @property
    def is_checked(self) -> bool:
        """Whether its check runs: for beats, and for retries, which need its output again."""
        return self.check is not None and not self.events and set(self.reasons) <= {"interval", "retry"}


class HeartbeatAction:
    """Performs `HeartbeatTurn` through the action that performs prompts."""

    is_local = False

    def __init__(self, turns: Action, notes: Notes, checks: Action | None = None) -> None:
        self._turns = turns
        self._notes = notes
        self._checks = checks  # performs `CheckSpec`

    def proves(self, spec: HeartbeatTurn) -> RungName:
        return self._turns.proves(Prompt("", spec.agent, spec.session_config))

    def check(self, spec: HeartbeatTurn) -> str | FieldError | None:
        return self._turns.check(Prompt("", spec.agent, spec.session_config))

    async def perform(self, spec: HeartbeatTurn, fire: Fire, ladder: Ladder) -> Result:
        notes = await self._notes()
        if notes is not None and is_blank(notes) and spec.is_beat:
            return Done("claimed", carries=NothingToDo())
        output = await self._check_output(spec, fire, ladder)
        if isinstance(output, NothingToDo):
            return Done("claimed", carries=output)
        return await self._turns.perform(_prompt(spec, notes, output), fire, ladder)

    async def _check_output(self, spec: HeartbeatTurn, fire: Fire, ladder: Ladder) -> str | NothingToDo | None:
        """The output of the check, if there is one. A retry is due even if the check finds nothing this time."""
        if spec.check is None or self._checks is None or not spec.is_checked:
            return None
        result = await self._checks.perform(CheckSpec(spec.check), fire, ladder)
        match result.carries if isinstance(result, Done) else None:
            case Found(output=output):
                return output
            case CheckFailed(error=error) if spec.check.on_error == "wake":
                return f"(the check failed: {error})"
            case CheckFailed(error=error):
                return NothingToDo(True, error) if spec.is_beat else None
        return NothingToDo(True) if spec.is_beat else None

    async def ask(self, spec: HeartbeatTurn, fire: Fire) -> Told:
        """The fate of a turn that was interrupted by a crash."""
        turns = self._turns
        return await turns.ask(_prompt(spec, await self._notes()), fire) if isinstance(turns, Inquirable) else None

    async def close(self) -> None:
        """The prompt action is closed by its owner."""


def notes_in(home: Path | None) -> Notes:
    """A function that reads the file in this folder; without a folder there is no file."""

    async def read() -> str | None:
        return None if home is None else await asyncio.to_thread(_read, home / FILE_NAME)

    return read


def _prompt(spec: HeartbeatTurn, notes: str | None, output: str | None = None) -> Prompt:
    """HEARTBEAT.md is sent with each turn and not kept in the transcript; events and replies are."""
    text = assemble(spec.prompt, notes, spec.events, spec.reasons)
    if output is not None:
        text = with_output(text, output)
    memory = Memory(assemble(spec.prompt, None, spec.events, spec.reasons), spec.ack)
    return Prompt(text, spec.agent, spec.session_config, memory)


def _read(path: Path) -> str | None:
    """The file's text; None if it does not exist or cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(FILE_MAX).decode("utf-8", "replace")
    except OSError:
        return None
