"""What is planned for many schedules together: pausing all, and what comes next."""

import secrets
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Final

from wakeful.api.operation import Noun, Returns, read, write
from wakeful.api.parameters import Param
from wakeful.api.reading import end_of_pause, time_of
from wakeful.api.replies import charted
from wakeful.api.shared_parameters import Limit, Searched, SlugCursor, Slugs, Until
from wakeful.app import calendars
from wakeful.core.errors import refuse
from wakeful.core.returned import returned
from wakeful.core.schedule.upcoming import UPCOMING, UpcomingPage
from wakeful.core.time.instants import DAY, INSTANT_MAX, WEEK, Duration, Instant, format_instant
from wakeful.core.time.timing_builders import as_given
from wakeful.features.heartbeat import planning
from wakeful.features.heartbeat.rules import HEARTBEAT
from wakeful.features.heartbeat.state import find
from wakeful.features.schedules import pausing_all
from wakeful.features.schedules.pausing_all import PAUSED_TOGETHER, PausedTogether
from wakeful.features.schedules.queries import Choice, chosen
from wakeful.features.schedules.timeline import TIMELINE, Timeline
from wakeful.features.schedules.timeline import rows as timeline_rows
from wakeful.features.schedules.views import Status
from wakeful.ports.meta import Meta
from wakeful.ports.store import Tx

AHEAD: Final[Duration] = WEEK
AROUND: Final[Duration] = DAY
CALENDAR: Final = "/api/calendar.ics"
"""The calendar feed."""


@dataclass(frozen=True, slots=True)
class CalendarAddress:
    """The address of the calendar feed."""

    key: Annotated[str | None, "null: no key has been created"]
    path: Annotated[str | None, "of the feed, with its key"]
    url: Annotated[str | None, "the whole address, as this daemon knows it"]


ADDRESS: Final = returned(CalendarAddress)


class Planned(Noun):
    """What is planned for many schedules together."""

    @write(
        "POST /api/pause",
        "Pause all schedules",
        Returns(PAUSED_TOGETHER, "What was paused."),
        body_name="Pause",
        body_says="When the pause ends; without `until`, it lasts until the schedule is resumed.",
        id="pause_all",
    )
    def pause_all(self, tx: Tx, now: Instant, *, until: Until = None) -> PausedTogether:
        """Pauses all active schedules and the heartbeat in one commit. Runs in progress finish."""
        ends = end_of_pause(until, now)
        paused = pausing_all.pause_all(tx, hooks=self._app._open.hooks, now=now, until=ends, by=self._actor.name)
        heartbeat = find(tx)
        if heartbeat is not None and heartbeat.cadence.state == "active":
            terms = self._app._heartbeat.terms
            planning.pause(tx, terms, now=now, until=ends, reason=pausing_all.WITH_ALL)
            paused.append(HEARTBEAT)
        return PausedTogether(paused)

    @write(
        "POST /api/resume",
        "Resume everything that was paused together",
        Returns(PAUSED_TOGETHER, "What was resumed."),
        id="resume_all",
    )
    def resume_all(self, tx: Tx, now: Instant) -> PausedTogether:
        """Resumes what `POST /api/pause` paused; schedules paused or disabled separately stay so."""
        resumed = pausing_all.resume_all(tx, now=now, by=self._actor.name)
        heartbeat = find(tx)
        if heartbeat is not None and pausing_all.is_paused_with_all(heartbeat.cadence):
            planning.resume(tx, self._app._heartbeat.terms, now=now)
            resumed.append(HEARTBEAT)
        return PausedTogether(resumed)

    @read("GET /api/upcoming", "List upcoming starts", Returns(UPCOMING, "Ordered by due time."), id="get_upcoming")
    def upcoming(
        self,
        tx: Tx,
        now: Instant,
        until: Annotated[
            Instant | datetime | str | None, Param("a time; default: a week from now", read=time_of("until"))
        ] = None,
        *,
        limit: Limit = 100,
    ) -> UpcomingPage:
        """Instants of schedules, retries, beats (`heartbeat`), producers and `wakeAt`s (`workflow:ID`) and wakes
        (`slot:NAME`). Instants that will be skipped are not listed (paused, outside the active hours, during a waiting
        run, into a warm window); instants delayed by errors are listed with the time they will run (`dueAt`)."""
        last = min(now + AHEAD, INSTANT_MAX) if until is None else as_given(until, "until")
        page = self._app._upcoming_in(tx, until=last, limit=limit, now=now)
        return page._replace(until=max(page.until, 0))

    @read(
        "GET /api/timeline",
        "Schedules on one time axis",
        Returns(TIMELINE, "A page."),
        id="get_timeline",
        reply=charted,
    )
    def timeline(
        self,
        tx: Tx,
        now: Instant,
        *,
        since: Annotated[
            Instant | datetime | str | None, Param("a time; default: a day ago", read=time_of("since"))
        ] = None,
        until: Annotated[
            Instant | datetime | str | None, Param("a time; default: a day from now", read=time_of("until"))
        ] = None,
        status: Annotated[Status | None, Param("only schedules with this status")] = None,
        q: Searched = None,
        limit: Annotated[int, Param("maximum number of schedules", least=1, most=50)] = 50,
        cursor: SlugCursor = None,
        slugs: Slugs = None,
    ) -> Timeline:
        """At most 120 ledger rows and 120 instants for each, complete between `wholeSince` and `wholeUntil`. The first
        page also has `others`: the heartbeat, workflows and quota slots with planned instants. Each handler of a
        workflow has a row."""
        first = max(now - AROUND, 0) if since is None else as_given(since, "since")
        last = min(now + AROUND, INSTANT_MAX) if until is None else as_given(until, "until")
        if first >= last:
            refuse("until", f"is not after since ({format_instant(first)}); give a later time")
        app, choice = self._app, Choice(cursor, limit, status, q, slugs)
        page = chosen(tx, choice, now=now, terms=app._terms)
        rows = timeline_rows(tx, page.schedules, now=now, since=first, until=last, terms=app._terms)
        is_first = cursor is None and status is None and slugs is None
        others = app._timeline_of_others(tx, since=first, until=last, now=now) if is_first else []
        shown = [row for row in others if (q or "").casefold() in row.slug.casefold()]
        return Timeline(first, last, now, rows, shown, page.next)

    @read(
        "GET /api/calendar/key",
        "The address of the calendar feed",
        Returns(ADDRESS, "Nulls if no key has been created."),
        least="admin",
        id="get_key",
    )
    def calendar_key(self, tx: Tx, now: Instant) -> CalendarAddress:
        return self._address(tx[Meta].value(calendars.KEY))

    @write(
        "POST /api/calendar/key",
        "Make a new key for the calendar feed",
        Returns(ADDRESS, "The old key stops working immediately."),
        statuses=(201,),
        least="admin",
        id="renew_key",
    )
    def renew_calendar_key(self, tx: Tx, now: Instant) -> CalendarAddress:
        key = secrets.token_urlsafe(24)
        tx[Meta].set(calendars.KEY, key)
        return self._address(key)

    def _address(self, key: str | None) -> CalendarAddress:
        if key is None:
            return CalendarAddress(None, None, None)
        path = f"{CALENDAR}?key={key}"
        return CalendarAddress(key, path, f"{self._app._host.page_at()}{path}")
