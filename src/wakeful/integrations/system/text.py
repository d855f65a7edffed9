"""Makes text from targets bounded and storable."""

import json
from typing import Any, Final

ERROR_MAX: Final = 500


def fit(text: str) -> str:
    """The text without characters that databases refuse: NUL (PostgreSQL) and lone surrogates (not valid UTF-8)."""
    return text.encode("utf-8", "replace").decode().replace("\0", "\ufffd")


def cap(text: str, limit: int) -> str:
    """The text, with its middle removed if it is longer than `limit` bytes."""
    kept = HeadTail(limit)
    kept.feed(text.encode("utf-8", "replace"))
    return kept.text()


def one_line(text: str) -> str:
    """The text as a short line for an error message."""
    line = " ".join(fit(text).split())
    return line if len(line) <= ERROR_MAX else line[: ERROR_MAX - 1] + "…"


def last_line(text: str) -> str:
    """The last non-empty line, which is where programs put their error."""
    lines = text.rstrip().splitlines()
    return one_line(lines[-1]) if lines else ""


def parse_json(text: str) -> Any:
    """`text` parsed as JSON; None if it is not JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


class HeadTail:
    """Keeps the beginning and the end of a stream of bytes, in memory bounded by `limit`, and counts the rest."""

    __slots__ = ("_head", "_head_max", "_tail", "_tail_max", "size")

    def __init__(self, limit: int) -> None:
        self._head_max = max(limit, 0) - max(limit, 0) // 2
        self._tail_max = max(limit, 0) // 2
        self._head = bytearray()
        self._tail = bytearray()
        self.size = 0

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the stream."""
        self.size += len(data)
        room = self._head_max - len(self._head)
        self._head += data[:room]
        self._keep_last(data[room:])

    def text(self, encoding: str = "utf-8") -> str:
        """The kept text, with a marker for the omitted part."""
        tail = self._tail[max(len(self._tail) - self._tail_max, 0) :]
        dropped = self.size - len(self._head) - len(tail)
        if not dropped:  # decoded in one piece: the split may be inside a character
            return fit((self._head + tail).decode(encoding, "replace"))
        head_text, tail_text = self._head.decode(encoding, "replace"), tail.decode(encoding, "replace")
        return fit(f"{head_text}\n[… {dropped} bytes left out …]\n{tail_text}")

    def _keep_last(self, data: bytes) -> None:
        if self._tail_max == 0 or not data:
            return
        self._tail += data[-self._tail_max :]
        if len(self._tail) > 2 * self._tail_max:  # trimmed rarely, so that each byte is moved only once or twice
            del self._tail[: -self._tail_max]
