"""Decides the instants that take the plain path (`core.schedule.plain`), in batches of equal decisions."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from wakeful.core.schedule.actions import Call
from wakeful.core.schedule.plain import following
from wakeful.core.time.instants import Instant
from wakeful.features.schedules.compiled import KIND, Broken, Compiled
from wakeful.features.schedules.jobs import Jobs
from wakeful.features.schedules.rules import Terms
from wakeful.ports.claims import Batch, Claim
from wakeful.ports.plain import DueSchedule
from wakeful.ports.store import Tx

NOT_RESERVED: Final = 0


def plain_batches(
    tx: Tx,
    rung: Sequence[DueSchedule],
    compiled: Mapping[int, Compiled | Broken],
    jobs: Jobs,
    *,
    now: Instant,
    is_here: Callable[[Call], bool] | None,
    terms: Terms,
) -> tuple[list[Batch], list[DueSchedule]]:
    """The due schedules that take the plain path, as batches that are not written yet, and the others.

    What a definition decides for an instant is computed once for all that have the same rules and do the same work in
    the same way (`Compiled.work`). `is_here` says whether this node has a callable;
    None: every node has all."""
    decided: dict[tuple[int, int, int, Instant, Instant], Batch | None] = {}
    others: list[DueSchedule] = []
    for due in rung:
        schedule_id, _, instant, due_at, is_clear = due
        known = compiled[schedule_id]
        if not is_clear or instant is None or isinstance(known, Broken):
            others.append(due)
            continue
        key = id(known.work), id(known.rules), known.version, instant, due_at
        if key not in decided:
            decided[key] = _decide(known, instant, due_at, jobs, now=now, is_here=is_here, terms=terms)
        batch = decided[key]
        if batch is None:
            others.append(due)
        else:
            batch.claims.append(Claim(NOT_RESERVED, schedule_id, batch, known.lane, known.model.timeout, known))
    batches = [batch for batch in decided.values() if batch is not None]
    run_ids = iter(tx.runs.reserve_ids(len(rung) - len(others)) if batches else ())
    for batch in batches:  # one after another, so that the run ids of a batch follow each other
        for claim in batch.claims:
            claim.run_id = next(run_ids)
    return batches, others


def _decide(
    known: Compiled,
    instant: Instant,
    due_at: Instant,
    jobs: Jobs,
    *,
    now: Instant,
    is_here: Callable[[Call], bool] | None,
    terms: Terms,
) -> Batch | None:
    """The batch of this instant under this definition, without its claims; None: the general path decides it.

    A schedule with its own excluded days is not plain; an instant on a day that is excluded for all schedules is left
    to the general path."""
    action = known.model.action
    if not known.starts_plainly or (is_here is not None and isinstance(action, Call) and not is_here(action)):
        return None
    if terms.exclude is not None and terms.excludes(known.model, instant):
        return None
    then = following(known.rules, instant, due_at, now)
    if then is None:
        return None
    return Batch.plain(
        kind=KIND,
        version=known.version,
        planned_at=instant,
        due_at=due_at,
        next_at=then.next_at,
        next_due_at=then.due_at,
        spec=action,
        on_crash=known.policy.on_crash,
        job_of=jobs.of_plain,
    )
