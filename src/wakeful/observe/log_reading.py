"""Reads the log of one run from the daily files.

Lines are in the order they were written, so a time range is found by binary search: a few reads for a file of any size.
The lines in between are scanned up to a limit, because on a busy day much else happens during a long run.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Final, Literal, NamedTuple, NotRequired, TypedDict

from wakeful.core.returned import TIME, Named
from wakeful.core.time.instants import DAY, MINUTE, Duration, Instant, format_instant

LINES_MAX: Final = 500
BYTES_MAX: Final = 16 * 1_048_576
DAYS_MAX: Final = 400
AROUND: Final[Duration] = MINUTE
"""How far outside its times a run's lines may be: clocks are set, and lines are written a little later."""

_TS: Final = b'{"ts":"'
_LINE_MAX: Final = 1_048_576
_NEAR: Final = 64 * 1024
"""Below this distance, scanning is as good as another bisection."""


class LogLine(TypedDict):
    """One line of the log."""

    ts: Annotated[str, TIME]
    level: Literal["debug", "info", "warn", "error"]
    action: str
    phase: Literal["request", "response", "error", "event"]
    flow_id: NotRequired[Annotated[str | None, Named("flow_id")]]
    duration_ms: NotRequired[Annotated[int | None, Named("duration_ms")]]
    slug: NotRequired[str | None]
    slot: NotRequired[str | None]
    details: NotRequired[dict[str, Any] | None]


class RunLog(NamedTuple):
    """The log lines of one run, oldest first."""

    lines: list[LogLine]
    is_cut: bool  # there are more lines


def read_run(folder: Path, run_id: int, *, since: Instant, until: Instant) -> RunLog:
    """The lines of a run between two times; none if the files were removed."""
    first, last = format_instant(since - AROUND).encode(), format_instant(until + AROUND).encode()
    mark = f'"runId":{run_id}'.encode()
    lines: list[LogLine] = []
    left = BYTES_MAX
    for path in _files(folder, since - AROUND, until + AROUND):
        for raw in _between(path, first, last):
            left -= len(raw)
            if left < 0 or len(lines) == LINES_MAX:
                return RunLog(lines, True)
            if mark in raw and (line := _about(raw, run_id)) is not None:
                lines.append(line)
    return RunLog(lines, False)


def _files(folder: Path, since: Instant, until: Instant) -> Iterator[Path]:
    at = since
    for _ in range(DAYS_MAX):
        yield folder / f"{format_instant(at)[:10]}.jsonl"
        if format_instant(at)[:10] >= format_instant(until)[:10]:
            return
        at += DAY


def _between(path: Path, first: bytes, last: bytes) -> Iterator[bytes]:
    """The lines from `first` to `last`; a missing file has none."""
    try:
        with path.open("rb") as file:
            file.seek(_begin(file, first))
            while raw := file.readline(_LINE_MAX):
                ts = _ts(raw)
                if ts is not None and ts > last:
                    return
                if ts is not None and ts >= first:
                    yield raw
    except OSError:
        return


def _begin(file: BinaryIO, first: bytes) -> int:
    """A line start before which every line is older."""
    low, high = 0, file.seek(0, 2)
    while high - low > _NEAR:
        middle = (low + high) // 2
        file.seek(middle)
        file.readline(_LINE_MAX)  # the rest of a partial line
        ts = _ts(file.readline(_LINE_MAX))
        if ts is not None and ts < first:
            low = middle
        else:
            high = middle
    file.seek(low)
    if low:
        file.readline(_LINE_MAX)
    return file.tell()


def _ts(raw: bytes) -> bytes | None:
    if not raw.startswith(_TS):
        return None
    return raw[len(_TS) : raw.find(b'"', len(_TS))]


def _about(raw: bytes, run_id: int) -> LogLine | None:
    try:
        line: LogLine = json.loads(raw)
    except (ValueError, RecursionError):  # truncated by a crash
        return None
    details = line.get("details")
    return line if isinstance(details, dict) and details.get("runId") == run_id else None
