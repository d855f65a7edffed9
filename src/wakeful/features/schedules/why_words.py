"""Builds the sentence of `why` from the facts. Pure.

Theory of operation: if nothing ticks and something is still to happen, the sentence starts with that. Then it says
what happened at the instant and why; then, where it helps, what daylight saving, stagger or an outage had to do with
it; then what comes next. Times are in the schedule's own zone, and have a date unless it is today's, or that of the day
that was asked about.
"""

from collections.abc import Iterable
from typing import Final

from wakeful.core.money.budgets import BUDGET, UsedUp
from wakeful.core.run.runs import ERRORS, Run
from wakeful.core.time.instants import Instant
from wakeful.core.time.timing import AfterReset, Manual, Once, next_after
from wakeful.core.time.timing_words import describe
from wakeful.features.schedules.compiled import Broken
from wakeful.features.schedules.why_facts import WhyCase
from wakeful.features.schedules.why_rows import in_short, missed, named_run, ran, running, skipped, stuck, waiting
from wakeful.features.schedules.why_times import TimeFormat, shorten


def cause_of(case: WhyCase) -> str:
    """The kind of explanation, as one word for programs."""
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
    times = TimeFormat(case.zone, case.now if case.asked_at is None else case.subject_at)
    cause = cause_of(case)
    parts = [_nothing_ticks(case, times), _SENTENCES[cause](case, times)]
    if case.dst is not None and cause != "notAnInstant":
        parts.append(case.dst.sentence)
    if case.asked_at is None and _is_failed_for_good(case):
        parts.append(f"it has no planned times left, so it will not be retried; to run it now: wakeful run {case.slug}")
    elif case.asked_at is None and cause not in ("removed", "done"):
        parts.append(_what_is_next(case, times))
    return _sentence(case, parts)


def _sentence(case: WhyCase, parts: Iterable[str | None]) -> str:
    text = "; ".join(part for part in parts if part)
    return f"{text}." if text.startswith(case.slug) else f"{text[0].upper()}{text[1:]}."


def _is_halt_the_answer(case: WhyCase) -> bool:
    """Whether a halt explains the current state: it outranks the newest row, and an open run outranks it."""
    is_open = case.cadence.open_run_id is not None
    if _is_failed_for_good(case):
        return False
    is_halted = case.cadence.state != "active" or isinstance(case.compiled, Broken) or case.is_removed
    return is_halted and not is_open


def _is_failed_for_good(case: WhyCase) -> bool:
    """Whether it is done and its last run failed: then the failure is the explanation, not that no times are left."""
    is_over = case.cadence.state == "done" and not case.is_removed and not isinstance(case.compiled, Broken)
    return is_over and case.row is not None and case.row.outcome in ERRORS


def _is_after_pause(case: WhyCase) -> bool:
    """Whether a pause with an end will be over at the instant."""
    cadence = case.cadence
    return cadence.state == "paused" and cadence.resume_at is not None and case.subject_at > cadence.resume_at


# --- nothing ticks ---------------------------------------------------------------------------------------------------


def _nothing_ticks(case: WhyCase, times: TimeFormat) -> str | None:
    if case.nodes.live or case.is_removed:
        return None
    is_open = case.row is not None and case.row.outcome in ("running", "waiting")
    if not (is_open or case.is_undecided or case.asked_at is None):
        return None
    last = case.nodes.last
    since = "no process has ever ticked" if last is None else f"last seen at {times.brief(last.last_tick_at)}"
    return f"no process is ticking ({since}), so nothing will run until one is started"


# --- instants without a row ------------------------------------------------------------------------------------------


def _before_it_existed(case: WhyCase, times: TimeFormat) -> str:
    created = times.brief(case.schedule.created_at)
    return f"{case.slug} did not exist at {times.full(case.subject_at)}: it was created at {created}"


def _removed(case: WhyCase, times: TimeFormat) -> str:
    removed = times.brief(case.schedule.deleted_at or 0)
    if case.asked_at is None:
        return f"{case.slug} was removed at {removed}, so it no longer runs{_last_run(case, times)}"
    return f"{case.slug} did not run at {times.full(case.subject_at)} because it had been removed at {removed}"


def _invalid(case: WhyCase, times: TimeFormat) -> str:
    reason = case.compiled.reason if isinstance(case.compiled, Broken) else case.cadence.state_reason
    return (
        f"{case.slug} cannot run because its definition cannot be read: {reason}; correct it: wakeful edit {case.slug}"
    )


def _halted(case: WhyCase, times: TimeFormat) -> str:
    cadence = case.cadence
    if case.asked_at is None:
        return f"{case.slug} does not run because it {_halt(case, times)}{_last_run(case, times)}"
    if case.subject_at <= case.now:
        return f"{case.slug} did not run at {times.full(case.subject_at)} because it {_halt(case, times)}"
    would = "" if cadence.state == "done" else ", unless it is resumed before then"
    return f"{case.slug} will not run at {times.full(case.subject_at)} because it {_halt(case, times)}{would}"


