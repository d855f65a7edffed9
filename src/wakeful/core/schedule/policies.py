"""Policies: rules for failures, crashes and retry delays, as values and pure functions.

Theory of operation
-------------------
*The ladder* counts closed instants in a row that ended in error, not attempts: 30 s, 1, 5, 15, 60 minutes. The run
after an error happens at max(regular next, error + delay), so it can only be delayed, never brought forward.

*Retry* repeats the same instant under the same key, `times` times with `delay` between; `times = None` means until
the next regular instant. With a `backoff` of 2 each delay is twice the one before, up to `delay_max`. For calls it can
depend on the exception, which matches by the name of its type and of each base type.

*Crash* depends on how far the run got. Nothing sent: one more attempt. Sent or started: as the schedule's `onCrash`
says. A second crash of the same run is always unknown.
"""

import zlib
from collections.abc import Collection
from dataclasses import dataclass
from typing import Annotated, Final, Literal, TypeAlias

from wakeful.core.description import Field, described
from wakeful.core.exception_names import EXCEPTIONS
from wakeful.core.fields import Fields
from wakeful.core.kinds import duration, whole
from wakeful.core.run.runs import RungName, rung_index
from wakeful.core.time.instants import DAY, HOUR, MINUTE, SECOND, Duration, Instant, format_duration

LADDER: Final[tuple[Duration, ...]] = (30 * SECOND, MINUTE, 5 * MINUTE, 15 * MINUTE, HOUR)
# A delay up to this is never a misfire, under any catch-up policy.
GRACE: Final[Duration] = MINUTE
BUSY_WAIT: Final[Duration] = HOUR
BUSY_WAITS_MAX: Final = 24
THROTTLE_WAIT: Final[Duration] = SECOND
CRASHES_MAX: Final = 2
_STEPS_MAX: Final = 40
TIMEOUT: Final[Duration] = 2 * HOUR
ERRORS_MAX: Final = 5
CATCH_UP_MAX: Final = 10
# The upper limit of `catchUpMax`: a backlog is enumerated when it starts (L4).
CATCH_UP_LIMIT: Final = 1_000
BACKOFF_MAX: Final = 10

CatchUp: TypeAlias = Literal["once", "skip", "all"]
Overlap: TypeAlias = Literal["skip", "queue"]
OnCrash: TypeAlias = Literal["retry", "unknown"]
AfterCrash: TypeAlias = Literal["retry", "unknown", "failed"]


@dataclass(frozen=True, slots=True)
class Retry:
    """How many times the same instant is tried again; `times = None`: until the next regular instant."""

    times: Annotated[
        int | None, Field(whole(0), "number of retries", "Retries", default=None, usual="until the next instant")
    ]
    delay: Annotated[Duration, Field(duration(1), "time before each retry", "Between retries", default=30 * MINUTE)]
    backoff: Annotated[
        int, Field(whole(1, BACKOFF_MAX), "each delay is the previous one times this factor", "Backoff factor")
    ] = 1
    delay_max: Annotated[Duration | None, Field(duration(1), "longest delay", "Longest delay", usual="a day")] = None
    on: Annotated[
        tuple[str, ...], Field(EXCEPTIONS, "for a call: retry only after these exceptions", "Only after")
    ] = ()
    give_up_on: Annotated[
        tuple[str, ...], Field(EXCEPTIONS, "for a call: never retry after these exceptions", "Never after")
    ] = ()

    def covers(self, raised: Collection[str]) -> bool:
        """Whether an exception with these type names is retried."""
        if any(name in raised for name in self.give_up_on):
            return False
        return not self.on or any(name in raised for name in self.on)

    def delay_after(self, attempts_failed: int) -> Duration:
        """How long to wait after this many failed attempts."""
        delay: Duration = self.delay * self.backoff ** min(max(attempts_failed - 1, 0), _STEPS_MAX)
        return min(delay, max(self.delay, DAY) if self.delay_max is None else self.delay_max)


def _check_delays(fields: Fields, retry: Retry) -> None:
    if retry.delay_max is not None and retry.delay_max < retry.delay:
        longest, delay = format_duration(retry.delay_max), format_duration(retry.delay)
        fields.fail("delayMax", f"{longest} is shorter than the delay, {delay}")


RETRY: Final = described(Retry, check=_check_delays, says="Retries of the same instant: how many, and how far apart.")
NO_RETRY: Final = Retry(times=0, delay=30 * MINUTE)
AGENT_RETRY: Final = Retry(times=None, delay=30 * MINUTE)
ONE_SHOT_TRIES: Final = 4
"""How many times the prompt of a one-shot is tried in total."""


def ladder_delay(errors_in_a_row: int) -> Duration:
    """How long to delay after this many errors in a row."""
    if errors_in_a_row <= 0:
        return 0
    return LADDER[min(errors_in_a_row, len(LADDER)) - 1]


def should_disable(errors_in_a_row: int, errors_max: int) -> bool:
    """Whether this many errors in a row disable the schedule until a person resumes it."""
    return errors_max > 0 and errors_in_a_row >= errors_max


def retry_at(retry: Retry, *, attempts_failed: int, now: Instant, next_due_at: Instant | None) -> Instant | None:
    """When the same instant is tried again, or None if it is given up."""
    if retry.times is not None and attempts_failed > retry.times:
        return None
    at = now + retry.delay_after(attempts_failed)
    if retry.times is None and next_due_at is not None and at >= next_due_at:
        return None
    return at


def after_crash(rung: RungName | None, *, crashes: int, on_crash: OnCrash, is_manual: bool) -> AfterCrash:
    """What happens to a run whose node died; `crashes` includes this one."""
    nothing_sent = rung_index(rung) <= 0
    if is_manual:  # one attempt only: the person who asked gets the result
        return "failed" if nothing_sent else "unknown"
    if crashes >= CRASHES_MAX:
        return "unknown"
    return "retry" if nothing_sent or on_crash == "retry" else "unknown"


def stagger_offset(schedule_id: int, stagger: Duration, shortest_gap: Duration | None) -> Duration:
    """A fixed offset per schedule within its stagger, always smaller than its interval."""
    span = stagger if shortest_gap is None else min(stagger, shortest_gap)
    if span <= 0:
        return 0
    return zlib.crc32(schedule_id.to_bytes(8, "big", signed=True)) % span
