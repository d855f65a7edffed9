"""Queries: planned times, states, and explanations."""

import builtins
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Final, TypeVar

from wakeful.app import calendars, findings
from wakeful.app.heartbeat import with_next_beat
from wakeful.app.lifecycle import AppLifecycle
from wakeful.core.schedule.upcoming import Upcoming, UpcomingPage, merged
from wakeful.core.time.instants import Instant
from wakeful.core.time.timing_builders import as_instant
from wakeful.features.delivery.queries import inbound_findings
from wakeful.features.heartbeat.queries import upcoming_beats
from wakeful.features.heartbeat.rules import HEARTBEAT
from wakeful.features.heartbeat.why import why as why_heartbeat
from wakeful.features.money import queries as money
from wakeful.features.money.used_up_budgets import UsedUpBudgets
from wakeful.features.schedules import calendar_entries, queries, timeline
from wakeful.features.schedules.calendar_entries import Entries
from wakeful.features.schedules.health import Finding, Health, health, is_writable
from wakeful.features.schedules.queries import NodeStatus, Stats
from wakeful.features.schedules.timeline import OtherRow
from wakeful.features.schedules.upcoming import upcoming, waiting_runs
from wakeful.features.schedules.why import Why, why
from wakeful.features.schedules.why_owned import why_waits, with_origin
from wakeful.ports.store import Tx

OTHERS_MAX: Final = 2_000
"""How many future instants the time axis reads for anything that is not a schedule."""

T = TypeVar("T")


class AppQueries(AppLifecycle):
    """Read-only queries, each in one transaction."""

    async def _look(self, question: Callable[[Tx, Instant], T]) -> T:
        """Run a query on one snapshot, at the current time, in a reader thread. Work on many rows belongs in that
        thread, so that the event loop stays free for the clock."""
        now = self._clock.read().now
        return await self._in_use.store.read(lambda tx: question(tx, now))

    def _upcoming_in(self, tx: Tx, *, until: Instant, limit: int, now: Instant) -> UpcomingPage:
        """All upcoming starts until a time, in order: schedules, retries, beats, workflows, slot wakes."""
        ahead = upcoming(tx, now=now, until=until, limit=limit, terms=self._terms)
        return merged(ahead, self._others_ahead(tx, now=now, until=ahead.until, limit=limit + 1), limit=limit)

    def _timeline_of_others(self, tx: Tx, *, since: Instant, until: Instant, now: Instant) -> builtins.list[OtherRow]:
        """The heartbeat, workflows and quota slots between two times."""
        others = self._others_ahead(tx, now=now, until=until, limit=OTHERS_MAX)
        ahead = merged(UpcomingPage([], until, False), others, limit=OTHERS_MAX)
        names = [instant for instant in ahead.instants if instant.slug == HEARTBEAT or ":" in instant.slug]
        return timeline.others(tx, names, since=since, until=until, whole_until=ahead.until)

    def _calendar(self, tx: Tx, now: Instant) -> tuple[Entries, str]:
        """The entries of the calendar feed, and the id of the store."""
        sources = self._sources_ahead(tx, now=now, until=now + calendar_entries.AHEAD, limit=calendars.OTHERS_MAX)
        return calendars.entries_of(tx, sources, terms=self._terms, now=now)

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

    async def _pulse(self) -> NodeStatus:
        """The nodes that tick, and runs that are stuck."""
        return await self._open.store.read(queries.pulse)

    async def _health(self) -> Health:
        """Whether the clock is running, and all problems found; cheap enough to be called often."""
        return await self._look(self._health_in)

    def _health_in(self, tx: Tx, now: Instant) -> Health:
        state = health(tx, now=now)
        others = (
            findings.dead_letters(tx),
            findings.proposals(tx, now=now),
            findings.budget(tx, self._heartbeat.terms, now=now),
            *findings.unpriced(money.unpriced(tx, self._money.terms, (), now=now)),
            *findings.stopped_workflows(tx),
            *findings.missing_slots(tx),
            *findings.calendars(tx, self._terms),
            *findings.headers(tx),
            *findings.replanned(tx),
            *findings.unloaded_modules(self._workflows.faults),
            *findings.unloaded_workflows(tx, now=now),
            *findings.waiting_messages(tx, now=now),
            *findings.tracing(self._tracing.endpoint, self._tracing.trouble()),
            *findings.inbound(inbound_findings(tx, self._delivery.registry, now=now)),
            *(finding for look in self._more_findings for finding in look()),
        )
        return replace(state, findings=[*state.findings, *others])

    async def _is_writable(self) -> Finding:
        """Whether the store is writable, checked with a real write."""
        return await is_writable(self._open.store, self._clock)

    def _stats_in(self, tx: Tx, slug: str, *, since: datetime | str | None, now: Instant) -> Stats:
        start: Instant = 0 if since is None else as_instant(since, "since")
        stats = queries.stats(tx, slug, since=start, now=now, terms=self._terms)
        return with_next_beat(tx, stats, self._heartbeat.terms, now=now) if slug == HEARTBEAT else stats

    def _why_in(self, tx: Tx, slug: str, *, at: datetime | str | None, viewer: str | None, now: Instant) -> Why:
        parts = self._open
        asked = None if at is None else as_instant(at, "at")
        if slug == HEARTBEAT:
            return Why(*why_heartbeat(tx, self._heartbeat.terms, at=asked, now=now))
        prefix, _, name = slug.partition(":")
        explain = parts.whys.get(prefix) if name else None
        if explain is not None:
            return Why(*explain(tx, name, at=asked, now=now))
        proposal = queries.proposed(tx, slug, now=now)
        if proposal is not None and proposal.schedule_id is None:
            return why_waits(proposal)
        explanation = why(
            tx,
            slug,
            at=asked,
            now=now,
            terms=self._terms,
            ledger_days=self._setup.limits.ledger_days,
            viewer=viewer,
            used_up=lambda tx, schedule_id, definition: UsedUpBudgets(
                tx, self._money.terms, self._money.zone, now
            ).used_up(schedule_id, definition),
        )
        return with_origin(tx, slug, explanation)
