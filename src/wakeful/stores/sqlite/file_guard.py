"""Notices that a database file was removed, replaced, or overwritten while it is in use.

A file that was replaced has another inode. One that was overwritten (`cp other.db wakeful.db`) has the same, and SQLite
would write its log into it. Its time of change tells, which otherwise only a checkpoint moves; then the identity in the
file is read, which takes a fraction of a millisecond.
"""

import os
import sqlite3
from pathlib import Path
from threading import Lock

from wakeful.stores.sqlite.identity import Identity, in_main_file, refuse_other


class FileGuard:
    """Guards one database file for all connections of one store; used on several threads."""

    def __init__(self, path: Path, store_id: str | None = None) -> None:
        self.store_id = store_id  # None: not known yet
        self._path = path
        self._lock = Lock()
        self._file_id: tuple[int, int] | None = None
        self._changed_at: tuple[int, int] | None = None
        self._seen: Identity | None = None
        self._overwritten: str | None = None

    def look(self) -> tuple[int, int]:
        """The identity of the file at the path; raises `sqlite3.OperationalError` if it was overwritten."""
        found = os.stat(self._path)  # noqa: PTH116 - asked before every group, and half the price of Path.stat
        file_id, changed_at = (found.st_dev, found.st_ino), (found.st_mtime_ns, found.st_size)
        if self._file_id is None:
            self._file_id = file_id
        if file_id == self._file_id and changed_at != self._changed_at:
            with self._lock:
                self._look_inside(changed_at)
        if self._overwritten is not None:
            raise sqlite3.OperationalError(self._overwritten)
        return file_id

    def recognise(self, store_id: str) -> None:
        """The file belongs to this store. It is read again, to know how far it had got before it was used."""
        with self._lock:
            self.store_id, self._changed_at = store_id, None

    @property
    def is_overwritten(self) -> bool:
        """Whether another database was written over the file."""
        return self._overwritten is not None

    def check_replaced(self) -> None:
        """The file is another one now: refuse it unless it belongs to the same store."""
        found, is_at = in_main_file(self._path), os.stat(self._path)  # noqa: PTH116 - as above
        if found is not None and self.store_id is not None:
            refuse_other(self._path, found.store_id, self.store_id)
        with self._lock:
            self._file_id, self._changed_at, self._seen = (is_at.st_dev, is_at.st_ino), None, found

    def _look_inside(self, changed_at: tuple[int, int]) -> None:
        found, seen = in_main_file(self._path), self._seen
        self._changed_at = changed_at
        if found is None or self.store_id is None:
            return  # it is only in the log so far, or a checkpoint is writing: then it changes again
        self._seen = found
        what = None
        if found.store_id != self.store_id:
            what = f"the database of another store ({found.store_id})"
        elif seen is not None and found.mark < seen.mark:
            what = "an older copy of it"
        if what is not None:
            self._overwritten = (
                f"{self._path} was overwritten with {what} while it is in use; stop this process, then restore a "
                "backup: wakeful restore FILE"
            )