def _halt(case: WhyCase, times: TimeFormat) -> str:
    cadence = case.cadence
    since = times.brief(cadence.state_at)
    match cadence.state:
        case "paused":
            until = "" if cadence.resume_at is None else f" (resumes at {times.brief(cadence.resume_at)})"
            return f"has been paused since {since}{until}"
        case "disabled":
            why = "" if cadence.state_reason is None else f": {cadence.state_reason}"
            return f"has been disabled since {since}{why}"
        case _:
            return f"finished at {since}: it has no planned times left"


def _not_an_instant(case: WhyCase, times: TimeFormat) -> str:
    tense = "had" if case.subject_at <= case.now else "has"
    parts = [
        f"{case.slug} {tense} no planned time at {times.full(case.subject_at)}, because {_why_no_instant(case)}",
        _in_progress(case, times),
        _before(case, times),
        _after(case, times),
    ]
    return "; ".join(part for part in parts if part)


def _in_progress(case: WhyCase, times: TimeFormat) -> str | None:
    row = case.in_progress
    if row is None:
        return None
    return f"run {row.run_id}, planned for {times.brief(row.planned_at)}, was in progress at that time"


def _why_no_instant(case: WhyCase) -> str:
    if case.dst is not None:
        return case.dst.sentence
    match case.timing:
        case None:
            return "its timing was different then"
        case Manual():
            return "it runs only on request"
        case AfterReset(slot=slot, reset_at=None):
            return f"no reset of quota slot {slot!r} is known yet"
        case timing:
            return f"it runs {describe(timing)}"


def _before(case: WhyCase, times: TimeFormat) -> str | None:
    before = case.before
    if before is None or (before.row is None and before.at <= case.schedule.created_at):
        return None
    if before.row is None:
        return f"the previous one is {times.brief(before.at)}"
    return f"the previous one, {times.brief(before.at)}, {in_short(before.row)}"


def _after(case: WhyCase, times: TimeFormat) -> str | None:
    after = case.after
    if after is None:
        return None if case.timing is None else "there is no later one"
    return f"the next {'was' if after.at <= case.now else 'is'} {times.brief(after.at)}" + (
        "" if after.row is None else f", which {in_short(after.row)}"
    )


def _pruned(case: WhyCase, times: TimeFormat) -> str:
    subject = f"{case.slug} at {times.full(case.subject_at)}"
    if case.oldest_row_at is None or case.subject_at < case.oldest_row_at:
        return f"the result of {subject} is no longer in the ledger, which keeps {case.process.ledger_days} days"
    return f"{subject} was not planned: the timing was changed at {times.brief(case.schedule.updated_at)}"


def _due(case: WhyCase, times: TimeFormat) -> str:
    """The instant is due and has not started."""
    subject = f"{case.slug} at {times.full(case.subject_at)}"
    cadence = case.cadence
    if cadence.backoff_until is not None and cadence.backoff_until > case.now:
        return f"{subject} is delayed until {times.brief(cadence.backoff_until)} by backoff {_after_errors(case)}"
    if case.due_at > case.now:
        return f"{subject} is due at {times.brief(case.due_at)} with its stagger, and has not started yet"
    if case.blocker is not None and cadence.catch_up_until is not None and case.subject_at <= cadence.catch_up_until:
        blocker = named_run(case.blocker, case)
        return f"{subject} has yet to be caught up: missed times run one at a time, and {blocker} is in progress"
    if case.lacking is not None and case.nodes.live:
        return f"{subject} is due and waits: {case.lacking}"
    if case.nodes.is_full:
        return f"{subject} is due and waits: the concurrency limit is reached"
    if not case.nodes.live:
        return f"{subject} is due and has not started"
    return f"{subject} is due and starts at the next tick"


def _after_errors(case: WhyCase, *, is_quoted: bool = False) -> str:
    """The errors that led to backoff, with the last one unless the sentence quotes it already."""
    errors = case.cadence.consecutive_errors
    count = "an error" if errors == 1 else f"{errors} errors in a row"
    return f"after {count}" if is_quoted else f"after {count}, the last: {shorten(case.cadence.last_error)}"


def _planned(case: WhyCase, times: TimeFormat) -> str:
    """The instant lies ahead."""
    cadence = case.cadence
    at = times.full(case.subject_at)
    unwanted = _unwanted(case)
    if unwanted is not None:
        return f"{case.slug} will not run at {at} because {unwanted}"
    excluded = case.excluded_day(case.subject_at)
    if excluded is not None:
        return f"{case.slug} will be skipped at {at} because {excluded} is excluded"
    if case.is_outside_active_hours:
        return f"{case.slug} will be skipped at {at} because it is outside the active hours"
    if cadence.backoff_until is not None and cadence.backoff_until > case.due_at:
        until = times.brief(cadence.backoff_until)
        return f"{case.slug} at {at} is delayed until {until} by backoff {_after_errors(case)}"
    if case.used_up is not None and case.used_up.frees_at > case.due_at:
        return f"{case.slug} {_without_budget(case)} at {at} because {case.used_up.text}"
    staggered = "" if case.offset == 0 else f", at {times.brief(case.due_at)} with its stagger"
    is_paused = cadence.state == "paused" and cadence.resume_at is not None
    paused = f", after its pause ends at {times.brief(cadence.resume_at or 0)}" if is_paused else ""
    lacking = "" if case.lacking is None else f"; at present {case.lacking}"
    return f"{case.slug} will run at {at}{staggered}{paused}{_unless(case)}{lacking}"


