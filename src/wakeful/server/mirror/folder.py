"""Safe access to the folder of definition files.

Everything goes through open directory descriptors and never follows a link, so nothing outside the folder is read or
written, whatever is put into it. A file is replaced atomically: written under a temporary name, synced, renamed; and
only if it still has the content that was read before. One process at a time owns a folder: it locks the directory.

All calls block, and so run in a thread.
"""

import errno
import fcntl
import itertools
import json
import os
import stat
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from wakeful.server.mirror.known import digest_of
from wakeful.server.mirror.texts import FILES, error_name

FILE_MAX: Final = 1024 * 1024
"""The maximum size of a file, the same as of a request body."""

_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_WRITE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class FolderTaken(Exception):
    """Another process owns these files."""


class MirrorFile(NamedTuple):
    """A file as found. An unreadable one has a problem, and a digest that represents it."""

    digest: str | None = None  # None: the file does not exist
    value: Any = None  # its JSON, unless the digest is known
    problem: str | None = None


class FolderContents(NamedTuple):
    """The content of a schedule's folder."""

    files: Mapping[str, MirrorFile]
    errors: Mapping[str, str | None]  # digests of the error files, by the file they are about
    problem: str | None = None  # why the folder itself cannot be used
    is_stray: bool = False  # a regular file where a folder is expected


class FileWrite(NamedTuple):
    """A file to replace. `expected` is the digest it must still have; None: it must not exist."""

    slug: str
    name: str
    content: bytes | None  # None: remove it
    expected: str | None
    is_guarded: bool = True  # False: replace any content


class Removal(NamedTuple):
    """Files to remove, each if it still has this digest; then the folder, if it is empty."""

    slug: str
    expected: Mapping[str, str]


