"""Incident watch: observations update a subject's incident, and an incident that is due is reported.

The rules are pure core code; this module writes rows and alarms. Settling only writes the row: the cause is looked up
in a separate read when the alarm rings (`IncidentLooks`), so that explaining a failure never delays or breaks the
run that failed. Incident locks are taken after those of cadences, runs and lanes, and before addressees.
"""

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias

from wakeful.core.delivery.alert_rules import AlertTerms
from wakeful.core.delivery.incidents import (
    OUTAGE,
    Incident,
    Step,
    after_bad,
    after_good,
    is_to_be_reported,
    reported,
    watched,
)
from wakeful.core.run.effects import Observed, Recovered
from wakeful.core.time.instants import SECOND, Instant
from wakeful.engine.incident_rows import Incidents
from wakeful.features.delivery.incidents import IncidentReporter, over_text, recovered, slug_of
from wakeful.ports import events
from wakeful.ports.chores import Chore, StillHeld, Work
from wakeful.ports.clock import Clock
from wakeful.ports.event_data import IncidentClosed, IncidentOpened
from wakeful.ports.handlers import Note
from wakeful.ports.outbox import ALARM_INCIDENT
from wakeful.ports.store import Alarm, Report, Store, Tx

log = logging.getLogger("wakeful.delivery")


class IncidentText(NamedTuple):
    """The text of an incident report."""

    text: str
    slug: str | None = None
    is_off: bool = False  # a person has disabled its subject, so it is not reported


Explain: TypeAlias = Callable[[Tx, Incident, Instant], IncidentText]
Outage: TypeAlias = Callable[..., Note]
"""Writes the report of a period in which no node ticked: `outages.look_at_outage`."""


def plainly(tx: Tx, incident: Incident, now: Instant) -> IncidentText:
    """The text in the row itself."""
    return IncidentText(incident.text, slug_of(tx, incident.name) or _named(incident))


def observe(
    tx: Tx, effect: Observed, now: Instant, *, terms: Callable[[], AlertTerms], reporter: IncidentReporter
) -> None:
    """Apply the effect."""
    rule = terms().rule_of(effect.alert)
    held = tx[Incidents].lock_open([effect.incident, *effect.also])
    known = held.get(effect.incident)
    if effect.also and held.keys() & set(effect.also):
        recovered(tx, Recovered(effect.also), now, reporter=reporter)
    if rule is None:
        if known is not None:  # its owner has turned alerts off
            put(tx, known, Step(known._replace(closed_at=now, look_at=None)))
        return
    if effect.is_good:
        if known is not None:
            step = after_good(known, rule, needed=effect.needed, now=now)
            put(tx, known, step)
            _tell_end(tx, known, step, now, reporter)
        return
    before = known or watched(effect.incident, effect.owner_id, now)
    step = after_bad(
        before,
        rule,
        instant=effect.at,
        error=effect.error or "it failed",
        run_id=effect.run_id,
        is_urgent=effect.is_urgent,
        before=tx[Incidents].last_over(effect.incident, now=now),
        now=now,
        counts=effect.counts,
    )
    put(tx, before, step)


def put(tx: Tx, before: Incident, step: Step) -> None:
    """Write the row and its alarm."""
    after = step.incident
    if after is None:
        tx[Incidents].remove(before.incident_id)
        tx.alarms.remove_many(ALARM_INCIDENT, [before.incident_id])
        return
    incident_id: int | None = before.incident_id
    if incident_id == 0:
        incident_id = tx[Incidents].add_unless_open(after)
    else:
        tx[Incidents].save(after)
    if incident_id is not None and (after.look_at is not None or before.look_at is not None):
        tx.alarms.set_many([Alarm(ALARM_INCIDENT, incident_id, after.look_at, 1, None, 0)])


