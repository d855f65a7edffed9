"""Gives Gemini CLI our MCP server for a run, without touching the person's settings.

The program has no flag for it, and reads system settings only if root owns them. It does, however, take the location of
its folder from GEMINI_CLI_HOME. So we point it at our own folder, in which everything is a link into the person's
`.gemini`, except `settings.json`: that is a copy with our server added. Sessions, logins and extensions stay where they
are. The copy contains nothing about the run: the program fills in the address and the token from its environment.

A program that replaces a file leaves its own file in place of our link. It is moved to where it belongs before the next
start."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from wakeful.integrations.agents.presets.preset import TOKEN_VARIABLE, TOOLS, Ask

VARIABLE: Final = "GEMINI_CLI_HOME"
_FOLDER: Final = ".gemini"
_SETTINGS: Final = "settings.json"
_MADE: Final = ("tmp", "history")  # where it keeps sessions; links to them have to exist before it makes them
_SIZE_MAX: Final = 1024 * 1024
_SERVER: Final = {
    "httpUrl": "${WAKEFUL_URL}/mcp",
    "headers": {"Authorization": f"Bearer ${{{TOKEN_VARIABLE}}}"},
    "trust": True,  # no one can confirm a call; what an agent may do is decided by [self_scheduling]
}


def prepare(ask: Ask, env: Mapping[str, str]) -> Mapping[str, str]:
    """Make the folder; returns the variable that names it. Raises OSError if it cannot be made."""
    if ask.tools_url is None:
        return {}
    own = Path(env.get(VARIABLE) or env.get("HOME") or Path.home()) / _FOLDER
    settings = _settings(own / _SETTINGS)
    home = Path(ask.folder).absolute() / "gemini"
    shadow = home / _FOLDER
    for folder in (shadow, *(own / name for name in _MADE)):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    _give_back(shadow, own)
    _link(shadow, own)
    _write(shadow / _SETTINGS, json.dumps(with_server(settings), indent=2))
    return {VARIABLE: str(home)}


def with_server(settings: Mapping[str, Any]) -> dict[str, Any]:
    """These settings with our server among the others; one that the person registered under its name is replaced, as
    it would act with the same token."""
    return {**settings, "mcpServers": {**settings.get("mcpServers", {}), TOOLS: _SERVER}}


def _settings(file: Path) -> dict[str, Any]:
    if not file.exists():
        return {}
    if file.stat().st_size > _SIZE_MAX:
        raise OSError(f"{file} is larger than {_SIZE_MAX} bytes")
    try:
        kept = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise OSError(
            f"{file} is not plain JSON ({error}), so Wakeful's MCP server cannot be added to a copy of it"
        ) from error
    if not isinstance(kept, dict) or not isinstance(kept.get("mcpServers", {}), dict):
        raise OSError(
            f"{file} does not have the format that its program writes, "
            "so Wakeful's MCP server cannot be added to a copy of it"
        )
    return kept


def _give_back(shadow: Path, own: Path) -> None:
    """Move what the program made, or replaced, in our folder to the person's. The settings in our folder are only a
    copy."""
    for made in shadow.iterdir():
        target = own / made.name
        is_ours = made.name == _SETTINGS or made.name.startswith(f".{_SETTINGS}") or made.is_symlink()
        if not is_ours and not target.is_dir():
            made.replace(target)


def _link(shadow: Path, own: Path) -> None:
    for link in shadow.iterdir():
        if link.is_symlink() and not link.exists():
            link.unlink()  # it was removed from the person's folder
    for there in own.iterdir():
        link = shadow / there.name
        if there.name != _SETTINGS and not os.path.lexists(link):
            link.symlink_to(there.absolute())


def _write(file: Path, text: str) -> None:
    """Write the file, unless its content is the same: another run may be reading it."""
    if file.exists() and file.read_text(encoding="utf-8") == text:
        return
    draft = file.with_name(f".{file.name}.{os.getpid()}.draft")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as out:
        out.write(text)
    draft.replace(file)
