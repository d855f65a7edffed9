"""An app's agents: their programs, and their last turns and sessions from the ledger."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple, TypeAlias

from wakeful.core.description import Object
from wakeful.core.returned import Named, kind, kind_of_object
from wakeful.core.run.runs import RungName
from wakeful.features.money.queries import AgentCost
from wakeful.features.schedules.run_views import RUN, RunView

if TYPE_CHECKING:
    from wakeful.config.agents import Agent as WrittenAgent

VERSION_WAIT: Final = 2.0
"""Seconds that a list waits for versions; a slower program is listed without a version until it has printed one."""

_RUN: Final = {field.name: field for field in RUN}
LAST_TURN: Final = Object(
    "LastTurn",
    "The latest run that used an agent.",
    [
        _RUN["runId"],
        _RUN["slug"],
        replace(_RUN["startedAt"], name="at", says="start time"),
        _RUN["outcome"],
        _RUN["error"],
    ],
    RunView,
)
Turn: TypeAlias = Annotated[RunView, kind_of_object(LAST_TURN)]


@dataclass(frozen=True, slots=True)
class AgentState:
    """An agent: configuration and state."""

    name: Annotated[str, kind({"type": "string", "examples": ["default"]})]
    adapter: Annotated[str, kind({"type": "string", "examples": ["claude"]})]
    program: Annotated[str | None, "path of its program, or its name if not found; null if it runs none"]
    version: Annotated[str | None, "as printed by its program; null if unknown"]
    is_found: Annotated[bool, "false if its program is not installed on this machine", Named("found")]
    problem: Annotated[str | None, "why it is unusable, and the cure"]
    proves: Annotated[RungName, "highest rung it can prove"]
    last_turn: Turn | None
    turns: Annotated[list[Turn], "the newest five"]
    sessions: Annotated[int, "number of schedules with a session at this agent"]
    cost: Annotated[AgentCost, "unknown costs are left out"]


class Program(NamedTuple):
    """The program that an agent runs."""

    adapter: str
    path: str | None  # its name, if it was not found; None: it runs none
    version: str | None
    is_found: bool
    problem: str | None


class MissingProgram(NamedTuple):
    """That the program of an agent is not installed, and where its path is written."""

    problem: str
    place: str


def missing_programs(agents: "Mapping[str, WrittenAgent]") -> dict[str, MissingProgram]:
    """The agents in the settings whose program is not installed."""
    from wakeful.integrations.agents.programs import lacking, place_of, program_of

    programs = {name: program_of(agent) for name, agent in agents.items()}
    problems = {name: lacking(program) for name, program in programs.items() if program is not None}
    return {
        name: MissingProgram(problem, place_of(name, agents[name]))
        for name, problem in problems.items()
        if problem is not None
    }


OWN_FUNCTION: Final = Program("call", None, None, True, None)
"""An agent that is a function of this program."""


class Programs:
    """Finds agents' programs, and asks them for their versions in threads, one call at a time for each program."""

    def __init__(self) -> None:
        from wakeful.integrations.agents.programs import Versions  # it needs the settings, which few programs have

        self._versions = Versions()
        self._under_way: dict[str, asyncio.Task[str | None]] = {}

    async def of(self, name: str, written: "WrittenAgent") -> Program:
        """The program of an agent in the settings."""
        from wakeful.integrations.agents.programs import find_program, place_of, program_of, unusable

        program = program_of(written)
        if program is None:
            return Program(written.adapter, None, None, True, None)
        path = find_program(program)
        problem = await asyncio.to_thread(unusable, written, place=place_of(name, written))  # it may try the sandbox
        version = None if path is None else await self._version(path)
        return Program(written.adapter, path or program, version, path is not None, problem)

    async def _version(self, path: str) -> str | None:
        """The version, if it is known within `VERSION_WAIT`; otherwise the lookup continues in the background."""
        task = self._under_way.get(path)
        if task is None:
            task = self._under_way[path] = asyncio.create_task(asyncio.to_thread(self._versions.of, path))
            task.add_done_callback(lambda _: self._under_way.pop(path, None))
        await asyncio.wait({task}, timeout=VERSION_WAIT)
        return task.result() if task.done() and not task.cancelled() else None
