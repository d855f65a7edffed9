"""`wakeful init`: write a commented wakeful.toml with the agents installed on this machine."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from wakeful.cli.caller import only_people
from wakeful.cli.errors import Ended
from wakeful.cli.home import make_home
from wakeful.cli.invocation import Invocation, command
from wakeful.cli.render import json_out, note, say

if TYPE_CHECKING:
    from wakeful.integrations.agents.programs import Installed


@command("init")
def init_command(invocation: Invocation) -> None:
    """Write a commented wakeful.toml into the home folder, with the agents found on the PATH.

    The first agent becomes the default. Existing lines are never changed: if the file configures no agent, the agents
    found are appended.
    """
    only_people(invocation.home, "write the settings")
    from wakeful.integrations.agents.programs import installed

    file = invocation.home / "wakeful.toml"
    programs = installed()
    try:
        make_home(invocation.home)
        is_new = _write(file, programs)
    except OSError as error:
        raise Ended(f"{file} cannot be written: {error.strerror}", hint="choose another --home") from error
    if invocation.is_json:
        listed = [{"adapter": program.adapter, "program": program.path} for program in programs]
        json_out({"file": str(file), "created": is_new, "agents": listed})
        return
    say(f"{file} written; every line in it is optional" if is_new else f"{file}: agents appended")
    _tell_agents(programs)


def _write(file: Path, programs: Sequence[Installed]) -> bool:
    """Whether the file is new; an existing one is only appended to, and only if it configures no agent yet."""
    from wakeful.cli.template import settings_template

    try:
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        _add(file, programs)
        return False
    with os.fdopen(handle, "w", encoding="utf-8") as opened:
        opened.write(settings_template(programs))
    return True


def _add(file: Path, programs: Sequence[Installed]) -> None:
    from wakeful.cli.template import agents_template

    check = f"check it: wakeful check {file}"
    if not programs:
        raise Ended(f"{file} already exists and is unchanged", hint=check)
    text = file.read_text(encoding="utf-8", errors="replace")
    named = _agents_in(text)
    if named is None:
        raise Ended(f"{file} already exists and is not valid TOML; it is unchanged", hint=check)
    if named:
        others = ", ".join(program.adapter for program in programs)
        raise Ended(
            f"{file} already exists and configures {', '.join(named)}; it is unchanged",
            hint=f'installed here: {others}; add one with [agents.NAME] and adapter = "…"',
        )
    with file.open("a", encoding="utf-8") as opened:
        opened.write(("" if text.endswith("\n") or not text else "\n") + "\n" + agents_template(programs))


def _agents_in(text: str) -> list[str] | None:
    """The agents that a file configures; None if it is not TOML."""
    import tomllib

    try:
        written = tomllib.loads(text).get("agents", {})
    except tomllib.TOMLDecodeError:
        return None
    return sorted(written) if isinstance(written, dict) else ["agents"]


def _tell_agents(programs: Sequence[Installed]) -> None:
    if not programs:
        folders = os.environ.get("PATH", os.defpath)
        note(f"  no agent was found on the PATH ({folders})")
        note("  install one (claude, codex, gemini, …) and add it to the file; until then prompts go to the echo agent")
        return
    for number, program in enumerate(programs):
        say(f"  {'default' if number == 0 else program.adapter:<9} {program.adapter}, {program.path}")
    note("  next: wakeful up, then test one: wakeful agents test default")
