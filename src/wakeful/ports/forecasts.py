"""Forecasts in the store: one per day, so that they can be compared with what happened."""

from typing import NamedTuple, Protocol

from wakeful.core.time.instants import Instant


class StoredForecast(NamedTuple):
    """A forecast, in the order of its columns."""

    date: str  # the local day on which it was made
    made_at: Instant
    ends_at: Instant  # of its last whole day
    body: str  # JSON: its whole days


class Forecasts(Protocol):
    """Stored forecasts."""

    def add(self, row: StoredForecast) -> bool:
        """Write a forecast, unless that day already has one."""
        ...

    def has(self, date: str) -> bool: ...

    def since(self, made_at: Instant) -> list[StoredForecast]:
        """Forecasts made since `made_at`, oldest first."""
        ...

    def prune(self, *, before: Instant) -> int:
        """Remove forecasts made before `before`; returns how many."""
        ...
