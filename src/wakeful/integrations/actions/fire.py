"""The fire as a user's callable sees it: `wakeful.Fire`."""

from datetime import datetime

from wakeful.core.run.runs import Trigger
from wakeful.core.time.timing_builders import as_datetime
from wakeful.ports import action


class Fire:
    """One attempt of a run: what is due, since when, and the key shared by all attempts at this instant. Its instants
    are aware datetimes in UTC, made on access."""

    __slots__ = ("_fire",)

    def __init__(self, fire: action.Fire) -> None:
        self._fire = fire

    @property
    def slug(self) -> str:
        return self._fire.slug

    @property
    def planned_at(self) -> datetime:
        return as_datetime(self._fire.planned_at)

    @property
    def due_at(self) -> datetime:
        return as_datetime(self._fire.due_at)

    @property
    def attempt(self) -> int:
        return self._fire.attempt

    @property
    def idempotency_key(self) -> str:
        return self._fire.idempotency_key

    @property
    def run_id(self) -> int:
        return self._fire.run_id

    @property
    def trigger(self) -> Trigger:
        return self._fire.trigger

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Fire) and self._fire == other._fire

    def __hash__(self) -> int:
        return hash(self._fire)

    def __repr__(self) -> str:
        return f"<fire of {self.slug} planned at {self.planned_at.isoformat()}, attempt {self.attempt}>"
