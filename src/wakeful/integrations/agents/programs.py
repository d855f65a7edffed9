"""Finds the command-line agents installed on this machine, with their paths and versions."""

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from wakeful.config import agents as written
from wakeful.integrations.actions.program import Unstartable
from wakeful.integrations.actions.sandbox import find_bubblewrap
from wakeful.integrations.agents.presets.catalogue import PRESETS

VERSION_WITHIN: Final = 60.0
"""Seconds a program gets to print its version: some unpack themselves at the first start."""

_VERSION: Final = re.compile(r"\d+(?:\.\d+){1,3}(?:[-+][0-9A-Za-z.-]{1,40})?")
_OUTPUT_MAX: Final = 4_096
# Enough to start an interpreter, and nothing secret.
_PASSED: Final = ("PATH", "HOME", "USER", "LANG", "LC_ALL", "TMPDIR")


class Installed(NamedTuple):
    """A program that was found."""

    adapter: str
    program: str
    path: str


def installed(search: str | None = None) -> list[Installed]:
    """The known agents that are on the PATH, in the order of preference for `default`."""
    programs = ((name, preset.program, find_program(preset.program, search)) for name, preset in PRESETS.items())
    return [Installed(adapter, program, path) for adapter, program, path in programs if path is not None]


def find_program(program: str, search: str | None = None) -> str | None:
    """The path of a program, given its name or path; None if it is not on the PATH or not executable."""
    return shutil.which(str(Path(program).expanduser()) if os.sep in program else program, path=search)


def missing(program: str, search: str | None = None, *, place: str | None = None) -> str | None:
    """An error message for a missing program, with the cure; None if it exists. `place`: where its path is written."""
    problem = lacking(program, search)
    if problem is None:
        return None
    if os.sep in program:
        return f"{problem}; install it there, or correct its path{'' if place is None else f' in {place}'}"
    return f"{problem}; install it, or write its full path {'as program' if place is None else f'in {place}'}"


def unusable(agent: written.Agent, *, place: str | None = None) -> str | None:
    """Why an agent cannot be used on this machine, with the cure: its program or its sandbox is missing."""
    program = program_of(agent)
    problem = None if program is None else missing(program, place=place)
    if problem is None and isinstance(agent, written.CommandAgent) and agent.sandbox is not None:
        try:
            find_bubblewrap()
        except Unstartable as error:
            problem = str(error)
    return problem


def lacking(program: str, search: str | None = None) -> str | None:
    """That a program is missing; None if it exists."""
    if find_program(program, search) is not None:
        return None
    if os.sep in program:
        return f"there is no program {program}"
    folders = search if search is not None else os.environ.get("PATH", os.defpath)
    return f"the program {program!r} was not found on the PATH ({folders})"


def program_of(agent: written.Agent) -> str | None:
    """The program that an agent runs; None if it runs none."""
    if isinstance(agent, written.CommandAgent):
        return agent.argv[0]
    if isinstance(agent, written.PresetAgent):
        return agent.program or PRESETS[agent.adapter].program
    return None


def place_of(name: str, agent: written.Agent) -> str:
    """Where the program of an agent is written."""
    return f"wakeful.toml, [agents.{name}] {'argv' if isinstance(agent, written.CommandAgent) else 'program'}"


class Versions:
    """Queries program versions, again when the file has changed. Blocks: call it in a thread."""

    def __init__(self, *, within: float = VERSION_WITHIN) -> None:
        self._within = within
        self._known: dict[str, tuple[float, str | None]] = {}

    def of(self, path: str) -> str | None:
        """The version the program prints; None if it printed nothing readable in time."""
        try:
            changed = Path(path).stat().st_mtime
        except OSError:
            return None
        known = self._known.get(path)
        if known is not None and known[0] == changed:
            return known[1]
        printed = _asked([path, "--version"], self._within)
        if printed is None:  # perhaps too slow this time; not cached
            return None
        match = _VERSION.search(printed)
        version = None if match is None else match[0]
        self._known[path] = (changed, version)
        return version


def _asked(argv: Sequence[str], within: float) -> str | None:
    env = {name: os.environ[name] for name in _PASSED if name in os.environ}
    try:
        process = subprocess.Popen(  # noqa: S603 - the program that the settings name
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=env,
            start_new_session=True,
        )
    except OSError:
        return None
    with process:
        try:
            printed, _ = process.communicate(timeout=within)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            return None
    return printed[:_OUTPUT_MAX].decode(errors="replace")
