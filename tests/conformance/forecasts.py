"""Conformance: stored forecasts."""

from conformance.rows import NOW, MakeStore
from wakeful.app.forecast_rows import Forecasts, StoredForecast


class TestForecasts:
    """One a day."""

    async def test_the_first_forecast_of_a_day_is_kept(self, make_store: MakeStore) -> None:
        """A second one changes nothing; hostile text is only text."""
        store = await make_store()
        first = StoredForecast("2026-01-02", NOW, NOW + 9, '[{"date": "é\'; DROP TABLE forecasts; --"}]')
        assert await store.write(lambda tx: tx[Forecasts].add_first(first))
        assert not await store.write(lambda tx: tx[Forecasts].add_first(first._replace(made_at=NOW + 5, body="[]")))
        again = await make_store()
        assert await again.read(lambda tx: tx[Forecasts].since(NOW)) == [first]
        assert await again.read(lambda tx: tx[Forecasts].since(NOW + 1)) == []
        assert await again.read(lambda tx: tx[Forecasts].get("2026-01-02")) == first
        assert await again.read(lambda tx: tx[Forecasts].get("2026-01-03")) is None

    async def test_old_forecasts_are_pruned(self, make_store: MakeStore) -> None:
        """Those made before a time."""
        store = await make_store()
        for day in range(3):
            row = StoredForecast(f"2026-01-0{day + 1}", NOW + day, NOW + 9, "[]")
            await store.write(lambda tx, row=row: tx[Forecasts].add_first(row))  # type: ignore[misc]
        assert await store.write(lambda tx: tx[Forecasts].forget(before=NOW + 2)) == 2
        assert [row.made_at for row in await store.read(lambda tx: tx[Forecasts].since(0))] == [NOW + 2]