def _tell_end(tx: Tx, before: Incident, step: Step, now: Instant, reporter: IncidentReporter) -> None:
    after = step.incident
    if after is None or after.closed_at is None:
        return
    slug = slug_of(tx, after.name) or _named(after)
    tx.report(Report(events.INCIDENT_CLOSED, IncidentClosed(after.name, after.text, after.times), slug=slug))
    if step.saying == "end":
        text = over_text(before, slug, now)
        reporter.tell(tx, text, now=now, purpose="note", slug=slug, channel=after.channel)


class IncidentLooks(Chore[Incident]):
    """The chore that explains and reports incidents that are due."""

    kind = ALARM_INCIDENT
    timeout = 30 * SECOND

    def __init__(
        self, store: Store, clock: Clock, reporter: IncidentReporter, *, explain: Explain, outage: Outage
    ) -> None:
        self._store = store
        self._clock = clock
        self._reporter = reporter
        self._explain = explain
        self._outage = outage

    def due(self, tx: Tx, *, now: Instant, limit: int) -> Sequence[Incident]:
        return tx[Incidents].due(now=now, limit=limit)

    def page(self, tx: Tx, *, after_id: int, limit: int) -> Sequence[Incident]:
        ids = [row.incident_id for row in tx[Incidents].open() if row.incident_id > after_id]
        return list(tx[Incidents].lock(sorted(ids)[:limit]).values())

    def lock(self, tx: Tx, ref: int) -> Incident | None:
        return tx[Incidents].lock([ref]).get(ref)

    def ref_of(self, subject: Incident) -> int:
        return subject.incident_id

    def due_at(self, tx: Tx, subject: Incident, *, now: Instant) -> Instant | None:
        return subject.look_at if subject.closed_at is None else None

    def clamp(self, tx: Tx, subject: Incident, *, now: Instant) -> Incident:
        """Pull the report back, so that it is no later than it could be now."""
        if subject.look_at is None or subject.look_at <= now or subject.last_at <= now:
            return subject
        nearer = subject._replace(look_at=now + (subject.look_at - subject.last_at), last_at=now)
        put(tx, subject, Step(nearer))
        return nearer

    def begin(self, tx: Tx, subject: Incident, *, now: Instant) -> Work:
        return Work(f"incident {subject.name}", partial(self._perform, subject))

    def end(self, tx: Tx, subject: Incident, result: Note, *, now: Instant) -> None:
        """Whether it is still to be reported is in its row."""
        result(tx)

    async def _perform(self, row: Incident, _: StillHeld) -> Note:
        now = self._clock.read().now
        if row.name.startswith(f"{OUTAGE}:"):
            return await self._store.read(partial(self._outage, row=row, now=now, reporter=self._reporter))
        explained = await self._store.read(partial(self._explained, row=row, now=now))
        return partial(self._report, name=row.name, explained=explained, now=now)

    def _explained(self, tx: Tx, row: Incident, now: Instant) -> IncidentText:
        try:
            return self._explain(tx, row, now)
        except Exception:  # report what the row says even if the cause cannot be read (L9)
            log.exception("the cause of incident %s could not be looked up", row.name)
            return plainly(tx, row, now)

    def _report(self, tx: Tx, name: str, explained: IncidentText, now: Instant) -> None:
        row = tx[Incidents].lock_open([name]).get(name)
        if row is None:
            return
        if not is_to_be_reported(row, now):
            put(tx, row, Step(row))
            return
        if explained.is_off:
            put(tx, row, Step(row._replace(look_at=None)))
            return
        put(tx, row, Step(reported(row, explained.text, now)))
        slug = explained.slug
        data = IncidentOpened(name, explained.text, row.reopened)
        tx.report(Report(events.INCIDENT_OPENED, data, slug=slug))
        text = explained.text if slug is None else f"{slug}: {explained.text}"
        self._reporter.tell(tx, text, now=now, purpose="alert", slug=slug, channel=row.channel)


def _named(incident: Incident) -> str | None:
    """The incident's subject, if its name contains it: a workflow's handler, a slot."""
    kind, _, name = incident.name.partition(":")
    return {"handler": f"workflow:{name}", "slot": f"slot:{name}"}.get(kind)
