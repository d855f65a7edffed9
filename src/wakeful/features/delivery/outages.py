"""The outage report: sent once after a period in which no node ticked, if an instant fell into it.

An outage is recorded as a closed incident from the last tick before it to the first after it. It is reported once
everything that was due in it has been decided, so that the report can say how many instants were missed and how many
were caught up. Intended outages (`down`) and expected ones (a suspended machine) are reported at most once a day.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from wakeful.core.delivery.alert_rules import AlertTerms
from wakeful.core.delivery.incidents import OUTAGE, Incident, Step, reported
from wakeful.core.time.instants import DAY, MINUTE, SECOND, Duration, Instant, format_duration, format_instant
from wakeful.engine.incident_rows import Incidents
from wakeful.features.delivery.incident_watch import put
from wakeful.features.delivery.incidents import IncidentReporter
from wakeful.ports import events
from wakeful.ports.event_data import IncidentOpened
from wakeful.ports.handlers import Note, TickGap
from wakeful.ports.ledger import GapSummary
from wakeful.ports.meta import Meta
from wakeful.ports.names import names_of
from wakeful.ports.outbox import ALARM_DELIVERY, ALARM_INCIDENT, ALARM_PING
from wakeful.ports.store import Report, Tx

LOOK_AFTER: Final[Duration] = 5 * SECOND
DECIDED_WITHIN: Final[Duration] = 2 * MINUTE
"""How long the report waits for overdue instants to be decided; then it says what is known."""
NAMED_MAX: Final = 5
EXPECTED_TOLD_AT: Final = "expected_outage_told_at"
_EXPECTED: Final = frozenset({"down", "suspended"})
_WORDS: Final = {
    "outage": "Wakeful was not running",
    "down": "Wakeful was stopped (wakeful down)",
    "suspended": "The machine was suspended",
}


def note_outage(tx: Tx, silence: TickGap, *, terms: Callable[[], AlertTerms]) -> None:
    """Record an outage that is long enough to be reported. If several nodes notice it, one records it."""
    if silence.ended_at - silence.began_at < terms().outage:
        return
    look_at = silence.ended_at + LOOK_AFTER
    row = Incident(
        0,
        f"{OUTAGE}:{silence.cause}:{silence.began_at}",
        _WORDS[silence.cause],
        silence.began_at,
        silence.ended_at,
        1,
        None,
        "watched",
        run_id=tx.runs.last_id(),
        look_at=look_at,
    )
    put(tx, row, Step(row))


def look_at_outage(tx: Tx, row: Incident, now: Instant, *, reporter: IncidentReporter) -> Note:
    """What to write about an outage, based on the ledger; the transaction only reads."""
    due_at = tx.alarms.next_due_at(besides=[ALARM_DELIVERY, ALARM_INCIDENT, ALARM_PING])
    is_decided = due_at is None or due_at > row.last_at
    if not is_decided and now - row.last_at < DECIDED_WITHIN:
        return partial(_look_again, row=row, at=now + LOOK_AFTER)
    fallen = tx.runs.fallen(after_id=row.run_id or 0, since=row.opened_at, until=row.last_at)
    if not fallen:
        return partial(_forget, row=row)
    names = names_of(tx, {gap.schedule_id for gap in fallen})
    text = _text(row, fallen, names)
    return partial(_report, row=row, text=text, now=now, reporter=reporter)


def _text(row: Incident, fallen: Sequence[GapSummary], names: dict[int, str]) -> str:
    missed, caught_up = sum(gap.missed for gap in fallen), sum(gap.caught_up for gap in fallen)
    length = format_duration(max((row.last_at - row.opened_at) // MINUTE * MINUTE, MINUTE))
    most = sorted(fallen, key=lambda gap: -(gap.missed + gap.caught_up))
    slugs = [names[gap.schedule_id] for gap in most if gap.schedule_id in names]
    named = ", ".join(slugs[:NAMED_MAX]) + (f" and {len(slugs) - NAMED_MAX} more" if len(slugs) > NAMED_MAX else "")
    return (
        f"{row.text} from {format_instant(row.opened_at)} to {format_instant(row.last_at)} ({length}). "
        f"{_instants(missed)} missed, {_instants(caught_up)} caught up: {named}. "
        f"`wakeful runs` lists them; `wakeful why SLUG` explains one."
    )


def _instants(count: int) -> str:
    return "1 run was" if count == 1 else f"{count} runs were"


def _held(tx: Tx, row: Incident) -> Incident | None:
    return tx[Incidents].lock_open([row.name]).get(row.name)


def _look_again(tx: Tx, row: Incident, at: Instant) -> None:
    held = _held(tx, row)
    if held is not None:
        put(tx, held, Step(held._replace(look_at=at)))


def _forget(tx: Tx, row: Incident) -> None:
    held = _held(tx, row)
    if held is not None:
        put(tx, held, Step(None))


def _report(tx: Tx, row: Incident, text: str, now: Instant, reporter: IncidentReporter) -> None:
    held = _held(tx, row)
    if held is None:
        return
    cause = row.name.split(":")[1]
    if cause in _EXPECTED and not _is_news(tx, now):
        muted = held._replace(stage="muted", text=text, closed_at=held.last_at, look_at=None)
        put(tx, held, Step(muted))
        return
    if cause in _EXPECTED:
        tx[Meta].set(EXPECTED_TOLD_AT, str(now))
    put(tx, held, Step(reported(held, text, now)._replace(closed_at=held.last_at)))
    tx.report(Report(events.INCIDENT_OPENED, IncidentOpened(held.name, text), level="warn"))
    reporter.tell(tx, text, now=now, purpose="alert", slug=None)


def _is_news(tx: Tx, now: Instant) -> bool:
    told_at = tx[Meta].value(EXPECTED_TOLD_AT)
    return told_at is None or not 0 <= now - int(told_at) < DAY
