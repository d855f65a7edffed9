"""Delivery retries: the retry delays of a failed delivery, and when it is given up.

Theory of operation
-------------------
A delivery is claimed, then marked as *sending*, and then sent, each in a commit of its own. The mark counts the
attempt, so that a process which dies while it sends has used it up: a message that crashes its sender cannot do so
forever. A claim that is lost before the mark has sent nothing and is no attempt. It is repeated at the next start, but
after three in a row the process has to stay up for ten minutes first: something else kills it, and the message is not
what people are waiting for.

After the last attempt, a permanent error, or past its maximum age, a delivery is dead: it is kept with its text, and
only a person can send it again.
"""

from typing import Final, NamedTuple

from wakeful.core.time.instants import DAY, MINUTE, SECOND, Duration, Instant, format_duration

RETRY_DELAYS: Final[tuple[Duration, ...]] = (5 * SECOND, 25 * SECOND, 2 * MINUTE, 10 * MINUTE, 10 * MINUTE)

UNSENT_CLAIMS_MAX: Final = 3
"""After this many claims in a row that were lost before anything was sent, the next one waits for `STEADY_AFTER`."""
STEADY_AFTER: Final[Duration] = 10 * MINUTE


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


def steady_at(unsent_claims: int, *, started_at: Instant, now: Instant) -> Instant | None:
    """Until when a process that has just started leaves a delivery alone, because the ones before it ended in a row
    before they could send it; None if it may be sent now. A start in the future was on a wrong clock."""
    until = started_at + STEADY_AFTER
    return until if unsent_claims >= UNSENT_CLAIMS_MAX and started_at <= now < until else None


def too_old(age_max: Duration, last_error: str | None) -> str:
    """Why a delivery past its age is given up."""
    why = "" if last_error is None else f"; the last error: {last_error}"
    return f"not delivered within {format_duration(age_max)}{why}"
