"""`wakeful export` and `wakeful apply`: definitions as files made for Git."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

import click

from wakeful.cli.errors import Ended, Misused, NoDaemon
from wakeful.cli.invocation import Invocation, command
from wakeful.cli.render import json_out, note, say
from wakeful.core.definition_files import FILE_MAX, KINDS, is_file_path

APPLY_TIMEOUT: Final = 600.0
FORMS: Final = ("crontab", "systemd")
_FOREIGN: Final = re.compile(r"[a-z0-9][a-z0-9._-]*", re.ASCII)
"""The name of a file of another scheduler."""


@command("export")
@click.argument("folder", metavar="DIR", type=click.Path(file_okay=False, path_type=Path))
@click.option("--prune", is_flag=True, help="Remove definition files from DIR that are not in the store.")
@click.option(
    "--as",
    "form",
    type=click.Choice(FORMS),
    help="Write schedules that run commands as a crontab, or as timers of systemd.",
)
def export_command(invocation: Invocation, folder: Path, prune: bool, form: str | None) -> None:
    """Export all definitions to DIR, as files for Git.

    This covers schedules, workflows and slots (without secrets). The same definition always gives the same file, so a
    commit shows exactly what changed. Slots in wakeful.toml, workflows in Python modules and finished one-shots are not
    exported. Also works without a daemon.
    """
    if form is not None:
        if prune:
            raise Misused("not accepted", [("--prune", "removes files of definitions; leave it out with --as")])
        _move_out(invocation, folder, form)
        return
    files = _exported(invocation)
    written = [path for path in sorted(files) if _write(folder, path, files[path])]
    stale = sorted({path for path, _ in _definition_paths(folder)} - files.keys())
    if prune:
        for path in stale:
            (folder / path).unlink()
    if invocation.is_json:
        json_out({"folder": str(folder), "files": sorted(files), "written": written, "stale": stale, "pruned": prune})
        return
    say(f"{len(files)} definitions in {folder}, {len(written)} of them changed")
    for path in stale:
        say(f"  removed {path}") if prune else note(f"  {path} is not in the store; remove it with --prune")


def _move_out(invocation: Invocation, folder: Path, form: str) -> None:
    """Write the schedules in another form, and say what each of them loses."""
    try:
        moved = invocation.daemon().get("/api/export", timeout=APPLY_TIMEOUT, **{"as": form})
    except NoDaemon as missing:
        from wakeful.cli.stored import StoredHome

        moved = StoredHome(invocation.home, missing).moved_out(form)
    written = [path for path in sorted(moved["files"]) if _write(folder, path, moved["files"][path], is_own=False)]
    if invocation.is_json:
        json_out(
            {
                "folder": str(folder),
                "as": form,
                "files": sorted(moved["files"]),
                "written": written,
                "lost": moved["lost"],
            }
        )
        return
    for schedule in moved["lost"]:
        if schedule["refused"] is None:
            say(f"{schedule['slug']}: lost: {'; '.join(schedule['lost']) or 'nothing'}")
        else:
            say(f"{schedule['slug']}: left out: {schedule['refused']}")
    said = sum(schedule["refused"] is None for schedule in moved["lost"])
    say(f"{said} schedules in {folder}; they still run here too: remove or pause them once the others run")


@command("apply")
@click.argument("folder", metavar="DIR", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--apply", "is_applied", is_flag=True, help="Make the changes; without this option nothing is changed.")
@click.option(
    "--prune", is_flag=True, help="Remove definitions that were applied from DIR before and are no longer in it."
)
@click.option("--place", metavar="NAME", help="Identifies DIR for --prune; default: its full path.")
def apply_command(invocation: Invocation, folder: Path, is_applied: bool, prune: bool, place: str | None) -> None:
    """Show what the definitions in DIR would change, as a diff; with --apply, make the changes.

    All files are checked first. If one is rejected, nothing is written.
    """
    files = {path: _read(file) for path, file in _definition_paths(folder)}
    if not files:
        cure = "export some first: wakeful export DIR"
        if not prune:
            raise Misused(
                f"{folder} has no definitions (schedules/SLUG.json, workflows/ID.json, slots/NAME.json); {cure}"
            )
    query = {"apply": is_applied or None, "prune": prune or None}
    body = {"files": files, "place": place or str(folder.resolve())}
    answer = invocation.daemon().ask("POST", "/api/apply", query=query, body=body, timeout=APPLY_TIMEOUT).body
    if invocation.is_json:
        json_out(answer)
        return
    if answer["diff"]:
        say(answer["diff"].rstrip("\n"))
    counts = ", ".join(f"{len(answer[what])} {word}" for what, word in _words(is_applied).items() if answer[what])
    say(counts or "nothing to apply")
    if not is_applied and any(answer[what] for what in ("create", "update", "remove")):
        note("  nothing was changed; to make these changes, add --apply")


def _words(is_applied: bool) -> Mapping[str, str]:
    done = {"create": "created", "update": "updated", "remove": "removed"}
    planned = {"create": "to create", "update": "to update", "remove": "to remove"}
    return {**(done if is_applied else planned), "unchanged": "unchanged"}


def _exported(invocation: Invocation) -> dict[str, str]:
    try:
        files: dict[str, str] = invocation.daemon().get("/api/export", timeout=APPLY_TIMEOUT)["files"]
        return files
    except NoDaemon as missing:
        from wakeful.cli.stored import StoredHome

        return StoredHome(invocation.home, missing).export()


def _definition_paths(folder: Path) -> Iterator[tuple[str, Path]]:
    """The definition files of a folder, by their path in it."""
    for kind in KINDS:
        inner = folder / f"{kind}s"
        if inner.is_symlink():
            raise Misused(f"{inner} is a symbolic link, which is not followed; make it a folder")
        if not inner.is_dir():
            continue
        for file in sorted(inner.iterdir()):
            path = f"{kind}s/{file.name}"
            if file.suffix == ".json" and not is_file_path(path):
                raise Misused(f"{file}: the name is not that of a definition; use a-z 0-9 . _ - and .json")
            if file.suffix == ".json":
                yield path, file


def _read(file: Path) -> str:
    from wakeful.integrations.system.plain_files import FileRefused, read_plain_text

    try:
        return read_plain_text(file, most=FILE_MAX)
    except FileRefused as refused:
        raise Misused(str(refused)) from None


def _write(folder: Path, path: str, text: str, *, is_own: bool = True) -> bool:
    """Write a file if its content changes, atomically; returns whether it did."""
    if not (is_file_path(path) if is_own else _FOREIGN.fullmatch(path)):
        raise Ended(f"the daemon returned an unexpected path: {path!r}")
    file, content = folder / path, text.encode()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        if not file.is_symlink() and file.is_file() and file.read_bytes() == content:
            return False
        unborn = file.with_name(f".{file.name}.{os.getpid()}.part")
        try:
            unborn.write_bytes(content)
            unborn.replace(file)
        finally:
            with suppress(OSError):
                unborn.unlink()
    except OSError as error:
        raise Ended(f"{file} cannot be written: {error.strerror}") from error
    return True
