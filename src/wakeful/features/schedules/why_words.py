"""One sentence of cause, from everything that is known. Pure: a case goes in, words come out.

Theory of operation: the sentence is built from the subject outwards. First, if nothing ticks and something is still to
happen, that (nothing else matters then). Then what became of the instant and why. Then, where it helps, what daylight
saving, stagger or an outage had to do with it, and what comes next. Times are shown on the schedule's own wall clock,
the first with its day and zone, later ones as short as they can be.
"""

from collections.abc import Iterable
from typing import Final

from wakeful.core.run.runs import ERRORS, Run
from wakeful.core.time.instants import Instant
from wakeful.core.time.timing import AfterReset, Manual
from wakeful.core.time.timing_words import describe
from wakeful.features.schedules.compiled import Broken
from wakeful.features.schedules.why_facts import WhyCase
from wakeful.features.schedules.why_rows import in_short, missed, named_run, ran, running, skipped, stuck, waiting
from wakeful.features.schedules.why_times import TimeFormat, shorten


def cause_of(case: WhyCase) -> str:
    """The kind of answer, in one word for programs."""
    row = case.row
    if row is not None and not (case.asked_at is None and _is_halt_the_answer(case)):
        return {"running": "running", "waiting": "waiting", "skipped": "skipped", "missed": "missed"}.get(
            row.outcome, "stuck" if row.stuck else "ran"
        )
    if case.is_removed and (case.asked_at is None or case.subject_at >= (case.schedule.deleted_at or 0)):
        return "removed"
    if case.asked_at is not None and case.subject_at < case.schedule.created_at:
        return "beforeItExisted"
    if isinstance(case.compiled, Broken) or case.cadence.state == "invalid":
        return "invalid"
    if case.instant is None and case.asked_at is not None:
        return "notAnInstant"
    if not case.is_undecided and case.asked_at is not None:
        return "pruned"
    if case.cadence.state != "active" and not _is_after_pause(case):
        return case.cadence.state
    if case.asked_at is None:
        return "idle"
    return "planned" if case.subject_at > case.now else "due"


def sentence_of(case: WhyCase) -> str:
    """The whole sentence."""
    dial = TimeFormat(case.zone, case.subject_at)
    cause = cause_of(case)
    parts = [_nothing_ticks(case, dial), _SAID[cause](case, dial)]
    if case.saving is not None and cause != "notAnInstant":
        parts.append(case.saving.sentence)
    if case.asked_at is None and _is_failed_for_good(case):
        parts.append(f"no time of it is left, so it is not tried again; to try it now: wakeful run {case.slug}")
    elif case.asked_at is None and cause not in ("removed", "done"):
        parts.append(_what_is_next(case, dial))
    return _sentence(case, parts)


def _sentence(case: WhyCase, parts: Iterable[str | None]) -> str:
    text = "; ".join(part for part in parts if part)
    return f"{text}." if text.startswith(case.slug) else f"{text[0].upper()}{text[1:]}."


def _is_halt_the_answer(case: WhyCase) -> bool:
    """Asked how it stands: a halt says more than the newest row, an open run says more than the halt."""
    is_open = case.cadence.open_run_id is not None
    if _is_failed_for_good(case):
        return False
    is_halted = case.cadence.state != "active" or isinstance(case.compiled, Broken) or case.is_removed
    return is_halted and not is_open


def _is_failed_for_good(case: WhyCase) -> bool:
    """Whether it is over, and its last run did not succeed: what went wrong is the answer, not that nothing is left."""
    is_over = case.cadence.state == "done" and not case.is_removed and not isinstance(case.compiled, Broken)
    return is_over and case.row is not None and case.row.outcome in ERRORS


def _is_after_pause(case: WhyCase) -> bool:
    """Whether a pause that ends by itself will be over by then."""
    cadence = case.cadence
    return cadence.state == "paused" and cadence.resume_at is not None and case.subject_at > cadence.resume_at


# --- nothing ticks ---------------------------------------------------------------------------------------------------


def _nothing_ticks(case: WhyCase, dial: TimeFormat) -> str | None:
    if case.clockwork.live or case.is_removed:
        return None
    is_open = case.row is not None and case.row.outcome in ("running", "waiting")
    if not (is_open or case.is_undecided or case.asked_at is None):
        return None
    last = case.clockwork.last
    since = (
        "no process has ever held the clock" if last is None else f"last heard of at {dial.brief(last.last_tick_at)}"
    )
    return f"no process is ticking ({since}), so nothing will ring until one is started"


# --- what has a row --------------------------------------------------------------------------------------------------


# --- what has no row -------------------------------------------------------------------------------------------------


