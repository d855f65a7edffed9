"""The log: events as lines in files, written by a separate thread.

Theory of operation
-------------------
Logging never blocks: lines and batches of facts go into a bounded queue, and one thread formats them, redacts secrets,
and writes. If the thread cannot keep up, or the disk is full, lines are dropped and counted, and the next line that can
be written says how many are missing. The clock is not affected.

Secrets are redacted by value. Where JSON escapes characters, that is done before and after encoding: an escaped secret
looks different.
"""

import json
import logging
import secrets
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

from wakeful.core import terminal_text
from wakeful.core.time.instants import SECOND, Duration
from wakeful.observe.log_files import DayFiles, ServerLog
from wakeful.observe.log_lines import Level, Line, Phase, lines_of, stamp
from wakeful.ports.clock import Clock
from wakeful.ports.exchange import ExchangeStep, RequestContext
from wakeful.ports.sink import (
    AttemptsEnded,
    CommitTimed,
    Fact,
    InstantsMissed,
    InstantsSkipped,
    RunsClaimed,
    RunsClimbed,
    RunsRescued,
    RunsSettled,
    RunsWaiting,
    SchedulesChanged,
    Slugs,
    Ticked,
)

Redact: TypeAlias = Callable[[str], str]

WAITING_MAX: Final = 50_000
"""Lines that may wait to be written; a line takes a few hundred bytes."""
BATCH: Final = 1_000
TRY_AGAIN: Final[Duration] = SECOND
DEPTH_MAX: Final = 6
CLOSE_WITHIN: Final = 5.0

_LEVELS: Final[Mapping[int, Level]] = {10: "debug", 20: "info", 30: "warn", 40: "error", 50: "error"}


class _Facts(NamedTuple):
    """Facts not yet formatted; the writer thread formats them."""

    facts: Sequence[Fact]
    slugs: Slugs
    weight: int


def no_redaction(text: str) -> str:
    """Used when there are no secrets."""
    return text


