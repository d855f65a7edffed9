"""The fire as a user's callable sees it."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from wakeful.core.instants import Instant
from wakeful.core.runs import Trigger
from wakeful.ports.action import Fire

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class FireView:
    """One attempt at one run: what is due, since when, and the key that every attempt at this instant shares."""

    slug: str
    planned_at: datetime
    due_at: datetime
    attempt: int
    idempotency_key: str
    run_id: int
    trigger: Trigger


def view_of(fire: Fire) -> FireView:
    """The fire with its instants as aware datetimes in UTC."""
    return FireView(
        slug=fire.slug,
        planned_at=_as_datetime(fire.planned_at),
        due_at=_as_datetime(fire.due_at),
        attempt=fire.attempt,
        idempotency_key=fire.idempotency_key,
        run_id=fire.run_id,
        trigger=fire.trigger,
    )


def _as_datetime(instant: Instant) -> datetime:
    # Not `fromtimestamp`: a float cannot hold every millisecond, and it fails beyond the platform's time_t.
    return _EPOCH + timedelta(milliseconds=instant)
