"""Whether a write-ahead log lost commits.

SQLite replays a log up to the first frame whose checksum is wrong, and drops the rest without an error. After a crash
that rest is a transaction that was never completed. If more than one complete transaction follows, the log was damaged
later: each commit is synced before the next one begins, so a crash cannot leave two of them behind a gap. A log that
was overwritten as a whole has no header any more. The format is that of
https://www.sqlite.org/fileformat2.html#walformat.
"""

import struct
import time
from collections import Counter
from pathlib import Path
from typing import Final, NamedTuple

CHECKED_BYTES: Final = 256 * 1024 * 1024
"""More of a log is not checked. 16 MB, where SQLite usually truncates it, take about half a second."""

TRIES: Final = 3
PAUSE_S: Final = 0.05  # another process may be writing the log while it is read

_HEADER: Final = 32
_FRAME: Final = struct.Struct(">6I")  # page, size of the database after a commit (else 0), salts, checksums
_MAGICS: Final = {0x377F0682: "<", 0x377F0683: ">"}
_MASK: Final = 0xFFFF_FFFF
_COMMITS_LOST_MIN: Final = 2


class _Frame(NamedTuple):
    is_commit: bool
    salts: bytes
    sums: tuple[int, int]  # as written
    content: bytes  # what its checksum covers


def has_lost_commits(database: Path) -> bool:
    """Whether the log beside this database is damaged, and complete transactions follow the damage."""
    log = database.with_name(database.name + "-wal")
    for attempt in range(TRIES):
        if attempt:
            time.sleep(PAUSE_S)
        try:
            with log.open("rb") as file:
                content = file.read(CHECKED_BYTES)
            page_bytes = _page_bytes(database)
        except OSError:
            return False
        if not _is_overwritten(content) and _commits_lost(content, page_bytes) < _COMMITS_LOST_MIN:
            return False
    return True


def _is_overwritten(content: bytes) -> bool:
    """Whether it begins with something that is not a log's header. The header is synced before the first frame; a power
    failure before that can leave zeros."""
    header = content[:_HEADER]
    return len(header) == _HEADER and any(header) and int.from_bytes(header[:4]) not in _MAGICS


def _commits_lost(content: bytes, page_bytes: int) -> int:
    """How many complete transactions follow the first frame that cannot be replayed."""
    if len(content) < _HEADER + _FRAME.size + page_bytes:
        return 0
    magic, salts = int.from_bytes(content[:4]), content[16:24]
    order = _MAGICS.get(magic, "<")
    header_sums = struct.unpack(">2I", content[24:32])
    seed: tuple[int, int] = (header_sums[0], header_sums[1])
    is_whole = magic in _MAGICS and _sums(content[:24], (0, 0), order) == seed
    places = range(_HEADER, len(content) - _FRAME.size - page_bytes + 1, _FRAME.size + page_bytes)
    if not is_whole:  # nothing of it is replayed; its frames still have the salts that were in the header
        ((salts, _),) = Counter(content[at + 8 : at + 16] for at in places).most_common(1)
    lost = 0
    for at in places:
        frame = _frame(content, at, page_bytes)
        is_right = frame.salts == salts and _sums(frame.content, seed, order) == frame.sums
        if is_whole and not is_right:
            is_whole = False
        elif not is_whole and is_right and frame.is_commit:
            lost += 1
        seed = frame.sums  # as written: after a gap, each frame still fits the one before it
    return lost


def _frame(content: bytes, at: int, page_bytes: int) -> _Frame:
    _, size, _, _, first, second = _FRAME.unpack_from(content, at)
    page_at = at + _FRAME.size
    covered = content[at : at + 8] + content[page_at : page_at + page_bytes]
    return _Frame(size != 0, content[at + 8 : at + 16], (first, second), covered)


def _sums(content: bytes, seed: tuple[int, int], order: str) -> tuple[int, int]:
    first, second = seed
    words = iter(struct.unpack(f"{order}{len(content) // 4}I", content))
    for one, two in zip(words, words, strict=True):
        first = (first + one + second) & _MASK
        second = (second + two + first) & _MASK
    return first, second


def _page_bytes(database: Path) -> int:
    with database.open("rb") as file:
        page_bytes = int.from_bytes(file.read(18)[16:18])
    return 65_536 if page_bytes == 1 else page_bytes
