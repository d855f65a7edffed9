"""Queries: planned times, states, and explanations."""

import builtins
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar

from wakeful.app import findings
from wakeful.app.heartbeat import with_next_beat
from wakeful.app.lifecycle import AppLifecycle
from wakeful.core.schedule.upcoming import Upcoming, UpcomingPage, merged
from wakeful.core.time.instants import Instant
from wakeful.core.time.timing_builders import as_instant
from wakeful.features.delivery import alerts
from wakeful.features.delivery.alerts import AlertView
from wakeful.features.heartbeat.queries import upcoming_beats
from wakeful.features.heartbeat.rules import HEARTBEAT
from wakeful.features.heartbeat.why import why as why_heartbeat
from wakeful.features.money.used_up_budgets import UsedUpBudgets
from wakeful.features.schedules import queries, timeline
from wakeful.features.schedules.health import Finding, Health, health, is_writable
from wakeful.features.schedules.queries import NodeStatus, Stats
from wakeful.features.schedules.timeline import Other
from wakeful.features.schedules.upcoming import next_times, upcoming, waiting_runs
from wakeful.features.schedules.views import ScheduleView, as_datetime
from wakeful.features.schedules.why import Why, why
from wakeful.features.schedules.why_owned import why_waits, with_origin
from wakeful.ports.store import Tx

PAGE: Final = 500
OTHERS_MAX: Final = 2_000
"""How many future instants the time axis reads for anything that is not a schedule."""

T = TypeVar("T")
Filter: TypeAlias = str | Mapping[str, Any] | Callable[[ScheduleView], object]


