"""Checks whether a command can be started on this machine."""

import os
import shutil
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from wakeful.core.schedule.actions import Command


class Unstartable(Exception):
    """The command cannot be started; the message gives the reason and the cure."""


def check_command(spec: Command, env: Mapping[str, str]) -> str | None:
    """The folder to run it in, if any. Raises `Unstartable`."""
    if not spec.argv or not spec.argv[0]:
        raise Unstartable('argv is empty; write the program and its arguments, such as ["make", "report"]')
    for text in (*spec.argv, spec.cwd or "", *spec.env, *spec.env.values()):
        if "\0" in text:
            raise Unstartable(f"{text!r} contains a NUL character, which cannot be passed to a program; remove it")
    cwd = None if spec.cwd is None else str(Path(spec.cwd).expanduser())
    _check_folder(cwd)
    if "/" in spec.argv[0]:
        _check_file(spec.argv[0], Path(cwd or ".") / spec.argv[0])
    else:
        _check_name(spec.argv[0], cwd, env)
    return cwd


def _check_folder(cwd: str | None) -> None:
    if cwd is None:
        return
    if not Path(cwd).is_dir():
        raise Unstartable(f"cwd '{cwd}' is not a folder here; create it, or correct cwd")
    if not os.access(cwd, os.X_OK):
        raise Unstartable(f"cwd '{cwd}' is not accessible to this user; change its permissions, or correct cwd")


def _check_file(name: str, path: Path) -> None:
    if not path.exists():
        cure = "correct argv" if Path(name).is_absolute() else "correct argv or cwd"
        raise Unstartable(f"'{name}' does not exist; {cure}")
    if not path.is_file():
        raise Unstartable(f"'{name}' is not a file; name the program itself")
    if not os.access(path, os.X_OK):
        raise Unstartable(f"'{name}' is not executable; run chmod +x on it, or name its interpreter first")


def _check_name(name: str, cwd: str | None, env: Mapping[str, str]) -> None:
    folders = env.get("PATH", os.defpath)
    # Relative folders of the PATH are relative to the program's working directory.
    path = os.pathsep.join(
        folder if folder.startswith("/") else str(Path(cwd or ".") / folder) for folder in folders.split(os.pathsep)
    )
    if _is_found(name, path):
        return
    if any(map(str.isspace, name)):
        raise Unstartable(
            f'\'{name}\' is not a program; argv is a list of words, so write ["sh", "-c", "…"] for a shell line'
        )
    raise Unstartable(f"'{name}' was not found on the PATH ({folders}); install it, or write its full path")


def _is_found(name: str, path: str) -> bool:
    """Searching looks into one folder of the PATH after another. A program that is still where it was found before is
    not searched for again."""
    try:
        found = _search(name, path)
        if Path(found).is_file() and os.access(found, os.X_OK):
            return True
        _search.cache_clear()  # it was removed, and may be in another folder
        _search(name, path)
    except FileNotFoundError:
        return False
    return True


@lru_cache(maxsize=256)
def _search(name: str, path: str) -> str:
    """Raises `FileNotFoundError`, so that a program that was not found is searched for again."""
    found = shutil.which(name, path=path)
    if found is None:
        raise FileNotFoundError(name)
    return found
