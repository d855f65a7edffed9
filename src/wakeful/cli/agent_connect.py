"""`wakeful agents connect NAME`: register `wakeful mcp` with a command-line agent, in the program's own settings."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from wakeful.cli.caller import only_people
from wakeful.cli.errors import Ended
from wakeful.cli.invocation import Invocation
from wakeful.cli.render import json_out, say
from wakeful.cli.settings_file import replace_file

SERVER: Final = "wakeful"
FORWARDED: Final = ("WAKEFUL_RUN_TOKEN", "WAKEFUL_URL", "WAKEFUL_HOME")
"""Inside a run these say which run is calling."""


class Place(NamedTuple):
    """Where a program keeps its MCP servers, and how to write one."""

    file: Path
    write: Callable[[str, list[str]], str]  # the new text of the file, from the old one and the command line
    entry: Callable[[list[str]], str]  # the entry alone, for people who write it themselves


def connect(invocation: Invocation, name: str, agent: str | None, *, is_printed: bool) -> None:
    """Write the entry, or print it."""
    program = name if name in PROGRAMS else _program_of(invocation, name)
    acts_as = agent or (name if name not in PROGRAMS else _agent_of(invocation, program))
    argv = [*_wakeful(), "--home", str(invocation.home), "mcp", "--agent", acts_as]
    place = PROGRAMS[program]()
    if is_printed:
        say(f"# {place.file}")
        say(place.entry(argv))
        return
    only_people(invocation.home, "connect an agent")
    before = place.file.read_text(encoding="utf-8") if place.file.exists() else ""
    try:
        after = place.write(before, argv)
    except ValueError as error:
        hint = f"add it yourself: wakeful agents connect {name} --print"
        raise Ended(f"{place.file} cannot be read ({error}); nothing was changed", hint=hint) from error
    is_changed = after != before
    if is_changed:
        replace_file(place.file, after)
    if invocation.is_json:
        json_out({"program": program, "agent": acts_as, "file": str(place.file), "changed": is_changed})
        return
    done = "can now use" if is_changed else "could already use"
    say(f"{program} {done} the tools of Wakeful as the agent {acts_as}: {place.file}")


def _program_of(invocation: Invocation, name: str) -> str:
    """The program behind an agent in the settings."""
    adapter = _adapters(invocation).get(name)
    if adapter is None or adapter not in PROGRAMS:
        known = ", ".join(PROGRAMS)
        why = (
            f"there is no agent {name!r}" if adapter is None else f"the agent {name!r} runs with the adapter {adapter}"
        )
        raise Ended(f"{why}; a program that can be connected is one of {known}")
    return adapter


def _agent_of(invocation: Invocation, program: str) -> str:
    """The agent that runs this program, if there is one."""
    return next((name for name, adapter in _adapters(invocation).items() if adapter == program), "default")


def _adapters(invocation: Invocation) -> dict[str, str]:
    from wakeful.config import SettingsRefused, load

    try:
        return {name: agent.adapter for name, agent in load(invocation.home).settings.agents.items()}
    except SettingsRefused as refused:
        raise Ended(f"the settings cannot be read: {refused}", hint="see what is wrong: wakeful check") from refused


def _wakeful() -> list[str]:
    """How to start this program from anywhere."""
    script = Path(sys.executable).parent / "wakeful"
    return [str(script)] if script.exists() else [sys.executable, "-m", "wakeful.cli.main"]


# --- the programs -----------------------------------------------------------------------------------------------------


def _json_place(file: Path, section: str, made: Callable[[list[str]], Mapping[str, Any]]) -> Place:
    def write(text: str, argv: list[str]) -> str:
        data = json.loads(text) if text.strip() else {}
        if not isinstance(data, dict) or not isinstance(data.setdefault(section, {}), dict):
            raise ValueError("it does not have the format that its program writes")
        if data[section].get(SERVER) == made(argv):
            return text
        data[section][SERVER] = made(argv)
        return json.dumps(data, indent=2, ensure_ascii=False) + "\n"

    return Place(file, write, lambda argv: json.dumps({section: {SERVER: made(argv)}}, indent=2))


def _claude() -> Place:
    folder = os.environ.get("CLAUDE_CONFIG_DIR")
    file = Path(folder) / ".claude.json" if folder else Path.home() / ".claude.json"
    return _json_place(file, "mcpServers", lambda argv: {"type": "stdio", "command": argv[0], "args": argv[1:]})


def _gemini() -> Place:
    file = Path.home() / ".gemini" / "settings.json"
    return _json_place(file, "mcpServers", lambda argv: {"command": argv[0], "args": argv[1:], "env": _expanded()})


def _expanded() -> dict[str, str]:
    """Gemini removes variables that look like secrets unless they are named."""
    return {name: f"${name}" for name in FORWARDED}


def _opencode() -> Place:
    folder = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    file = folder / "opencode" / "opencode.json"
    return _json_place(file, "mcp", lambda argv: {"type": "local", "command": argv, "enabled": True})


def _codex() -> Place:
    file = Path(os.environ.get("CODEX_HOME") or Path.home() / ".codex") / "config.toml"

    def entry(argv: list[str]) -> str:
        lines = {"command": argv[0], "args": argv[1:], "env_vars": list(FORWARDED)}
        written = "\n".join(f"{name} = {json.dumps(value)}" for name, value in lines.items())
        return f"[mcp_servers.{SERVER}]\n{written}\n"

    def write(text: str, argv: list[str]) -> str:
        import tomllib

        tomllib.loads(text)
        section = re.compile(rf"^\[mcp_servers\.{SERVER}\]\n(?:(?!\[).*\n?)*", re.M)
        match = section.search(text)
        if match is None:
            return text + ("\n" if text and not text.endswith("\n\n") else "") + entry(argv)
        tail = text[match.end() :]
        return text[: match.start()] + entry(argv) + ("\n" if tail else "") + tail

    return Place(file, write, entry)


PROGRAMS: Final[Mapping[str, Callable[[], Place]]] = {
    "claude": _claude,
    "codex": _codex,
    "gemini": _gemini,
    "opencode": _opencode,
}
