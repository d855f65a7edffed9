"""Stored forecasts."""

from wakeful.core.time.instants import Instant
from wakeful.ports.forecasts import StoredForecast
from wakeful.stores.shared.database import Database, columns_of, fields_of, insert_one

_COLUMNS = columns_of(StoredForecast, "forecasts")

# Add a forecast; of two nodes that make one on the same day, the first wins.
ADD = f"{insert_one('forecasts', fields_of(StoredForecast))} ON CONFLICT (date) DO NOTHING"

# Whether a day has a forecast.
HAS = "SELECT 1 FROM forecasts WHERE date = :date"

# Forecasts made since a time, oldest first.
SINCE = f"SELECT {_COLUMNS} FROM forecasts WHERE made_at >= :made_at ORDER BY made_at"

# Delete old forecasts.
PRUNE = "DELETE FROM forecasts WHERE made_at < :before"


class SharedForecasts:
    """See `ports.forecasts.Forecasts`."""

    __slots__ = ("_db",)

    def __init__(self, db: Database) -> None:
        self._db = db

    def add(self, row: StoredForecast) -> bool:
        return self._db.change(ADD, **row._asdict()) > 0

    def has(self, date: str) -> bool:
        return bool(self._db.rows(HAS, date=date))

    def since(self, made_at: Instant) -> list[StoredForecast]:
        return list(map(StoredForecast._make, self._db.rows(SINCE, made_at=made_at)))

    def prune(self, *, before: Instant) -> int:
        return self._db.change(PRUNE, before=before)
