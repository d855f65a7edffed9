"""Write one setting into wakeful.toml; everything else in it stays as it is."""

from __future__ import annotations

import json
import os
import re
import tomllib
from pathlib import Path

from wakeful.cli.errors import Ended


def write_setting(file: Path, table: str, name: str, value: str) -> None:
    """Set `name` in `[table]`. If that cannot be done by changing one line, the person is asked to."""
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    changed = _with_setting(text, table, name, value)
    if changed is None:
        raise Ended(f"{file} cannot be changed by a command", hint=f'write {name} = "{value}" under [{table}] in it')
    if changed != text:
        replace_file(file, changed)


def replace_file(file: Path, text: str) -> None:
    """Replace the file completely or not at all, keeping its permissions."""
    file.parent.mkdir(parents=True, exist_ok=True)
    mode = file.stat().st_mode & 0o777 if file.exists() else 0o600
    draft = file.with_name(f".{file.name}.{os.getpid()}.draft")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "w", encoding="utf-8") as out:
        out.write(text)
    draft.replace(file.resolve())


def _with_setting(text: str, table: str, name: str, value: str) -> str | None:
    """The text with the setting, if it then reads as wanted; else None."""
    try:
        wanted = tomllib.loads(text)
        wanted.setdefault(table, {})[name] = value
    except (ValueError, TypeError, AttributeError):
        return None
    line = f"{name} = {json.dumps(value)}"
    header = re.search(rf"^[ \t]*\[{re.escape(table)}\][^\n]*$", text, re.MULTILINE)
    written = re.finditer(rf"^[ \t]*{re.escape(name)}[ \t]*=[^\n]*$", text, re.MULTILINE)
    candidates = [text[: match.start()] + line + text[match.end() :] for match in written]
    if header is not None:
        candidates.append(f"{text[: header.end()]}\n{line}{text[header.end() :]}")
    gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
    candidates.append(f"{text}{gap}[{table}]\n{line}\n")
    return next((candidate for candidate in candidates if _reads_as(candidate, wanted)), None)


def _reads_as(text: str, wanted: object) -> bool:
    try:
        return tomllib.loads(text) == wanted
    except ValueError:
        return False