class Folder:
    """Described in the module docstring."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd: int | None = None
        # The waiting task may be cancelled while the thread continues: the next call sees its result.
        self._lock = threading.Lock()
        self._is_over = False

    def names(self) -> list[str]:
        """The entries that are not regular files, sorted, without hidden ones. Creates the folder if it is missing."""
        with self._held() as root, os.scandir(root) as entries:
            names = [entry.name for entry in entries if not entry.is_file(follow_symlinks=False)]
        return sorted(name for name in names if not name.startswith("."))

    def identity(self) -> tuple[int, int]:
        """The identity of the directory; changes when it is removed and created again."""
        with self._held() as root:
            seen = os.fstat(root)
        return seen.st_dev, seen.st_ino

    def look(self, known: Mapping[str, Mapping[str, Collection[str]]]) -> dict[str, FolderContents]:
        """The folders of these slugs; for a file with a known digest (slug, name) only the digest."""
        with self._held() as root:
            return {slug: self._look(root, slug, digests) for slug, digests in known.items()}

    def write(self, writings: Sequence[FileWrite]) -> list[str | None]:
        """Replace files durably; returns None for each, or why not. Empty: it changed in the meantime."""
        problems: list[str | None] = []
        with self._held() as root:
            for slug, group in itertools.groupby(writings, key=lambda write: write.slug):
                problems += self._write_in(root, slug, list(group))
        return problems

    def remove(self, removals: Sequence[Removal]) -> list[str | None]:
        """Remove files that are unchanged, with their error files."""
        with self._held() as root:
            return [_problem_of(lambda removal=removal: self._remove(root, removal)) for removal in removals]  # type: ignore[misc]

    def close(self) -> None:
        """Release the folder once calls in progress have ended."""
        self._is_over = True
        if self._lock.acquire(blocking=False):
            try:
                self._let_go()
            finally:
                self._lock.release()

    @contextmanager
    def _held(self) -> Iterator[int]:
        try:
            with self._lock:
                if self._is_over:
                    raise FolderTaken(f"the mirror of the definition files in {self.path} is stopped")
                yield self._root()
        finally:
            if self._is_over:  # closed in the meantime; close it here
                self.close()

    def _let_go(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _root(self) -> int:
        """The open and locked folder. A folder that was removed or replaced is opened again."""
        if self._fd is not None:
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(self._fd), os.stat(self.path)):  # noqa: PTH116 - the pair of fstat
                    return self._fd
            self._let_go()
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        fd = os.open(self.path, _DIRECTORY)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            raise FolderTaken(f"another process owns the definition files in {self.path}") from None
        except OSError:  # a file system without locks
            pass
        self._fd = fd
        return fd

    @contextmanager
    def _opened(self, root: int, slug: str) -> Iterator[int]:
        fd = os.open(slug, _DIRECTORY | os.O_NOFOLLOW, dir_fd=root)
        try:
            yield fd
        finally:
            os.close(fd)

    def _look(self, root: int, slug: str, known: Mapping[str, Collection[str]]) -> FolderContents:
        try:
            with self._opened(root, slug) as fd:
                files = {name: _read(fd, name, known[name]) for name in FILES}
                errors = {name: _read(fd, error_name(name), (), is_json=False).digest for name in FILES}
                return FolderContents(files, errors)
        except FileNotFoundError:
            return FolderContents({name: MirrorFile() for name in FILES}, {})
        except OSError as error:
            problem = _folder_problem(root, slug, error)
            return FolderContents({}, {}, problem, is_stray=problem == _IS_FILE)

    def _write_in(self, root: int, slug: str, group: Sequence[FileWrite]) -> list[str | None]:
        try:
            with suppress(FileExistsError):
                os.mkdir(slug, mode=0o700, dir_fd=root)  # if a power loss reverts it, it is written again
            with self._opened(root, slug) as fd:
                problems = [_problem_of(lambda write=write: _replace(fd, write)) for write in group]  # type: ignore[misc]
                # The new names must be durable before the old digests are dropped: otherwise a power loss could
                # restore an old text, which would look like an edit.
                os.fsync(fd)
                return problems
        except OSError as error:
            return [_shown(error)] * len(group)

    def _remove(self, root: int, removal: Removal) -> str | None:
        with suppress(FileNotFoundError), self._opened(root, removal.slug) as fd:
            for name, digest in removal.expected.items():
                if _read(fd, name, (), is_json=False).digest == digest:
                    os.unlink(name, dir_fd=fd)
                    for leftover in (error_name(name), _passing(name)):
                        with suppress(FileNotFoundError):
                            os.unlink(leftover, dir_fd=fd)
            os.fsync(fd)
            with suppress(OSError):  # it contains other files
                os.rmdir(removal.slug, dir_fd=root)
        return None


_IS_FILE: Final = "is a file in the place of the schedule's folder; move it elsewhere"


def _passing(name: str) -> str:
    return f".{name}.new"


def _replace(fd: int, write: FileWrite) -> str | None:
    passing = _passing(write.name)
    with suppress(FileNotFoundError):
        os.unlink(passing, dir_fd=fd)  # left behind by a killed process
    if write.content is None:
        with suppress(FileNotFoundError):
            os.unlink(write.name, dir_fd=fd)
        return None
    try:
        _write_whole(fd, passing, write.content)
        if write.is_guarded and _read(fd, write.name, (), is_json=False).digest != write.expected:
            return ""
        os.rename(passing, write.name, src_dir_fd=fd, dst_dir_fd=fd)
    finally:
        with suppress(OSError):
            os.unlink(passing, dir_fd=fd)
    return None


def _write_whole(fd: int, name: str, content: bytes) -> None:
    out = os.open(name, _WRITE, 0o600, dir_fd=fd)
    try:
        left = memoryview(content)
        while left:
            left = left[os.write(out, left) :]
        os.fsync(out)
    finally:
        os.close(out)


def _read(fd: int, name: str, known: Collection[str], *, is_json: bool = True) -> MirrorFile:
    try:
        file = os.open(name, _READ, dir_fd=fd)
    except FileNotFoundError:
        return MirrorFile()
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EMLINK):
            return _unreadable("is a symbolic link, which is not followed; put the file itself here")
        return _unreadable(f"cannot be read: {error.strerror}")
    try:
        seen = os.fstat(file)
        if not stat.S_ISREG(seen.st_mode):
            return _unreadable("is not a file; put a file here")
        if seen.st_size > FILE_MAX:
            return _unreadable(f"is {seen.st_size} bytes long; the maximum is {FILE_MAX}; make it shorter")
        with os.fdopen(os.dup(file), "rb") as reader:
            content = reader.read(FILE_MAX + 1)
    except OSError as error:
        return _unreadable(f"cannot be read: {error.strerror}")
    finally:
        os.close(file)
    digest = digest_of(content)
    return MirrorFile(digest) if digest in known or not is_json else _parsed(digest, content)


def _parsed(digest: str, content: bytes) -> MirrorFile:
    if not content.strip():
        return MirrorFile(digest, problem="is empty; write a JSON object")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return MirrorFile(digest, problem=f"is not text in UTF-8 (byte {error.start}); save it as UTF-8")
    try:
        return MirrorFile(digest, json.loads(text))
    except json.JSONDecodeError as error:
        return MirrorFile(digest, problem=f"is not JSON: {error.msg} at line {error.lineno}, column {error.colno}")
    except (ValueError, RecursionError):
        return MirrorFile(digest, problem="is not usable JSON: nested too deeply, or a number is too long; simplify it")


def _unreadable(problem: str) -> MirrorFile:
    return MirrorFile(f"!{problem}", problem=problem)


def _folder_problem(root: int, slug: str, error: OSError) -> str:
    with suppress(OSError):
        mode = os.stat(slug, dir_fd=root, follow_symlinks=False).st_mode
        if stat.S_ISLNK(mode):
            return "is a symbolic link, which is not followed; put the folder itself here"
        if not stat.S_ISDIR(mode):
            return _IS_FILE
    return f"cannot be opened: {error.strerror}"


def _problem_of(work: Callable[[], str | None]) -> str | None:
    """A bad folder must not prevent writing the others (L9)."""
    try:
        return work()
    except OSError as error:
        return _shown(error)


def _shown(error: OSError) -> str:
    return error.strerror or type(error).__name__
