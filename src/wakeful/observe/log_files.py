"""The log files: one file of JSON lines per UTC day, and `server.log` for people.

Every operation may fail at any time (full disk, missing folder) and raises OSError; the caller continues. A file that
was removed or replaced is created again, a line truncated by a full disk is ended before the next one. Files are
readable by their owner only.
"""

import errno
import os
import re
import stat
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

FILE_MODE: Final = 0o600
FOLDER_MODE: Final = 0o700
SERVER_LOG_MAX: Final = 10 * 1024 * 1024
"""`server.log` is rotated to `server.log.1` at this size; the daily files keep the history."""

_DAY_FILE: Final = re.compile(r"(\d{4}-\d{2}-\d{2})\.jsonl")


class LogFile:
    """A file that is only ever appended to, and may vanish."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd: int | None = None
        self._identity: tuple[int, int] | None = None
        self._is_cut = False  # the last line may be truncated

    def append(self, text: str) -> None:
        """Write whole lines, or raise."""
        fd = self._open()
        data = (("\n" if self._is_cut else "") + text).encode(errors="replace")
        self._is_cut = True
        while data:
            data = data[os.write(fd, data) :]
        self._is_cut = False

    def size(self) -> int:
        return 0 if self._fd is None else os.fstat(self._fd).st_size

    def close(self) -> None:
        fd, self._fd = self._fd, None
        if fd is not None:
            with suppress(OSError):
                os.close(fd)

    def _open(self) -> int:
        if self._fd is not None and not self._is_in_place():
            self.close()
        if self._fd is None:
            self.path.parent.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
            self._fd = _opened(self.path)
            status = os.fstat(self._fd)
            self._identity = (status.st_dev, status.st_ino)
            self._is_cut = False
            if stat.S_ISREG(status.st_mode):
                os.fchmod(self._fd, FILE_MODE)  # it may have existed with wider permissions
                # A crash or a full disk may have left a partial line.
                self._is_cut = status.st_size > 0 and os.pread(self._fd, 1, status.st_size - 1) != b"\n"
        return self._fd

    def _is_in_place(self) -> bool:
        try:
            status = self.path.lstat()
        except OSError:
            return False
        return (status.st_dev, status.st_ino) == self._identity


def _opened(path: Path) -> int:
    """The file, created if missing. A link is not followed: its target may belong to another program, and would get
    our lines and our permissions."""
    try:
        return os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, FILE_MODE)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise OSError(error.errno, "is a symbolic link, which is not followed; remove it", str(path)) from None


class DayFiles:
    """`logs/YYYY-MM-DD.jsonl`, for the days that are kept."""

    def __init__(self, folder: Path, days: int) -> None:
        self._folder = folder
        self.days = days
        self._file: LogFile | None = None
        self._pruned_for: tuple[str, int] | None = None

    def append(self, day: str, text: str) -> None:
        """Write lines of one day; on a new day old files are removed."""
        path = self._folder / f"{day}.jsonl"
        if self._file is None or self._file.path != path:
            self.close()
            self._file = LogFile(path)
        self._file.append(text)
        if self._pruned_for != (day, self.days):
            self._prune(day)
            self._pruned_for = (day, self.days)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _prune(self, today: str) -> None:
        """Remove files of days that are no longer kept; other files in the folder are not touched."""
        oldest = datetime.fromisoformat(today).replace(tzinfo=UTC) - timedelta(days=self.days - 1)
        for path in self._folder.iterdir():
            match = _DAY_FILE.fullmatch(path.name)
            if match is not None and match[1] < oldest.date().isoformat():
                path.unlink(missing_ok=True)


class ServerLog:
    """`server.log`, with one rotated file."""

    def __init__(self, path: Path, *, size_max: int = SERVER_LOG_MAX) -> None:
        self._file = LogFile(path)
        self._size_max = size_max

    def append(self, text: str) -> None:
        if self._file.size() >= self._size_max:
            self._file.close()
            path = self._file.path
            with suppress(FileNotFoundError):
                path.replace(path.with_name(f"{path.name}.1"))
        self._file.append(text)

    def close(self) -> None:
        self._file.close()
