"""Turns an HTTP response into the outcome of a delivery."""

from typing import Final

from wakeful.core.time.instants import SECOND, Duration, Instant
from wakeful.integrations.net.exchange import Response
from wakeful.ports.channel import Outcome, Refused, Sent, Unsent

ANSWER_WITHIN: Final[Duration] = 30 * SECOND

# Timeout, too early, too many requests: the same message may be accepted later.
_TRANSIENT: Final = frozenset({408, 425, 429})


def outcome_of(response: Response, now: Instant, said: str, *, asked: Instant | None = None) -> Outcome:
    """2xx counts as delivered, server errors are retried, other errors are final."""
    if response.is_ok:
        return Sent()
    if 300 <= response.status < 400:
        return Refused(f"{response.line}: it redirects, which is not followed; use the final address")
    error = f"{response.line}: {said}" if said else response.line
    if response.status in _TRANSIENT or response.status >= 500:
        return Unsent(error, retry_at=asked or response.retry_at(now))
    return Refused(error)