def _before_it_existed(case: WhyCase, dial: TimeFormat) -> str:
    created = dial.brief(case.schedule.created_at)
    return f"{case.slug} did not exist at {dial.full(case.subject_at)}: it was created at {created}"


def _removed(case: WhyCase, dial: TimeFormat) -> str:
    removed = dial.brief(case.schedule.deleted_at or 0)
    if case.asked_at is None:
        return f"{case.slug} was removed at {removed}, so nothing of it happens any more{_last_words(case, dial)}"
    return f"{case.slug} did not run at {dial.full(case.subject_at)} because it had been removed at {removed}"


def _invalid(case: WhyCase, dial: TimeFormat) -> str:
    reason = case.compiled.reason if isinstance(case.compiled, Broken) else case.cadence.state_reason
    return f"{case.slug} cannot run because its definition cannot be read: {reason}; write it anew"


def _halted(case: WhyCase, dial: TimeFormat) -> str:
    cadence = case.cadence
    if case.asked_at is None:
        return f"{case.slug} does not run because it {_halt(case, dial)}{_last_words(case, dial)}"
    if case.subject_at <= case.now:
        return f"{case.slug} did not run at {dial.full(case.subject_at)} because it {_halt(case, dial)}"
    would = "" if cadence.state == "done" else ", unless it is resumed before"
    return f"{case.slug} will not run at {dial.full(case.subject_at)} because it {_halt(case, dial)}{would}"


def _halt(case: WhyCase, dial: TimeFormat) -> str:
    cadence = case.cadence
    since = dial.brief(cadence.state_at)
    match cadence.state:
        case "paused":
            until = "" if cadence.resume_at is None else f" until {dial.brief(cadence.resume_at)}"
            return f"is paused since {since}{until}"
        case "disabled":
            return f"is disabled since {since}: {cadence.state_reason}"
        case _:
            return f"is done since {since}: no instant of it is left"


def _not_an_instant(case: WhyCase, dial: TimeFormat) -> str:
    tense = "had" if case.subject_at <= case.now else "has"
    parts = [
        f"{case.slug} {tense} no planned time at {dial.full(case.subject_at)}, because {_why_no_instant(case)}",
        _meanwhile(case, dial),
        _before(case, dial),
        _after(case, dial),
    ]
    return "; ".join(part for part in parts if part)


def _meanwhile(case: WhyCase, dial: TimeFormat) -> str | None:
    row = case.meanwhile
    if row is None:
        return None
    return f"at that moment run {row.run_id}, planned for {dial.brief(row.planned_at)}, was under way"


def _why_no_instant(case: WhyCase) -> str:
    if case.saving is not None:
        return case.saving.sentence
    match case.timing:
        case None:
            return "its timing was another one then"
        case Manual():
            return "it runs only when asked"
        case AfterReset(slot=slot, reset_at=None):
            return f"no reset of the quota slot {slot!r} is known yet"
        case timing:
            return f"it runs {describe(timing)}"


def _before(case: WhyCase, dial: TimeFormat) -> str | None:
    before = case.before
    if before is None or (before.row is None and before.at <= case.schedule.created_at):
        return None
    if before.row is None:
        return f"the one before is {dial.brief(before.at)}"
    return f"the one before, {dial.brief(before.at)}, {in_short(before.row)}"


def _after(case: WhyCase, dial: TimeFormat) -> str | None:
    after = case.after
    if after is None:
        return None if case.timing is None else "there is none after it"
    return f"the next {'was' if after.at <= case.now else 'is'} {dial.brief(after.at)}" + (
        "" if after.row is None else f", which {in_short(after.row)}"
    )


def _pruned(case: WhyCase, dial: TimeFormat) -> str:
    subject = f"{case.slug} at {dial.full(case.subject_at)}"
    if case.oldest_row_at is None or case.subject_at < case.oldest_row_at:
        return f"what became of {subject} is not in the ledger any more: it keeps {case.circumstances.ledger_days} days"
    return f"{subject} was not planned then: its timing was changed at {dial.brief(case.schedule.updated_at)}"


def _due(case: WhyCase, dial: TimeFormat) -> str:
    """Its time has come, and it has not rung."""
    subject = f"{case.slug} at {dial.full(case.subject_at)}"
    cadence = case.cadence
    if cadence.backoff_until is not None and cadence.backoff_until > case.now:
        return f"{subject} is held off until {dial.brief(cadence.backoff_until)}, {_after_errors(case)}"
    if case.due_at > case.now:
        return f"{subject} is due at {dial.brief(case.due_at)} by its stagger, and has not rung yet"
    if case.blocker is not None and cadence.catch_up_until is not None and case.subject_at <= cadence.catch_up_until:
        now = named_run(case.blocker, case)
        return f"{subject} is still to be caught up: missed instants run one by one, and now {now} is at it"
    if case.clockwork.is_full:
        return f"{subject} is due and waits for room: as many runs are under way as may be at once"
    if not case.clockwork.live:
        return f"{subject} is due and has not rung"
    return f"{subject} is due and rings with the next look of the clock"


