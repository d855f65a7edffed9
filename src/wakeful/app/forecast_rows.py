"""Forecasts in the store: one per day, so that they can be compared with what happened."""

from typing import NamedTuple

from wakeful.core.time.instants import Instant
from wakeful.ports.database import columns_of
from wakeful.ports.table import Rows


class StoredForecast(NamedTuple):
    """A forecast, in the order of its columns."""

    date: str  # the local day on which it was made
    made_at: Instant
    ends_at: Instant  # of its last whole day
    body: str  # JSON: its whole days


# Forecasts made since a time, oldest first.
SINCE = f"SELECT {columns_of(StoredForecast, 'forecasts')} FROM forecasts WHERE made_at >= :made_at ORDER BY made_at"

# Delete old forecasts.
FORGET = "DELETE FROM forecasts WHERE made_at < :before"


class Forecasts(Rows[StoredForecast]):
    """Stored forecasts. Of two nodes that make one on the same day, the first wins."""

    row, table, key = StoredForecast, "forecasts", "date"

    def since(self, made_at: Instant) -> list[StoredForecast]:
        """Forecasts made since `made_at`, oldest first."""
        return self._made(self._db.rows(SINCE, made_at=made_at))

    def forget(self, *, before: Instant) -> int:
        """Delete forecasts made before `before`; returns how many."""
        return self._db.change(FORGET, before=before)