def _without_budget(case: WhyCase) -> str:
    """What happens to an instant that no budget is left for: a one-shot waits, others are skipped."""
    return "will not start" if isinstance(case.timing, Once) else "will be skipped"


def _unwanted(case: WhyCase) -> str | None:
    """Why no instant runs at present, regardless of anything else."""
    if case.process.terms.is_standby:
        return "schedules are switched off (standby)"
    too_often = None if isinstance(case.compiled, Broken) else case.process.terms.too_often(case.compiled)
    return None if too_often is None else f"it prompts its agent too often: {too_often}"


def _unless(case: WhyCase) -> str:
    if case.blocker is None:
        return ""
    queues = not isinstance(case.compiled, Broken) and case.compiled.rules.overlap == "queue"
    instead = "then it waits in the queue" if queues else "then it is skipped"
    return f", unless {named_run(case.blocker, case)} is still open: {instead}"


def _idle(case: WhyCase, times: TimeFormat) -> str:
    return f"{case.slug} has not run yet"


def _what_is_next(case: WhyCase, times: TimeFormat) -> str | None:
    if case.cadence.state == "paused" and case.cadence.resume_at is not None and case.after is not None:
        return None
    if case.cadence.state != "active" or isinstance(case.compiled, Broken):
        return None
    following = case.following
    if following is None:
        return f"nothing is planned: {_why_no_instant(case)}"
    if (due := case.next_due_at) is not None and due <= case.now and case.lacking is None:
        return _overdue(case, following, times)
    unwanted = _unwanted(case)
    if unwanted is not None:
        return f"it will not run at {times.brief(following)} because {unwanted}"
    excluded, starting = case.excluded_day(following), case.starting
    if excluded is not None and starting is not None:
        then = next_after(starting, following)
        instead = "it does not run after that" if then is None else f"it runs next at {times.brief(then)}"
        return f"{times.brief(following)} will be skipped because {excluded} is excluded; {instead}"
    due = case.next_due_at
    if due is None:
        return f"the next one, {times.brief(following)}, starts when that run ends"
    if case.lacking is not None and case.nodes.live:
        when = f"was due at {times.brief(due)} and waits" if due <= case.now else f"is due next at {times.brief(due)}"
        return f"it {when}: {case.lacking}"
    if _waits_beyond(case.row, due):
        queues = case.compiled.rules.overlap == "queue"
        return f"the next one, {times.brief(following)}, " + (
            "will be queued behind it" if queues else "will be skipped because it is still open"
        )
    if case.cadence.backoff_until is not None and due == case.cadence.backoff_until:
        row, last = case.row, case.cadence.last_error
        is_quoted = row is not None and row.outcome in ERRORS and row.error == last
        return f"the next run is delayed until {times.brief(due)} by backoff {_after_errors(case, is_quoted=is_quoted)}"
    if case.used_up is not None and case.used_up.frees_at > due and not isinstance(case.timing, Once):
        return _next_with_budget(case, case.used_up, following, times)
    staggered = "" if due == following else f", at {times.brief(due)} with its stagger"
    return f"it runs next at {times.brief(following)}{staggered}"


def _overdue(case: WhyCase, following: Instant, times: TimeFormat) -> str:
    """What was due before now has not started; what comes next lies ahead."""
    then = None if case.starting is None else next_after(case.starting, case.now)
    later = "" if then is None else f"; the next planned time after now is {times.brief(then)}"
    waits = ", and waits: the concurrency limit is reached" if case.nodes.is_full else ", and has not started"
    return f"{times.brief(following)} was due{waits}{later}"


def _next_with_budget(case: WhyCase, used_up: UsedUp, following: Instant, times: TimeFormat) -> str:
    """The next instant is skipped; the budget is named unless the sentence has just done so."""
    row = case.row
    is_named = row is not None and row.outcome == "skipped" and row.reason == BUDGET
    then = None if case.starting is None else next_after(case.starting, used_up.frees_at - case.offset - 1)
    instead = "it does not run after that" if then is None else f"it runs next at {times.brief(then)}"
    because = "as well" if is_named else f"because {used_up.text}"
    return f"{times.brief(following)} will be skipped {because}; {instead}"


def _waits_beyond(run: Run | None, at: Instant) -> bool:
    """Whether the run will still be waiting at the instant."""
    return run is not None and run.outcome == "waiting" and run.next_attempt_at is not None and run.next_attempt_at > at


def _last_run(case: WhyCase, times: TimeFormat) -> str:
    row = case.row
    return "" if row is None else f"; its last run, {times.brief(row.planned_at)}, {in_short(row)}"


_SENTENCES: Final = {
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
