"""Delivery: when a text that did not reach its person is tried again, and when it is given up.

Theory of operation
-------------------
An attempt is counted before it is made, so that a process which dies in the middle of it has used it up: a text that
kills its sender cannot do so for ever. After the last attempt, at an error that would come again, or past its age, a
delivery is dead: it is kept with its text, and only a person sends it again.
"""

from typing import Final, NamedTuple

from wakeful.core.time.instants import DAY, MINUTE, SECOND, Duration, Instant, format_duration

RETRY_DELAYS: Final[tuple[Duration, ...]] = (5 * SECOND, 25 * SECOND, 2 * MINUTE, 10 * MINUTE, 10 * MINUTE)


class DeliveryLimits(NamedTuple):
    """How long to go on trying."""

    retries_max: int = 5
    recovery_budget: Duration = MINUTE
    age_max: Duration = DAY


def retry_delay(attempts: int) -> Duration:
    """How long to wait after so many attempts; the last delay holds for all that follow."""
    return RETRY_DELAYS[min(max(attempts, 1), len(RETRY_DELAYS)) - 1]


def retry_at(attempts: int, *, now: Instant, asked: Instant | None) -> Instant:
    """When to try again: by the ladder, and never before the other side asked for it."""
    return max(now + retry_delay(attempts), asked or 0)


def is_last(attempts: int, retries_max: int) -> bool:
    """Whether no attempt is left after so many."""
    return attempts > retries_max


def too_old(age_max: Duration, last_error: str | None) -> str:
    """Why a delivery past its age is given up."""
    why = "" if last_error is None else f"; the last error: {last_error}"
    return f"not delivered within {format_duration(age_max)}{why}"
