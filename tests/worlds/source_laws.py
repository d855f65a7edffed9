"""The laws of taking over from another scheduler: each time of a job runs once in all, there or here."""

from collections.abc import Iterator, Sequence
from typing import Final

from wakeful.core.run.runs import Run
from wakeful.core.time.instants import Duration, Instant, format_duration
from wakeful.core.time.timing import Timing, next_after
from worlds.laws import at, last_instant

SHOWN: Final = 3


def is_off_there(slug: str, off_at: Instant | None) -> Iterator[str]:
    """L2: what is active here is off there."""
    if off_at is None:
        yield f"L2 {slug}: it is active here, and still on in its source"


def abandoned_runs_there(slug: str, off_at: Instant | None) -> Iterator[str]:
    """L1: a handover that is given up leaves the source on."""
    if off_at is not None:
        yield f"L1 {slug}: its handover was given up, and its source is off since {at(off_at)}"


def runs_once_in_all(
    slug: str, timing: Timing, off_at: Instant, through: Instant, rows: Sequence[Run]
) -> Iterator[str]:
    """L2: what ran there does not run here; L1: what is neither is in the ledger."""
    following = next_after(timing, through)
    if following is not None and following <= off_at:
        yield f"L2 {slug}: {at(following)} ran in its source, which was on until {at(off_at)}, and will run here too"
    lost, instant = 0, next_after(timing, off_at)
    while instant is not None and instant <= through and lost < SHOWN:
        if not any(row.planned_at <= instant <= last_instant(row) for row in rows):
            lost += 1
            yield f"L1 {slug}: {at(instant)} is after its source went off at {at(off_at)}, and not in the ledger"
        instant = next_after(timing, instant)


def is_taken_over_in_the_end(slug: str, off_for: Duration) -> Iterator[str]:
    """L1: a source that is off is not left lying."""
    yield f"L1 {slug}: it is off in its source for {format_duration(off_for)}, and not active here"
