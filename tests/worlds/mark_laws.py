"""The laws of the `sending` mark, as questions about what a commit did to a delivery and to its addressee's claim."""

from collections.abc import Iterator

from wakeful.core.time.instants import format_instant
from wakeful.ports.outbox import Addressee, Delivery
from worlds.outbox_laws import describe


def is_mark(before: Delivery, after: Delivery, fence: int | None, row: Addressee | None) -> bool:
    """Whether a commit counted an attempt under a claim that was there before it: the mark is a commit of its own, so
    that a claim that is lost before it is no attempt. `fence` is that of the addressee before the commit."""
    return row is not None and after.attempts == before.attempts + 1 and row.fence == fence


def is_dead_before_its_time(row: Delivery, marks: int) -> Iterator[str]:
    """L7: a delivery none of whose attempts has the mark is not dead before `age_max`."""
    if row.ended_at is not None and marks == 0 and row.ended_at < row.expires_at:
        ended, expires = format_instant(row.ended_at), format_instant(row.expires_at)
        yield f"L7 outbox: {describe(row)} was given up at {ended}; it was never marked, and may wait until {expires}"
