"""Names of 0.2 for what is done with schedules; all are deprecated."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from wakeful.api.actors import Actor
from wakeful.api.deprecation import warn_of
from wakeful.api.schedules import Schedules
from wakeful.app import calendars
from wakeful.app.forecasting import Forecast
from wakeful.app.values import Guard, WrittenSchedule
from wakeful.core.schedule.definition import Definition
from wakeful.core.schedule.upcoming import UpcomingPage
from wakeful.core.time.instants import Instant
from wakeful.features.schedules.calendar_entries import Entries
from wakeful.features.schedules.commands import Put
from wakeful.features.schedules.timeline import RecordedRuns, UpcomingInstants
from wakeful.ports.store import Tx

if TYPE_CHECKING:
    from wakeful.api.python import Wakeful

T = TypeVar("T")


class Other(NamedTuple):
    """A row of `timeline_of_others`."""

    slug: str
    handler: str | None
    past: RecordedRuns
    future: UpcomingInstants


class OldSchedules:
    """What 0.2 had as methods of the app."""

    async def put(self, slug: str, definition: Mapping[str, Any]) -> Put:
        """Deprecated: `app.schedules.put`."""
        warn_of("put", "schedules.put")
        return await self._wakeful._put(self._wakeful._read(slug, definition, self._wakeful._moment().now))

    async def write(
        self, slug: str, definition: Any, *, guard: Guard | None = None, is_rehearsal: bool = False
    ) -> WrittenSchedule:
        """Deprecated: `app.schedules.put`."""
        warn_of("write", "schedules.put")
        return await self._wakeful._write(slug, definition, guard=guard, is_rehearsal=is_rehearsal)

    async def put_all(self, definitions: Mapping[str, Any], *, then: Callable[[Tx, Instant], T]) -> T:
        """Deprecated: `app.schedules.put`."""
        warn_of("put_all", "schedules.put")
        return await self._wakeful._put_all(definitions, then=then)

    async def patch(
        self, slug: str, changes: Mapping[str, Any], *, guard: Guard | None = None, is_rehearsal: bool = False
    ) -> WrittenSchedule:
        """Deprecated: `app.schedules.patch`."""
        warn_of("patch", "schedules.patch")
        return await self._wakeful._patch(slug, changes, guard=guard, is_rehearsal=is_rehearsal)

    def checked(self, slug: str, definition: Any) -> Definition:
        """Deprecated: `app.schedules.put` with `dry_run`."""
        warn_of("checked", "schedules.put")
        return self._wakeful._checked(slug, definition)

    async def pause_all(self, until: datetime | str | None = None, *, by: str = "") -> list[str]:
        """Deprecated: `app.schedules.pause_all`."""
        warn_of("pause_all", "schedules.pause_all")
        return (await self._by(by).pause_all(until=until)).slugs

    async def resume_all(self, *, by: str = "") -> list[str]:
        """Deprecated: `app.schedules.resume_all`."""
        warn_of("resume_all", "schedules.resume_all")
        return (await self._by(by).resume_all()).slugs

    async def upcoming(self, until: datetime | str | Instant, *, limit: int = 100) -> UpcomingPage:
        """Deprecated: `app.schedules.upcoming`."""
        warn_of("upcoming", "schedules.upcoming")
        return await self._wakeful.schedules.upcoming(until, limit=limit)

    async def timeline_of_others(
        self, *, since: datetime | str | Instant, until: datetime | str | Instant
    ) -> list[Other]:
        """Deprecated: `app.schedules.timeline`."""
        warn_of("timeline_of_others", "schedules.timeline")
        page = await self._wakeful.schedules.timeline(since=since, until=until, limit=1)
        return [
            Other(
                row.slug,
                row.handler,
                RecordedRuns(row.runs, row.whole_since),
                UpcomingInstants(row.planned, row.whole_until),
            )
            for row in page.others
        ]

    async def calendar(self) -> tuple[Entries, str]:
        """Deprecated: `app.schedules.upcoming`."""
        warn_of("calendar", "schedules.upcoming")
        return await self._wakeful._look(self._wakeful._calendar)

    async def calendar_key(self) -> str | None:
        """Deprecated: `app.schedules.calendar_key`."""
        warn_of("calendar_key", "schedules.calendar_key")
        return (await self._wakeful.schedules.calendar_key()).key

    async def renew_calendar_key(self) -> str:
        """Deprecated: `app.schedules.renew_calendar_key`."""
        warn_of("renew_calendar_key", "schedules.renew_calendar_key")
        return (await self._wakeful.schedules.renew_calendar_key()).key or ""

    async def is_calendar_key(self, key: str) -> bool:
        """Deprecated: `app.schedules.calendar_key`."""
        warn_of("is_calendar_key", "schedules.calendar_key")
        return await self._wakeful._look(lambda tx, _: calendars.is_key(tx, key))

    async def simulate_json(self, written: Mapping[str, Any], *, rows: bool = False) -> bytes:
        """Deprecated: `app.simulate`."""
        warn_of("simulate_json", "simulate")
        return await self._wakeful._simulated(written, rows=rows)

    def latest_forecast(self, days: int = 7) -> Forecast | None:
        """Deprecated: `app.schedules.forecast`."""
        warn_of("latest_forecast", "schedules.forecast")
        return self._wakeful._forecasts.get(days)

    async def forecast_daily(self) -> bool:
        """Deprecated: `app.forecast`."""
        warn_of("forecast_daily", "forecast")
        return await self._wakeful._forecast_daily()

    async def acknowledge(self, slug: str) -> None:
        """Deprecated: `app.schedules.acknowledge`."""
        warn_of("acknowledge", "schedules.acknowledge")
        await self._wakeful.schedules.acknowledge(slug)

    def _by(self, name: str) -> Schedules:
        return Schedules(self._wakeful, Actor(name=name))

    @property
    def _wakeful(self) -> "Wakeful":
        return cast("Wakeful", self)
