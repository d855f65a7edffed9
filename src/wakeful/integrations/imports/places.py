"""Where the sources are on this machine, and how their files are read: plain files only, with limits."""

import json
import sqlite3
import subprocess
from collections.abc import Iterable
from contextlib import closing
from itertools import count, islice
from pathlib import Path
from typing import Any, Final

from wakeful.integrations.imports.entries import FILE_MAX, Context, SourceFile, SourceRefused
from wakeful.integrations.system.plain_files import FileRefused, read_plain_text

FILES_MAX: Final = 2_000
TOTAL_MAX: Final = 64 * 1024 * 1024
"""Characters of all files of one import."""
_STEPS_MAX: Final = 20_000
"""Thousands of instructions for one query of someone else's database, which may contain a view without end."""
_WITHIN: Final = 20
"""Seconds for a program that prints a source."""


def read_file(path: Path) -> SourceFile:
    try:
        return SourceFile(str(path), read_plain_text(path, most=FILE_MAX), path)
    except FileRefused as refused:
        raise SourceRefused("", str(refused)) from None


def read_files(paths: Iterable[Path]) -> list[SourceFile]:
    """Several files, in order; too many are refused."""
    listed = list(paths)
    if len(listed) > FILES_MAX:
        raise SourceRefused(str(listed[0].parent), f"there are more than {FILES_MAX} files, which are too many")
    files: list[SourceFile] = []
    left = TOTAL_MAX
    for path in listed:
        files.append(read_file(path))
        left -= len(files[-1].text)
        if left < 0:
            raise SourceRefused(str(path), f"the files of this source are larger than {TOTAL_MAX:,} characters in all")
    return files


def read_each(paths: Iterable[Path]) -> list[SourceFile]:
    """Files that were found on this machine, not named by a person: one that cannot be read is reported and does not
    stop the others from being imported."""
    files: list[SourceFile] = []
    for path in paths:
        try:
            files.append(read_file(path))
        except SourceRefused as refused:
            files.append(SourceFile(str(path), "", path, refused.reason))
    return files


def plain_files_in(folder: Path, pattern: str = "*") -> list[Path]:
    """The files of a folder that are not hidden, in order. A link is listed, and refused when it is read."""
    if folder.is_symlink():
        raise SourceRefused(str(folder), "it is a symbolic link, which is not followed")
    try:
        matches = islice(folder.glob(pattern), FILES_MAX + 1)
        return sorted(path for path in matches if path.is_symlink() or path.is_file())
    except OSError as error:
        raise SourceRefused(str(folder), error.strerror or "it cannot be read") from None


def found(folder: Path, *patterns: str) -> list[Path]:
    """The paths in a folder that match, in order; no more than are refused for their number."""
    return sorted(path for pattern in patterns for path in islice(folder.glob(pattern), FILES_MAX + 1))


def existing(*paths: Path) -> list[Path]:
    """The files that exist."""
    return [path for path in paths if path.exists() or path.is_symlink()]


def printed(argv: list[str], place: str, context: Context) -> SourceFile | None:
    """A program's output; None if there is no such program, or it prints nothing."""
    try:
        ended = subprocess.run(  # noqa: S603 - a fixed program of the system, found on the PATH
            argv, capture_output=True, timeout=_WITHIN, check=False, env=dict(context.environ) or None
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    if ended.returncode != 0 or not ended.stdout.strip():
        return None
    if len(ended.stdout) > FILE_MAX:
        raise SourceRefused(place, f"it is larger than {FILE_MAX:,} bytes")
    return SourceFile(place, ended.stdout.decode(errors="replace"))


def rows_of(path: Path, table: str, columns: tuple[str, ...]) -> list[dict[str, Any]]:
    """The rows of a table in someone else's SQLite file, read only."""
    if path.is_symlink() or not path.is_file():
        raise SourceRefused(str(path), "it is not a plain file")
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=5)) as connection:
            connection.execute("PRAGMA query_only = 1")
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, FILE_MAX)
            steps = count()
            connection.set_progress_handler(lambda: next(steps) > _STEPS_MAX, 1_000)
            there = {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
            names = [name for name in columns if name in there]
            if not names:
                return []
            rows = connection.execute(f"SELECT {', '.join(names)} FROM {table} ORDER BY 1 LIMIT {FILES_MAX + 1}")
            named_rows = [dict(zip(names, row, strict=True)) for row in rows]
    except sqlite3.Error as error:
        raise SourceRefused(str(path), f"it cannot be read: {error}") from None
    if len(named_rows) > FILES_MAX:
        raise SourceRefused(str(path), f"{table} has more than {FILES_MAX} rows")
    for number, row in enumerate(named_rows, 1):
        if any(isinstance(value, str | bytes) and len(value) > FILE_MAX // 8 for value in row.values()):
            raise SourceRefused(str(path), f"row {number} of {table} is larger than {FILE_MAX // 8:,} bytes")
    return named_rows


def checked_text(data: Any, file: SourceFile) -> Any:
    """The data of a file. An escape may stand for half a character, which can be neither stored nor shown."""
    try:
        json.dumps(data, ensure_ascii=False, default=str).encode()
    except UnicodeEncodeError:
        raise SourceRefused(file.place, "it has an escape that is no character, such as \\ud800") from None
    return data


def json_of(file: SourceFile) -> Any:
    """A file's content as JSON."""
    try:
        return checked_text(json.loads(file.text.removeprefix("\ufeff")), file)
    except RecursionError:
        raise SourceRefused(file.place, "it is nested too deeply", 1) from None
    except ValueError as error:
        line = getattr(error, "lineno", None)
        raise SourceRefused(file.place, f"it is not JSON ({error})", line) from None
