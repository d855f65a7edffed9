"""Calendar files on disk, read again when they change.

A file is checked with one `stat` for each decision that needs it, and read only if that shows a change. So every
decision uses the file as it is, and nothing has to be watched. A file that cannot be read excludes nothing; `faults`
says why.
"""

import stat
from pathlib import Path
from typing import Final, NamedTuple

from wakeful.core.schedule.exclude import CalendarDays
from wakeful.integrations.calendars.content_lines import BadCalendar
from wakeful.integrations.calendars.days import calendar_days

SIZE_MAX: Final = 1024 * 1024
"""The maximum size of a file, in bytes."""
FILES_KEPT: Final = 256


class _Read(NamedTuple):
    """A file, as last read."""

    mark: tuple[int, int, int] | str  # inode, size and time of change; or why it cannot be checked
    days: CalendarDays | None
    fault: str | None


class CalendarFiles:
    """The calendar files of a home folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[str, _Read] = {}

    def __call__(self, name: str) -> CalendarDays | None:
        """The days of a file; None if it cannot be read."""
        return self._current(name).days

    def fault(self, name: str) -> str | None:
        """Why a file cannot be read; None: it can."""
        return self._current(name).fault

    def _current(self, name: str) -> _Read:
        path = self._folder / Path(name).expanduser()
        mark, known = _mark(path), self._read.get(name)
        if known is not None and known.mark == mark:
            return known
        if len(self._read) >= FILES_KEPT:
            self._read.clear()
        self._read[name] = current = _read(path, mark)
        return current


def _mark(path: Path) -> tuple[int, int, int] | str:
    try:
        status = path.stat()
    except (OSError, ValueError) as error:
        return f"{path} cannot be read: {getattr(error, 'strerror', None) or error}"
    if not stat.S_ISREG(status.st_mode):
        return f"{path} is not a file"
    return status.st_ino, status.st_size, status.st_mtime_ns


def _read(path: Path, mark: tuple[int, int, int] | str) -> _Read:
    if isinstance(mark, str):
        return _Read(mark, None, mark)
    if mark[1] > SIZE_MAX:
        return _Read(mark, None, f"{path} is larger than {SIZE_MAX // 1024} KiB")
    try:
        with path.open("rb") as file:
            text = file.read(SIZE_MAX).decode()
        return _Read(mark, calendar_days(text), None)
    except OSError as error:
        return _Read(mark, None, f"{path} cannot be read: {error.strerror or error}")
    except UnicodeDecodeError:
        return _Read(mark, None, f"{path} is not UTF-8 text")
    except BadCalendar as error:
        return _Read(mark, None, f"{path} {error}")
