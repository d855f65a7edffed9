"""One sentence of cause, from everything that is known. Pure: a case goes in, words come out.

Theory of operation: the sentence is built from the subject outwards. First, if nothing ticks and something is still to
happen, that (nothing else matters then). Then what became of the instant and why. Then, where it helps, what daylight
saving, stagger or an outage had to do with it, and what comes next. Times are shown on the schedule's own wall clock,
the first with its day and zone, later ones as short as they can be.
"""

from collections.abc import Iterable
from typing import Final

from wakeful.core.policies import GRACE
from wakeful.core.runs import Run
from wakeful.core.timing import AfterReset, Manual
from wakeful.core.timing_words import describe
from wakeful.features.schedules.checks import MINIMUM_INTERVAL
from wakeful.features.schedules.compiled import Broken
from wakeful.features.schedules.why_dial import Dial, length, shorten
from wakeful.features.schedules.why_reading import Case, Named, Neighbour


def cause_of(case: Case) -> str:
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


def sentence_of(case: Case) -> str:
    """The whole sentence."""
    dial = Dial(case.zone, case.subject_at)
    cause = cause_of(case)
    parts = [_nothing_ticks(case, dial), _SAID[cause](case, dial)]
    if case.saving is not None and cause != "notAnInstant":
        parts.append(case.saving.sentence)
    if case.asked_at is None and cause not in ("removed", "done"):
        parts.append(_what_is_next(case, dial))
    return _sentence(case, parts)


def _sentence(case: Case, parts: Iterable[str | None]) -> str:
    text = "; ".join(part for part in parts if part)
    return f"{text}." if text.startswith(case.slug) else f"{text[0].upper()}{text[1:]}."


def _is_halt_the_answer(case: Case) -> bool:
    """Asked how it stands: a halt says more than the newest row, an open run says more than the halt."""
    is_open = case.cadence.open_run_id is not None
    is_halted = case.cadence.state != "active" or isinstance(case.compiled, Broken) or case.is_removed
    return is_halted and not is_open


def _is_after_pause(case: Case) -> bool:
    """Whether a pause that ends by itself will be over by then."""
    cadence = case.cadence
    return cadence.state == "paused" and cadence.resume_at is not None and case.subject_at > cadence.resume_at


# --- nothing ticks ---------------------------------------------------------------------------------------------------


def _nothing_ticks(case: Case, dial: Dial) -> str | None:
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


def _subject(case: Case, dial: Dial) -> str:
    row = case.row
    if row is not None and row.trigger == "manual":
        return f"the run of {case.slug} that a person asked for at {dial.full(row.planned_at)}"
    return f"the run of {case.slug} planned for {dial.full(case.subject_at)}"


def _ran(case: Case, dial: Dial) -> str:
    return f"{_subject(case, dial)} {_how_it_ended(_row(case), dial)}{_lateness(case, dial)}"


def _how_it_ended(row: Run, dial: Dial) -> str:
    took = "" if row.ended_at is None or row.started_at is None else length(row.ended_at - row.started_at)
    tries = "" if row.attempt <= 1 else f" on attempt {row.attempt}"
    error = _error(row)
    match row.outcome:
        case "succeeded":
            proven = "" if row.rung in ("finished", None) else f", proven as far as {row.rung}"
            began = "" if row.started_at is None else f" (started {dial.brief(row.started_at)}, took {took})"
            return f"succeeded{tries}{began}{proven}"
        case "failed":
            why = _FAILED_WHY.get(row.reason or "", "")
            after = f" after {row.attempt} attempts" if row.attempt > 1 else ""
            return f"failed{after}{why}{_got(row)}: {error}"
        case "timedOut":
            return f"timed out after {took}{tries}{_got(row)}: {error}"
        case "unconfirmed":
            return f"is unconfirmed{_got(row)}: {error}"
        case _:
            return f"ended in a way nobody knows{tries}{_got(row)}: {error}"


_FAILED_WHY: Final = {
    "busy": ", because its target stayed busy",
    "throttled": ", because its target asked us to come back later",
    "crash": ", because the node that ran it died",
    "shutdown": ", because it was shut down",
    "paused": ", and was not tried again because the schedule was paused",
    "disabled": ", and was not tried again because the schedule was disabled",
    "removed": ", and was not tried again because the schedule was removed",
    "invalid": ", because its definition cannot be read any more",
}


