"""When each line of a program's output arrived.

Lines are counted, not bytes: their count survives decoding, and removing the middle of a long output. A mark covers
what arrived within `STEP`, and there are at most `MARKS_MAX` of them; a line whose own mark is gone has the time of the
next one, so an arrival is at most a little too late and never too early.
"""

from collections import deque
from typing import Final, NamedTuple

from wakeful.core.time.instants import Duration, Instant
from wakeful.ports.clock import Clock

STEP: Final[Duration] = 200
MARKS_MAX: Final = 4_096


class Mark(NamedTuple):
    """How many lines were complete at a time."""

    lines: int
    at: Instant


class Arrivals(NamedTuple):
    """The marks of one stream, oldest first; the last one is the end of what it printed."""

    marks: tuple[Mark, ...] = ()

    def of(self, text: str, position: int) -> Instant | None:
        """When the line at a position of the stream's text had arrived; None if it is unknown."""
        if not self.marks:
            return None
        complete = self.marks[-1].lines - text.count("\n", position)  # counted from the end: the middle may be missing
        return next((mark.at for mark in self.marks if mark.lines > complete), self.marks[-1].at)


class ArrivalMarks:
    """Marks a stream while it is read."""

    __slots__ = ("_began_at", "_clock", "_marks")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._began_at: Instant | None = None  # of the last mark
        self._marks: deque[Mark] = deque(maxlen=MARKS_MAX)

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the stream."""
        now = self._clock.read().now
        lines = (self._marks[-1].lines if self._marks else 0) + data.count(b"\n")
        if self._began_at is not None and 0 <= now - self._began_at < STEP:
            self._marks[-1] = Mark(lines, now)
            return
        self._began_at = now
        self._marks.append(Mark(lines, now))

    def arrivals(self) -> Arrivals:
        return Arrivals(tuple(self._marks))