def _after_errors(case: WhyCase) -> str:
    errors = case.cadence.consecutive_errors
    count = "an error" if errors == 1 else f"{errors} errors in a row"
    return f"after {count}, the last: {shorten(case.cadence.last_error)}"


def _planned(case: WhyCase, dial: TimeFormat) -> str:
    """It is still to come."""
    cadence = case.cadence
    at = dial.full(case.subject_at)
    unwanted = _unwanted(case)
    if unwanted is not None:
        return f"{case.slug} will not run at {at} because {unwanted}"
    if case.is_outside_active_hours:
        return f"{case.slug} will be skipped at {at} because it lies outside the active hours"
    if cadence.backoff_until is not None and cadence.backoff_until > case.due_at:
        until = dial.brief(cadence.backoff_until)
        return f"{case.slug} at {at} is held off until {until}, {_after_errors(case)}"
    staggered = "" if case.offset == 0 else f", at {dial.brief(case.due_at)} by its stagger"
    is_paused = cadence.state == "paused" and cadence.resume_at is not None
    paused = f", after its pause ends at {dial.brief(cadence.resume_at or 0)}" if is_paused else ""
    return f"{case.slug} will run at {at}{staggered}{paused}{_unless(case)}"


def _unwanted(case: WhyCase) -> str | None:
    """Why no instant runs as things stand, whatever else is the case."""
    if case.circumstances.terms.is_standby:
        return "schedules are switched off (standby)"
    too_often = None if isinstance(case.compiled, Broken) else case.circumstances.terms.too_often(case.compiled)
    return None if too_often is None else f"it asks its agent too often: {too_often}"


def _unless(case: WhyCase) -> str:
    if case.blocker is None:
        return ""
    queues = not isinstance(case.compiled, Broken) and case.compiled.rules.overlap == "queue"
    instead = "then it waits in the queue" if queues else "then it is skipped"
    return f", unless {named_run(case.blocker, case)} is still under way: {instead}"


def _idle(case: WhyCase, dial: TimeFormat) -> str:
    return f"{case.slug} has not run yet"


def _what_is_next(case: WhyCase, dial: TimeFormat) -> str | None:
    if case.cadence.state == "paused" and case.cadence.resume_at is not None and case.after is not None:
        return None
    if case.cadence.state != "active" or isinstance(case.compiled, Broken):
        return None
    following = case.cadence.next_at
    if following is None:
        return f"nothing is planned: {_why_no_instant(case)}"
    unwanted = _unwanted(case)
    if unwanted is not None:
        return f"it will not run at {dial.brief(following)} because {unwanted}"
    due = case.next_due_at
    if due is None:
        return f"the next one, {dial.brief(following)}, follows when that run has ended"
    if _waits_beyond(case.row, due):
        queues = case.compiled.rules.overlap == "queue"
        return f"the next one, {dial.brief(following)}, " + ("queues behind it" if queues else "falls on it: skipped")
    if case.cadence.backoff_until is not None and due == case.cadence.backoff_until:
        return f"the next run is held off until {dial.brief(due)}, {_after_errors(case)}"
    staggered = "" if due == following else f", at {dial.brief(due)} by its stagger"
    return f"it runs next at {dial.brief(following)}{staggered}"


def _waits_beyond(run: Run | None, at: Instant) -> bool:
    """Whether the run is still open then, because it waits for later."""
    return run is not None and run.outcome == "waiting" and run.next_attempt_at is not None and run.next_attempt_at > at


def _last_words(case: WhyCase, dial: TimeFormat) -> str:
    row = case.row
    return "" if row is None else f"; its last row, {dial.brief(row.planned_at)}, {in_short(row)}"


# --- small words -----------------------------------------------------------------------------------------------------


_SAID: Final = {
    "ran": ran,
    "running": running,
    "stuck": stuck,
    "waiting": waiting,
    "skipped": skipped,
    "missed": missed,
    "beforeItExisted": _before_it_existed,
    "removed": _removed,
    "invalid": _invalid,
    "paused": _halted,
    "disabled": _halted,
    "done": _halted,
    "notAnInstant": _not_an_instant,
    "pruned": _pruned,
    "due": _due,
    "planned": _planned,
    "idle": _idle,
}