def _got(row: Run) -> str:
    return "" if row.rung is None else f" (it got as far as {row.rung})"


def _lateness(case: Case, dial: Dial) -> str:
    row = _row(case)
    if row.started_at is None or row.trigger == "manual":
        return ""
    late = row.started_at - row.due_at
    staggered = "" if row.due_at == row.planned_at else f", due at {dial.brief(row.due_at)}{_due_why(case)}"
    if row.trigger == "catchUp":
        return f"{staggered}; it was caught up {length(late)} late, after nothing had rung at its time"
    return f"{staggered}, {length(late)} late" if late > GRACE else staggered


def _due_why(case: Case) -> str:
    row = _row(case)
    return " by its stagger" if row.due_at - row.planned_at == case.offset else " because of errors before it"


def _running(case: Case, dial: Dial) -> str:
    row = _row(case)
    since = "" if row.claimed_at is None else f" since {dial.brief(row.claimed_at)}"
    until = "" if row.deadline_at is None else f", and has until {dial.brief(row.deadline_at)}"
    tries = "" if row.attempt <= 1 else f" on attempt {row.attempt}"
    return (
        f"{_subject(case, dial)} is running{since}{tries}, has got as far as {row.rung}{until}{_lateness(case, dial)}"
    )


def _stuck(case: Case, dial: Dial) -> str:
    row = _row(case)
    keeps = "" if row.lane is None else f", the lane {row.lane!r}"
    return (
        f"{_subject(case, dial)} is stuck: {_error(row)}; until it is seen to end it keeps its schedule{keeps} and its "
        "share of capacity"
    )


def _waiting(case: Case, dial: Dial) -> str:
    return f"{_subject(case, dial)} is waiting {_for_what(case, _row(case), dial)}"


def _for_what(case: Case, row: Run, dial: Dial) -> str:
    until = "" if row.next_attempt_at is None else dial.brief(row.next_attempt_at)
    match row.reason:
        case "retry":
            return f"to be tried again at {until}, because attempt {row.attempt} failed: {_error(row)}"
        case "busy":
            return f"until {until}, because its target is busy: {_error(row)}"
        case "throttled":
            return f"until {until}, because its target asked us to come back later: {_error(row)}"
        case "crash":
            return f"to be tried again at {until}, because the node that ran it died"
        case "shutdown":
            return f"to be tried again at {until}, because it was shut down under way"
        case "quota":
            return f"until {until}, because {_used_up(case)}"
        case "queued":
            behind = case.blocker
            return "in the queue" if behind is None else f"in the queue behind {_run(behind, case)}"
        case "lane" if case.is_parked:
            held = "" if case.holder is None else f", which {_run(case.holder, case)} holds"
            return f"for the lane {row.lane!r}{held}"
        case None | "lane":
            if case.clockwork.is_full:
                return "for room: as many runs are under way as may be at once"
            return "for its turn, which is now"
        case reason:
            return f"until {until}, because of this gate: {reason}"


def _used_up(case: Case) -> str:
    slot = None if isinstance(case.compiled, Broken) else case.compiled.definition.slot
    return "its quota is used up" if slot is None else f"the quota of slot {slot!r} is used up until its reset"


def _run(named: Named, case: Case) -> str:
    of = "" if named.slug == case.slug else f" of {named.slug}"
    return f"run {named.run.run_id}{of}"


def _skipped(case: Case, dial: Dial) -> str:
    row = _row(case)
    return f"{_gap_subject(case, dial, 'was skipped')} because {_why_skipped(case, row, dial)}"


def _why_skipped(case: Case, row: Run, dial: Dial) -> str:
    match row.reason:
        case "paused":
            return "the schedule was paused"
        case "disabled":
            return "the schedule was disabled"
        case "invalid":
            return "its definition could not be read"
        case "removed":
            return "the schedule was removed"
        case "edited":
            return "its timing was changed before it had rung"
        case "backoff":
            return f"the runs before it had failed, and the next was held off{_last_failure(case.before)}"
        case "blocked" if case.blocker is not None:
            ended = case.blocker.run.ended_at
            until = "is still at it" if ended is None else f"was at it until {dial.brief(ended)}"
            return f"{_run(case.blocker, case)} {until}, and a schedule runs once at a time (overlap: skip)"
        case "blocked":
            return "an earlier run was still open, and a schedule runs once at a time (overlap: skip)"
        case "coalesced":
            return "a later instant was due in the same moment, and that one ran"
        case "standby":
            return "schedules were switched off (standby)"
        case "quota":
            return _used_up(case)
        case "outside active hours":
            return "it lies outside the active hours"
        case str(reason) if reason.startswith(MINIMUM_INTERVAL):
            return f"it asks its agent too often: {reason}"
        case reason:
            return f"a gate decided so: {reason}"


