"""Delivery retries: the retry delays of a failed delivery, and when it is given up.

Theory of operation
-------------------
An attempt is counted before it is made, so that a process which dies during the attempt has used it up: a message that
crashes its sender cannot do so forever. After the last attempt, a permanent error, or past its maximum age, a delivery
is dead: it is kept with its text, and only a person can send it again.
"""

from typing import Final, NamedTuple

from wakeful.core.time.instants import DAY, MINUTE, SECOND, Duration, Instant, format_duration

RETRY_DELAYS: Final[tuple[Duration, ...]] = (5 * SECOND, 25 * SECOND, 2 * MINUTE, 10 * MINUTE, 10 * MINUTE)


class DeliveryLimits(NamedTuple):
    """How often and how long to retry."""

    retries_max: int = 5
    recovery_budget: Duration = MINUTE
    age_max: Duration = DAY


def retry_delay(attempts: int) -> Duration:
    """How long to wait after this many attempts; the last delay applies to all further ones."""
    return RETRY_DELAYS[min(max(attempts, 1), len(RETRY_DELAYS)) - 1]


def retry_at(attempts: int, *, now: Instant, asked: Instant | None) -> Instant:
    """When to try again: after the next delay in `RETRY_DELAYS`, but not before the time the other side asked for."""
    return max(now + retry_delay(attempts), asked or 0)


def is_last(attempts: int, retries_max: int) -> bool:
    """Whether this was the last attempt."""
    return attempts > retries_max


def too_old(age_max: Duration, last_error: str | None) -> str:
    """Why a delivery past its age is given up."""
    why = "" if last_error is None else f"; the last error: {last_error}"
    return f"not delivered within {format_duration(age_max)}{why}"