class Log:
    """The log of one home folder."""

    def __init__(
        self,
        folder: Path,
        clock: Clock,
        *,
        server_log: Path | None = None,
        days: int = 7,
        redact: Redact = no_redaction,
        waiting_max: int = WAITING_MAX,
    ) -> None:
        self._clock = clock
        self._redact = redact
        self._waiting_max = waiting_max
        self._days = DayFiles(folder, days)
        self._server = None if server_log is None else ServerLog(server_log)
        self._waiting: deque[Line | _Facts] = deque()
        self._weight = 0
        self._bell = threading.Condition()
        self._is_closed = False
        self._is_idle = True
        self._dropped = 0  # not yet reported in the log itself
        self._lost = 0
        self._silent_until: int | None = None  # after a disk error, monotonic
        self._trouble: str | None = None
        self._thread = threading.Thread(target=self._drive, name="wakeful-log", daemon=True)
        self._thread.start()

    @property
    def lost(self) -> int:
        """How many lines were lost since the start."""
        return self._lost

    @property
    def trouble(self) -> str | None:
        """Why nothing can be written at the moment, or None."""
        return self._trouble

    def keep(self, days: int) -> None:
        """Set how many days are kept."""
        self._days.days = days

    # --- logging -----------------------------------------------------------------------------------------------------

    def write(
        self,
        action: str,
        *,
        level: Level = "info",
        phase: Phase = "event",
        flow_id: str | None = None,
        duration_ms: int | None = None,
        slug: str | None = None,
        slot: str | None = None,
        details: Mapping[str, Any] | None = None,
        text: str | None = None,
    ) -> None:
        """Log one line. Returns immediately; write errors are handled by the log."""
        at = self._clock.read().now
        self._put(Line(at, level, action, phase, flow_id, duration_ms, slug, slot, details, text), 1)

    def listen(self, facts: Sequence[Fact], slugs: Slugs) -> None:
        """Take facts from a fan-out."""
        weight = sum(map(_weight, facts))
        if weight:
            self._put(_Facts(facts, slugs, weight), weight)

    def exchange(self, about: RequestContext) -> ExchangeStep:
        """Log an exchange with another system: its request and response share one flow id."""
        flow_id, began = secrets.token_hex(8), self._clock.read().monotonic

        def record(phase: Phase, details: Mapping[str, Any]) -> None:
            self.write(
                about.action,
                level="error" if phase == "error" else "info",
                phase=phase,
                flow_id=flow_id,
                duration_ms=None if phase == "request" else self._clock.read().monotonic - began,
                slug=about.slug,
                slot=about.slot,
                details=details,
            )

        return record

    def _put(self, item: Line | _Facts, weight: int) -> None:
        with self._bell:
            if self._is_closed or self._weight + weight > self._waiting_max:
                self._dropped += weight
                self._lost += weight
                return
            self._waiting.append(item)
            self._weight += weight
            self._is_idle = False
            self._bell.notify_all()

    # --- writing -----------------------------------------------------------------------------------------------------

    def drain(self, within: float = CLOSE_WITHIN) -> bool:
        """Wait until everything so far is written or lost; False if it took longer than `within`."""
        with self._bell:
            return self._bell.wait_for(lambda: self._is_idle, within)

    def close(self, within: float = CLOSE_WITHIN) -> None:
        """Write what is left and end the thread; a disk that hangs is not waited for longer than `within`."""
        with self._bell:
            self._is_closed = True
            self._bell.notify_all()
        self._thread.join(within)

    def _drive(self) -> None:
        while True:
            with self._bell:
                if not self._waiting:
                    self._is_idle = True
                    self._bell.notify_all()
                while not self._waiting and not self._is_closed:
                    self._bell.wait()
                if not self._waiting:
                    break
                items = self._take()
            try:
                self._write_batch([line for item in items for line in _formatted(item)])
            except Exception as error:  # a line that cannot be formatted must not end the log
                self._note_loss(sum(1 if isinstance(item, Line) else item.weight for item in items), error)
        self._days.close()
        if self._server is not None:
            self._server.close()

    def _take(self) -> list[Line | _Facts]:
        items: list[Line | _Facts] = []
        taken = 0
        while self._waiting and taken < BATCH:
            item = self._waiting.popleft()
            items.append(item)
            taken += 1 if isinstance(item, Line) else item.weight
        self._weight -= taken
        return items

    def _write_batch(self, lines: Sequence[Line]) -> None:
        if self._silent_until is not None and self._clock.read().monotonic < self._silent_until:
            self._note_loss(len(lines), None)
            return
        try:
            self._write_lines(lines)
        except OSError as error:
            self._note_loss(len(lines), error)
            self._silent_until = self._clock.read().monotonic + TRY_AGAIN
            return
        self._silent_until, self._trouble = None, None

    def _write_lines(self, lines: Sequence[Line]) -> None:
        dropped = self._dropped
        if dropped and lines:
            text = f"{dropped} log lines were lost" + (f": {self._trouble}" if self._trouble else "")
            note = Line(lines[0].at, "warn", "log-lost", details={"lines": dropped, "why": self._trouble}, text=text)
            lines = [note, *lines]
        by_day: dict[str, list[str]] = {}
        for line in lines:
            by_day.setdefault(stamp(line.at)[:10], []).append(self._as_json(line))
        for day, texts in by_day.items():
            self._days.append(day, "".join(texts))
        if self._server is not None:
            said = "".join(self._as_text(line) for line in lines if line.text is not None)
            if said:
                self._server.append(said)
        with self._bell:
            self._dropped -= dropped

    def _as_json(self, line: Line) -> str:
        fields = line.to_json()
        try:
            text = _encode(fields)
            is_unescaped = "\\" not in text  # nothing was escaped: a secret in it is unchanged
        except (TypeError, ValueError, RecursionError):  # not representable in JSON
            is_unescaped = False
        if not is_unescaped:
            text = _encode(self._clean(fields, DEPTH_MAX))
        return f"{self._redact(text)}\n"

    def _as_text(self, line: Line) -> str:
        words = terminal_text.line(self._redact((line.text or "").replace("\n", " ")))
        return f"{stamp(line.at)} {line.level.upper():<5} {words}\n"

    def _clean(self, value: Any, depth: int) -> Any:
        """The value with secrets redacted, in a form JSON can represent."""
        if isinstance(value, str):
            return self._redact(value)
        if value is None or isinstance(value, bool | int | float):
            return value
        if depth > 0 and isinstance(value, Mapping):
            return {self._redact(str(name)): self._clean(item, depth - 1) for name, item in value.items()}
        if depth > 0 and isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
            return [self._clean(item, depth - 1) for item in value]
        return self._redact(str(value))

    def _note_loss(self, lines: int, error: Exception | None) -> None:
        with self._bell:
            self._dropped += lines
            self._lost += lines
        if error is not None:
            self._trouble = self._redact(f"{type(error).__name__}: {error}")


class LogHandler(logging.Handler):
    """Forwards records of Python's logging to the log; attach it to the logger `wakeful`."""

    def __init__(self, log: Log, level: int = logging.INFO) -> None:
        super().__init__(level)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        try:
            message = record.getMessage()
            details: dict[str, Any] = {"logger": record.name, "message": message}
            if record.exc_info is not None and record.exc_info[0] is not None:
                details["error"] = logging.Formatter().formatException(record.exc_info)
            level = _LEVELS.get(record.levelno // 10 * 10, "info")
            self._log.write("log", level=level, details=details, text=f"{record.name}: {message}")
        except Exception:
            self.handleError(record)


_encode: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def _formatted(item: Line | _Facts) -> Sequence[Line]:
    return (item,) if isinstance(item, Line) else tuple(lines_of(item.facts, item.slugs))


def _weight(fact: Fact) -> int:
    """How many lines a fact may produce."""
    match fact:
        case RunsClaimed(runs=rows) | RunsSettled(runs=rows) | RunsWaiting(runs=rows) | RunsRescued(runs=rows):
            return len(rows)
        case InstantsSkipped(runs=rows) | InstantsMissed(runs=rows):
            return len(rows)
        case RunsClimbed(marks=marks):
            return len(marks)
        case SchedulesChanged(changes=changes):
            return len(changes)
        case Ticked() | CommitTimed(is_kept=True) | AttemptsEnded():
            return 0
        case _:
            return 1
