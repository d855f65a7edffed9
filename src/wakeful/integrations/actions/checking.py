"""The check action: asks a command or a server whether there is anything for an agent to do."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from wakeful.core.errors import FieldError
from wakeful.core.run.results import Done, Failed, Result
from wakeful.core.run.runs import RungName
from wakeful.core.schedule.actions import Command
from wakeful.core.schedule.pre_check import (
    CHECK_OUTPUT_MAX,
    CHECK_TIMEOUT,
    CheckFailed,
    CheckSpec,
    Found,
    NothingFound,
)
from wakeful.core.time.instants import SECOND, format_duration
from wakeful.ports.action import Action, Fire, Ladder, Process

CUT = "\n[cut off]"


class _Unrecorded:
    """A check is not a turn: its progress is not the run's. Only its process is recorded, so that it can be ended."""

    def __init__(self, inner: Ladder) -> None:
        self._inner = inner

    async def climb(self, rung: RungName, *, process: Process | None = None) -> None:
        if process is not None:
            await self._inner.climb("claimed", process=process)


class CheckAction:
    """Performs `CheckSpec` with the actions for commands and requests."""

    is_local = False

    def __init__(self, actions: Mapping[type[Any], Action]) -> None:
        self._actions = actions

    def proves(self, spec: Any) -> RungName:
        return "finished"

    def check(self, spec: Any) -> str | FieldError | None:
        return None

    async def perform(self, spec: CheckSpec, fire: Fire, ladder: Ladder) -> Result:
        """Returns how the check ended, in `carries`; the action itself never fails."""
        asked = spec.check.action
        if isinstance(asked, Command):
            asked = replace(asked, output_max=min(asked.output_max, CHECK_OUTPUT_MAX))
        action = self._actions.get(type(asked))
        if action is None:
            return Done(carries=CheckFailed("this process cannot perform it"))
        try:
            async with asyncio.timeout(CHECK_TIMEOUT / SECOND):
                result = await action.perform(asked, fire, _Unrecorded(ladder))
        except TimeoutError:
            return Done(carries=CheckFailed(f"it took longer than {format_duration(CHECK_TIMEOUT)}"))
        if isinstance(result, Done):
            output = _cut((result.output or "").strip())
            return Done(carries=Found(output) if output else NothingFound())
        error = result.error if isinstance(result, Failed) else getattr(result, "error", type(result).__name__)
        return Done(carries=CheckFailed(str(error)))

    async def close(self) -> None:
        """The actions are closed by their owners."""


def _cut(text: str) -> str:
    data = text.encode("utf-8", "replace")
    return text if len(data) <= CHECK_OUTPUT_MAX else data[:CHECK_OUTPUT_MAX].decode("utf-8", "ignore") + CUT
