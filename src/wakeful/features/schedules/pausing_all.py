"""`pause --all` and `resume --all`: all schedules in one commit.

Schedules paused this way carry the reason `WITH_ALL`, so that resuming all leaves alone those paused or disabled
separately, before or after."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from wakeful.core.returned import returned
from wakeful.core.run.results import Dropped
from wakeful.core.schedule.cadence import Cadence
from wakeful.core.time.instants import Instant
from wakeful.engine.settling import conclude
from wakeful.features.schedules.alarms import alarm_of
from wakeful.features.schedules.commands import resume_schedule
from wakeful.features.schedules.compiled import KIND, Compiled, read_stored
from wakeful.features.schedules.copies import open_ids
from wakeful.ports import events
from wakeful.ports.event import EventKind
from wakeful.ports.event_data import Counted
from wakeful.ports.handlers import EngineHooks
from wakeful.ports.store import Report, Schedule, Tx

WITH_ALL: Final = "with all schedules"
"""The reason of a pause by `pause --all`."""

_PAGE: Final = 500


@dataclass(frozen=True, slots=True)
class PausedTogether:
    """The schedules that were paused or resumed."""

    slugs: list[str]

    @property
    def count(self) -> int:
        return len(self.slugs)


PAUSED_TOGETHER: Final = returned(PausedTogether, properties={"count": int})


def pause_all(tx: Tx, *, hooks: EngineHooks, now: Instant, until: Instant | None = None, by: str = "") -> list[str]:
    """Pause every active schedule; returns their slugs. Runs in progress finish, waiting ones are given up."""
    paused: list[str] = []
    for page in _pages(tx.schedules.page):
        cadences = tx.cadences.lock([schedule.schedule_id for schedule in page])
        active = [schedule for schedule in page if cadences[schedule.schedule_id].state == "active"]
        _drop_waiting(tx, [cadences[schedule.schedule_id] for schedule in active], hooks, now)
        cadences = tx.cadences.lock([schedule.schedule_id for schedule in active])
        halted: list[tuple[Schedule, Compiled, Cadence]] = []
        for schedule in active:
            compiled = read_stored(schedule.schedule_id, schedule.version, schedule.definition)
            cadence = cadences[schedule.schedule_id]
            if isinstance(compiled, Compiled) and cadence.state == "active":
                moved = cadence._replace(state="paused", state_reason=WITH_ALL, state_at=now, resume_at=until)
                halted.append((schedule, compiled, moved))
        rows = sorted((cadence for _, _, cadence in halted), key=lambda cadence: cadence.schedule_id)
        tx.cadences.save_many(rows, turned=rows)
        tx.alarms.set_many(sorted((alarm_of(row, known) for _, known, row in halted), key=lambda alarm: alarm.ref))
        paused += [schedule.slug for schedule, _, _ in halted]
    _tell(tx, events.SCHEDULE_PAUSED_ALL, f"{len(paused)} schedules paused", len(paused), by)
    return paused


def resume_all(tx: Tx, *, now: Instant, by: str = "") -> list[str]:
    """Resume what `pause_all` paused; returns the slugs."""
    resumed: list[str] = []
    for page in list(_pages(tx.schedules.amiss)):
        cadences = tx.cadences.lock([schedule.schedule_id for schedule in page])
        for schedule in page:
            cadence = cadences[schedule.schedule_id]
            if is_paused_with_all(cadence):
                resume_schedule(tx, schedule.slug, now=now)
                resumed.append(schedule.slug)
    _tell(tx, events.SCHEDULE_RESUMED_ALL, f"{len(resumed)} schedules resumed", len(resumed), by)
    return resumed


def is_paused_with_all(cadence: Cadence) -> bool:
    """Whether `pause --all` paused it, and nothing else happened to it since."""
    return cadence.state == "paused" and cadence.state_reason == WITH_ALL


def _pages(read: Callable[..., list[Schedule]]) -> Iterator[list[Schedule]]:
    after: str | None = None
    while page := read(after=after, limit=_PAGE):
        after = page[-1].slug
        yield page


def _drop_waiting(tx: Tx, cadences: list[Cadence], hooks: EngineHooks, now: Instant) -> None:
    """Give up the waiting runs, the queued ones first: otherwise they would be promoted only to be given up."""
    queued = {cadence.queued_run_id for cadence in cadences}
    waiting = [
        run for run in tx.runs.lock([n for c in cadences for n in open_ids(c)]).values() if run.outcome == "waiting"
    ]
    for run in sorted(waiting, key=lambda run: (run.run_id not in queued, run.run_id)):
        locked = tx.cadences.lock([run.schedule_id])
        conclude(tx, hooks, hooks.keepers[KIND], locked, [(run, Dropped("paused"))], now=now)


def _tell(tx: Tx, event: EventKind[Counted], text: str, count: int, by: str) -> None:
    said = f"{text} by {by}" if by else text
    tx.report(Report(event, Counted(count, by), said))
