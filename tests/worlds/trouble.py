"""Trouble and its reports: which instants were bad by the ledger, and what people were told of them by the outbox."""

import random
from collections.abc import Iterator, Mapping
from typing import Final

from wakeful.core.delivery.alert_rules import AlertRule, AlertTerms
from wakeful.core.delivery.incidents import Incident, failing
from wakeful.core.run.runs import OUTSIDE_PLAN, Run
from wakeful.core.time.instants import HOUR, MINUTE, Duration, Instant
from wakeful.engine.incident_rows import Incidents
from wakeful.ports.outbox import ALARM_INCIDENT, Delivery
from wakeful.ports.store import Tx
from worlds import trouble_laws as laws
from worlds.inhabitants import Boot, Surroundings, Touch
from worlds.trouble_laws import Owed

KEPT_MAX: Final = 8
TOUCH: Final = Touch("incidents", ALARM_INCIDENT, "incident_id")


class _Subject:
    """What is known of one schedule."""

    __slots__ = ("alerts", "bad", "began_at", "incidents", "overdue_since", "owed", "since", "slug")

    def __init__(self, slug: str) -> None:
        self.slug = slug
        self.bad: set[int] = set()  # runs that were bad in a row
        self.since: Instant = 0  # when the first of them was, by the wall
        self.began_at = 0  # the same in true time
        self.owed: Owed | None = None
        self.overdue_since: int | None = None  # true time
        self.alerts: list[Instant] = []  # when alerts about it were queued
        self.incidents: dict[int, Incident] = {}  # its last few, by id

    def forget(self) -> None:
        """It is well, or a person looked after it."""
        self.bad.clear()
        self.owed = self.overdue_since = None


class Troubles:
    """Every schedule of a world that was ever in trouble."""

    def __init__(self, rng: random.Random, world: Surroundings) -> None:
        rule = AlertRule(errors=rng.choice((1, 2, 2, 3)), within=rng.choice((10 * MINUTE, HOUR, HOUR, 3 * HOUR)))
        self.terms = AlertTerms(rule)
        self._rule = rule
        self._world = world
        self._subjects: dict[int, _Subject] = {}
        self._runs: dict[int, Run] = {}  # open ones
        self._boots: list[Boot] = []
        self._owed = self._reports = 0

    def move_in(self, boot: Boot) -> None:
        self._boots = [one for one in self._boots if one.is_alive] + [boot]

    def figures(self) -> dict[str, int]:
        """What it came to."""
        return {"reports owed": self._owed, "troubles reported": self._reports}

    # -- what the store says ------------------------------------------------------------------------------------------

    def look_at_runs(self, tx: Tx, runs: Mapping[int, Run], now: Instant) -> None:
        """Runs were written: the good end a row of bad ones, the bad are owed a report."""
        for run in runs.values():
            if run.kind != "schedule":
                continue
            before = self._runs.pop(run.run_id, None)
            if run.is_open:
                self._runs[run.run_id] = run
            if run.outcome == "succeeded" and run.trigger not in OUTSIDE_PLAN and run.schedule_id in self._subjects:
                self._subjects[run.schedule_id].forget()
            elif laws.turns_bad(before, run, tx.runs.attempts([run.run_id]).get(run.run_id, ())):
                self._note_bad(tx, run, now)

    def _note_bad(self, tx: Tx, run: Run, now: Instant) -> None:
        subject = self._subject(tx, run.schedule_id)
        schedule = tx.schedules.by_ids([run.schedule_id]).get(run.schedule_id)
        if subject is None or schedule is None or schedule.deleted_at is not None:
            return
        if not subject.bad:
            subject.since, subject.began_at = now, self._world.loop.now_ms
        subject.bad.add(run.run_id)
        cadence = tx.cadences.lock([run.schedule_id]).get(run.schedule_id)
        is_last = not run.is_open and cadence is not None and cadence.state == "done"
        owed = laws.owes(run, len(subject.bad), self._rule, is_last=is_last, since=subject.since, now=now)
        if subject.owed is None or owed.deadline < subject.owed.deadline:
            self._owed += subject.owed is None
            subject.owed = owed
            subject.overdue_since = None

    def look_at_incident(self, tx: Tx, incident_id: int) -> Iterator[str]:
        """An incident was written."""
        after = tx[Incidents].get(incident_id)
        if after is None:  # it was only watched
            for known in self._subjects.values():
                known.incidents.pop(incident_id, None)
            return
        if after.owner_id is None or after.name != failing(after.owner_id):
            return
        subject = self._subject(tx, after.owner_id)
        if subject is None:
            return
        before = subject.incidents.get(incident_id)
        subject.incidents[incident_id] = after
        for old in sorted(subject.incidents)[:-KEPT_MAX]:
            del subject.incidents[old]
        self._reports += after.stage == "reported" and (before is None or before.stage != "reported")
        yield from laws.is_told_once(before, after)
        yield from laws.is_told(after, subject.alerts)

    def look_at_letter(self, tx: Tx, row: Delivery) -> None:
        """A message was queued; those about a schedule's trouble are remembered."""
        if row.purpose == "alert" and row.slug is not None:
            schedule = tx.schedules.by_slugs([row.slug]).get(row.slug)
            subject = None if schedule is None else self._subject(tx, schedule.schedule_id)
            if subject is not None:
                subject.alerts = [*subject.alerts[-KEPT_MAX:], row.enqueued_at]

    def _subject(self, tx: Tx, schedule_id: int) -> _Subject | None:
        if schedule_id not in self._subjects:
            schedule = tx.schedules.by_ids([schedule_id]).get(schedule_id)
            if schedule is None or schedule.deleted_at is not None:
                return None
            self._subjects[schedule_id] = _Subject(schedule.slug)
        return self._subjects[schedule_id]

    # -- time ---------------------------------------------------------------------------------------------------------

    def ticked(self, now: Instant, ahead_max: Duration) -> Iterator[str]:
        """A node has looked at its clock: what is owed and due has been reported, or is about to be."""
        true_now = self._world.loop.now_ms
        calm = [max(boot.began_at, boot.disturbed_at) for boot in self._boots if boot.is_alive and not boot.is_still]
        disturbed_at = max([self._world.stepped_at, *calm])
        for subject in self._subjects.values():
            if subject.owed is None:
                continue
            subject.owed = owed = laws.nearer(subject.owed, self._rule, now=now, ahead_max=ahead_max)
            if self._world.attended_at.get(subject.slug, -1) >= subject.began_at:
                subject.forget()
            elif laws.is_covered(owed, list(subject.incidents.values()), self._rule, now=now):
                subject.owed = subject.overdue_since = None
            elif now > owed.deadline:
                if subject.overdue_since is None or subject.overdue_since <= disturbed_at:
                    subject.overdue_since = true_now
                elif true_now - subject.overdue_since > laws.OVERDUE_MAX:
                    incident = max(subject.incidents.values(), default=None)
                    yield from laws.is_reported(subject.slug, owed, incident, self._rule)