def _last_failure(before: Neighbour | None) -> str:
    row = None if before is None else before.row
    return "" if row is None or row.error is None else f": {_error(row)}"


def _missed(case: Case, dial: Dial) -> str:
    row = _row(case)
    subject = _gap_subject(case, dial, "was missed")
    if row.reason == "clock":
        return f"{subject} because the clock jumped over it, or the machine slept{_caught_up(case, dial)}"
    if row.reason == "restored":
        return f"{subject} because the store was put back from a copy (restored), and nobody knows what ran since then"
    down, back = case.clockwork.down_from, case.clockwork.down_until
    when = "" if down is None or back is None else f" between {dial.brief(down)} and {dial.brief(back)}"
    return f"{subject} because no process was ticking{when}{_caught_up(case, dial)}"


def _caught_up(case: Case, dial: Dial) -> str:
    """What of an outage ran after all."""
    row = None if case.after is None else case.after.row
    if row is None or row.trigger != "catchUp" or row.started_at is None:
        return ""
    return f", and {dial.brief(row.planned_at)} was caught up for all of them at {dial.brief(row.started_at)}"


def _gap_subject(case: Case, dial: Dial, became: str) -> str:
    row = _row(case)
    subject = f"{case.slug} at {dial.full(case.subject_at)} {became}"
    if row.instants == 1:
        return subject
    until = dial.brief(row.planned_until or row.planned_at)
    others = "another one" if row.instants == 2 else f"{row.instants - 1} others"
    return f"{subject}, with {others} from {dial.brief(row.planned_at)} to {until},"


# --- what has no row -------------------------------------------------------------------------------------------------


def _before_it_existed(case: Case, dial: Dial) -> str:
    created = dial.brief(case.schedule.created_at)
    return f"{case.slug} did not exist at {dial.full(case.subject_at)}: it was created at {created}"


def _removed(case: Case, dial: Dial) -> str:
    removed = dial.brief(case.schedule.deleted_at or 0)
    if case.asked_at is None:
        return f"{case.slug} was removed at {removed}, so nothing of it happens any more{_last_words(case, dial)}"
    return f"{case.slug} did not run at {dial.full(case.subject_at)} because it had been removed at {removed}"


def _invalid(case: Case, dial: Dial) -> str:
    reason = case.compiled.reason if isinstance(case.compiled, Broken) else case.cadence.state_reason
    return f"{case.slug} cannot run because its definition cannot be read: {reason}; write it anew"


def _halted(case: Case, dial: Dial) -> str:
    cadence = case.cadence
    if case.asked_at is None:
        return f"{case.slug} does not run because it {_halt(case, dial)}{_last_words(case, dial)}"
    if case.subject_at <= case.now:
        return f"{case.slug} did not run at {dial.full(case.subject_at)} because it {_halt(case, dial)}"
    would = "" if cadence.state == "done" else ", unless it is resumed before"
    return f"{case.slug} will not run at {dial.full(case.subject_at)} because it {_halt(case, dial)}{would}"


def _halt(case: Case, dial: Dial) -> str:
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


def _not_an_instant(case: Case, dial: Dial) -> str:
    tense = "had" if case.subject_at <= case.now else "has"
    parts = [
        f"{case.slug} {tense} no planned time at {dial.full(case.subject_at)}, because {_why_no_instant(case)}",
        _meanwhile(case, dial),
        _before(case, dial),
        _after(case, dial),
    ]
    return "; ".join(part for part in parts if part)


def _meanwhile(case: Case, dial: Dial) -> str | None:
    row = case.meanwhile
    if row is None:
        return None
    return f"at that moment run {row.run_id}, planned for {dial.brief(row.planned_at)}, was under way"


def _why_no_instant(case: Case) -> str:
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


def _before(case: Case, dial: Dial) -> str | None:
    before = case.before
    if before is None or (before.row is None and before.at <= case.schedule.created_at):
        return None
    if before.row is None:
        return f"the one before is {dial.brief(before.at)}"
    return f"the one before, {dial.brief(before.at)}, {_in_short(before.row)}"