class AppQueries(AppLifecycle):
    """Read-only queries, each in one transaction."""

    async def get(self, slug: str) -> ScheduleView:
        """One schedule: definition and state."""
        now = self._clock.read().now
        return await self._open.store.read(lambda tx: queries.get(tx, slug, now=now, terms=self.terms))

    async def list(
        self,
        filter: Filter | None = None,
        *,
        status: str | None = None,
        contains: str | None = None,
        limit: int | None = None,
    ) -> builtins.list[ScheduleView]:
        """Schedules in slug order, optionally only those with a status or with a string in their slug. A filter is such
        a string, a mapping of these keywords, or a function that says whether to include a schedule."""
        if isinstance(filter, Mapping):
            return await self.list(**{"status": status, "contains": contains, "limit": limit, **filter})
        text = filter if isinstance(filter, str) else contains
        views = [
            view
            async for view in self._iterate(text)
            if (status is None or view.status == status) and (not callable(filter) or filter(view))
        ]
        return views if limit is None else views[:limit]

    async def look(self, question: Callable[[Tx, Instant], T]) -> T:
        """Run a query on one snapshot, at the current time, in a reader thread. Work on many rows belongs in that
        thread, so that the event loop stays free for the clock."""
        now = self._clock.read().now
        return await self._open.store.read(lambda tx: question(tx, now))

    async def upcoming(self, until: Instant, *, limit: int = 100) -> UpcomingPage:
        """All upcoming starts until a time, in order: schedules, retries, beats, workflows, slot wakes."""
        now = self._clock.read().now

        def look(tx: Tx) -> UpcomingPage:
            ahead = upcoming(tx, now=now, until=until, limit=limit, terms=self.terms)
            return merged(ahead, self._others_ahead(tx, now=now, until=ahead.until, limit=limit + 1), limit=limit)

        return await self._open.store.read(look)

    async def timeline_of_others(self, *, since: Instant, until: Instant) -> builtins.list[Other]:
        """The heartbeat, workflows and quota slots between two times."""
        now, limit = self._clock.read().now, OTHERS_MAX

        def look(tx: Tx) -> builtins.list[Other]:
            ahead = merged(
                UpcomingPage([], until, False), self._others_ahead(tx, now=now, until=until, limit=limit), limit=limit
            )
            names = [instant for instant in ahead.instants if instant.slug == HEARTBEAT or ":" in instant.slug]
            return timeline.others(tx, names, since=since, until=until, whole_until=ahead.until)

        return await self._open.store.read(look)

    def _others_ahead(self, tx: Tx, *, now: Instant, until: Instant, limit: int) -> builtins.list[Upcoming]:
        """Everything that will start except planned instants of schedules."""
        return [item for source in self._sources_ahead(tx, now=now, until=until, limit=limit) for item in source]

    def _sources_ahead(
        self, tx: Tx, *, now: Instant, until: Instant, limit: int
    ) -> builtins.list[builtins.list[Upcoming]]:
        """Like `_others_ahead`, by source, at most `limit` of each."""
        return [
            waiting_runs(tx, now=now, until=until, limit=limit),
            upcoming_beats(tx, self._heartbeat.terms, until=until, limit=limit),
            *(source(tx, now=now, until=until, limit=limit) for source in self._open.upcoming),
        ]

    async def pulse(self) -> NodeStatus:
        """The nodes that tick, and runs that are stuck."""
        return await self._open.store.read(queries.pulse)

    async def health(self) -> Health:
        """Whether the clock is running, and all problems found; cheap enough to be called often."""
        now = self._clock.read().now

        def look(tx: Tx) -> Health:
            state = health(tx, now=now)
            others = (
                findings.dead_letters(tx),
                findings.proposals(tx, now=now),
                findings.budget(tx, self._heartbeat.terms, now=now),
                *findings.stopped_workflows(tx),
                *findings.missing_slots(tx),
                *findings.calendars(tx, self.terms),
                *findings.unloaded_modules(self._workflows.faults),
                *findings.waiting_messages(tx, now=now),
                *findings.tracing(self._tracing.endpoint, self._tracing.trouble()),
                *findings.inbound(self._delivering.inbound_findings(tx, now=now)),
            )
            return replace(state, findings=[*state.findings, *others])

        return await self._open.store.read(look)

    async def alerts(self, *, limit: int = 50, is_open: bool = False) -> builtins.list[AlertView]:
        """Incidents that are open, and recent ones."""
        return await self._open.store.read(lambda tx: alerts.alerts(tx, limit=limit, is_open=is_open))

    async def is_writable(self) -> Finding:
        """Whether the store is writable, checked with a real write."""
        return await is_writable(self._open.store, self._clock)

    async def stats(self, slug: str, *, since: datetime | str | None = None) -> Stats:
        """Counts, success rate, durations and streak of a schedule, or of `heartbeat`, `slot:NAME`, `workflow:ID`."""
        start: Instant = 0 if since is None else as_instant(since, "since")
        now, terms = self._clock.read().now, self._heartbeat.terms

        def look(tx: Tx) -> Stats:
            stats = queries.stats(tx, slug, since=start, now=now, terms=self.terms)
            return with_next_beat(tx, stats, terms, now=now) if slug == HEARTBEAT else stats

        return await self._open.store.read(look)

    async def why(self, slug: str, *, at: datetime | str | None = None, viewer: str | None = None) -> Why:
        """Explain the current state, or what happened or will happen at an instant: one sentence, and the facts. A
        `viewer` is an agent, which is not told the names of what it does not own."""
        parts, now = self._open, self._clock.read().now
        asked = None if at is None else as_instant(at, "at")
        if slug == HEARTBEAT:
            beats = self._heartbeat.terms
            return Why(*await parts.store.read(lambda tx: why_heartbeat(tx, beats, at=asked, now=now)))
        prefix, _, name = slug.partition(":")
        explain = parts.whys.get(prefix) if name else None
        if explain is not None:
            return Why(*await parts.store.read(lambda tx: explain(tx, name, at=asked, now=now)))
        terms, days = self.terms, self._setup.limits.ledger_days

        def look(tx: Tx) -> Why:
            proposal = queries.proposed(tx, slug, now=now)
            if proposal is not None and proposal.schedule_id is None:
                return why_waits(proposal)
            explanation = why(
                tx,
                slug,
                at=asked,
                now=now,
                terms=terms,
                ledger_days=days,
                viewer=viewer,
                used_up=lambda tx, schedule_id, definition: UsedUpBudgets(
                    tx, self._money.terms, self._money.zone, now
                ).used_up(schedule_id, definition),
            )
            return with_origin(tx, slug, explanation)

        return await parts.store.read(look)

    async def next_times(
        self, slug: str, count: int = 5, *, after: datetime | str | None = None
    ) -> builtins.list[datetime]:
        """A schedule's next times, strictly after `after` (default: now)."""
        now = self._clock.read().now
        start = now if after is None else as_instant(after, "after")
        instants = await self._open.store.read(
            lambda tx: next_times(tx, slug, now=now, after=start, count=count, terms=self.terms)
        )
        return [at for at in map(as_datetime, instants) if at is not None]

    async def _iterate(self, contains: str | None) -> AsyncIterator[ScheduleView]:
        after: str | None = None
        while True:
            now = self._clock.read().now
            asked = partial(queries.page, after=after, limit=PAGE, contains=contains, now=now, terms=self.terms)
            page = await self._open.store.read(asked)
            for view in page:
                yield view
            if len(page) < PAGE:
                return
            after = page[-1].slug
