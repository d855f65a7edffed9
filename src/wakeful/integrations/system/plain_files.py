"""Reading files that others wrote: plain files only, up to a limit. Links and pipes are refused. Writing our own."""

import os
import stat
import threading
from pathlib import Path


class FileRefused(Exception):
    """The file was not read; the message is the reason."""


def read_plain(file: Path, *, most: int) -> bytes:
    """The content of a plain file; raises `FileRefused`."""
    try:
        if not _may_open(file.lstat().st_mode):  # opening a device can have effects, and take forever
            raise FileRefused(f"{file} is not a plain file")
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        is_link = file.is_symlink()
        raise FileRefused(
            f"{file} is a symbolic link, which is not followed" if is_link else f"{file}: {error.strerror}"
        ) from None
    with os.fdopen(descriptor, "rb") as opened:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise FileRefused(f"{file} is not a plain file")
        try:
            content = opened.read(most + 1)
            size = os.fstat(descriptor).st_size
        except OSError as error:  # files of the kernel, such as /proc/self/mem
            raise FileRefused(f"{file} cannot be read: {error.strerror}") from None
    if content is None:  # it would block, like /proc/kmsg
        raise FileRefused(f"{file} is not a plain file: it has nothing to read yet")
    if content and size == 0:  # /proc/version
        raise FileRefused(f"{file} is not a plain file: the kernel makes its content")
    if len(content) > most:
        raise FileRefused(f"{file} is larger than {most:,} bytes")
    return content


def _may_open(mode: int) -> bool:
    return (
        stat.S_ISREG(mode) or stat.S_ISLNK(mode) or stat.S_ISDIR(mode)
    )  # links and folders have messages of their own


def read_plain_text(file: Path, *, most: int) -> str:
    """The text of a plain file, in UTF-8, without a byte order mark; raises `FileRefused`."""
    try:
        return read_plain(file, most=most).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileRefused(f"{file} is not UTF-8: {error.reason} at byte {error.start}") from None


def replace_private(file: Path, text: str) -> None:
    """Replace a file that only its owner may read, atomically: a crash leaves the old file or the new one."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = file.with_suffix(f".{os.getpid()}-{threading.get_ident()}.draft")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as opened:
        opened.write(text.encode("utf-8", "replace"))
        opened.flush()
        os.fsync(opened.fileno())
    draft.replace(file)
