"""The Retry-After header: seconds, or a date."""

from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Final

from wakeful.core.time.instants import DAY, SECOND, Duration, Instant

RETRY_AFTER_MAX: Final[Duration] = DAY
"""A longer wait is considered a mistake: a header must not stop a schedule."""


def retry_after(header: str | None, now: Instant) -> Instant | None:
    """When to retry; None if the header is missing or invalid."""
    if header is None:
        return None
    text = header.strip()
    until = now + int(text[:12]) * SECOND if text.isascii() and text.isdigit() else _date(text)
    return None if until is None else min(max(until, now), now + RETRY_AFTER_MAX)


def _date(text: str) -> Instant | None:
    try:
        date = parsedate_to_datetime(text)
    except ValueError:
        return None
    aware = date if date.tzinfo else date.replace(tzinfo=UTC)
    return int(aware.timestamp()) * SECOND