def _after(case: Case, dial: Dial) -> str | None:
    after = case.after
    if after is None:
        return None if case.timing is None else "there is none after it"
    return f"the next {'was' if after.at <= case.now else 'is'} {dial.brief(after.at)}" + (
        "" if after.row is None else f", which {_in_short(after.row)}"
    )


def _in_short(row: Run) -> str:
    reason = "" if row.reason is None else f" ({row.reason})"
    match row.outcome:
        case "running":
            return "is running"
        case "waiting":
            return f"is waiting{reason}"
        case "skipped" | "missed":
            return f"was {row.outcome}{reason}"
        case "timedOut":
            return "timed out"
        case "unconfirmed":
            return "is unconfirmed"
        case "unknown":
            return "ended in a way nobody knows"
        case outcome:
            return str(outcome)


def _pruned(case: Case, dial: Dial) -> str:
    subject = f"{case.slug} at {dial.full(case.subject_at)}"
    if case.oldest_row_at is None or case.subject_at < case.oldest_row_at:
        return f"what became of {subject} is not in the ledger any more: it keeps {case.circumstances.ledger_days} days"
    return f"{subject} was not planned then: its timing was changed at {dial.brief(case.schedule.updated_at)}"


def _due(case: Case, dial: Dial) -> str:
    """Its time has come, and it has not rung."""
    subject = f"{case.slug} at {dial.full(case.subject_at)}"
    cadence = case.cadence
    if cadence.backoff_until is not None and cadence.backoff_until > case.now:
        return f"{subject} is held off until {dial.brief(cadence.backoff_until)}, {_after_errors(case)}"
    if case.due_at > case.now:
        return f"{subject} is due at {dial.brief(case.due_at)} by its stagger, and has not rung yet"
    if case.blocker is not None and cadence.catch_up_until is not None and case.subject_at <= cadence.catch_up_until:
        now = _run(case.blocker, case)
        return f"{subject} is still to be caught up: missed instants run one by one, and now {now} is at it"
    if case.clockwork.is_full:
        return f"{subject} is due and waits for room: as many runs are under way as may be at once"
    if not case.clockwork.live:
        return f"{subject} is due and has not rung"
    return f"{subject} is due and rings with the next look of the clock"


def _after_errors(case: Case) -> str:
    errors = case.cadence.consecutive_errors
    count = "an error" if errors == 1 else f"{errors} errors in a row"
    return f"after {count}, the last: {shorten(case.cadence.last_error)}"


def _planned(case: Case, dial: Dial) -> str:
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


def _unwanted(case: Case) -> str | None:
    """Why no instant runs as things stand, whatever else is the case."""
    if case.circumstances.terms.is_standby:
        return "schedules are switched off (standby)"
    too_often = None if isinstance(case.compiled, Broken) else case.circumstances.terms.too_often(case.compiled)
    return None if too_often is None else f"it asks its agent too often: {too_often}"


def _unless(case: Case) -> str:
    if case.blocker is None:
        return ""
    queues = not isinstance(case.compiled, Broken) and case.compiled.rules.overlap == "queue"
    instead = "then it waits in the queue" if queues else "then it is skipped"
    return f", unless {_run(case.blocker, case)} is still under way: {instead}"


def _idle(case: Case, dial: Dial) -> str:
    return f"{case.slug} has not run yet"


def _what_is_next(case: Case, dial: Dial) -> str | None:
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
    if case.cadence.backoff_until is not None and due == case.cadence.backoff_until:
        return f"the next run is held off until {dial.brief(due)}, {_after_errors(case)}"
    staggered = "" if due == following else f", at {dial.brief(due)} by its stagger"
    return f"it runs next at {dial.brief(following)}{staggered}"


def _last_words(case: Case, dial: Dial) -> str:
    row = case.row
    return "" if row is None else f"; its last row, {dial.brief(row.planned_at)}, {_in_short(row)}"


# --- small words -----------------------------------------------------------------------------------------------------


def _row(case: Case) -> Run:
    if case.row is None:
        raise AssertionError("this answer is about a row of the ledger")
    return case.row


def _error(row: Run) -> str:
    return shorten(row.error)


_SAID: Final = {
    "ran": _ran,
    "running": _running,
    "stuck": _stuck,
    "waiting": _waiting,
    "skipped": _skipped,
    "missed": _missed,
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
