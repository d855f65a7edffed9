"""Starts the instants that take the plain path (`core.schedule.plain`)."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from wakeful.core.schedule.actions import Call
from wakeful.core.schedule.plain import Following, following
from wakeful.core.time.instants import Instant
from wakeful.features.schedules.compiled import Broken, Compiled
from wakeful.features.schedules.jobs import Jobs
from wakeful.features.schedules.rules import Terms
from wakeful.ports.handlers import PlainRun
from wakeful.ports.plain import Advance, DueSchedule
from wakeful.ports.store import Tx

PlainStart: TypeAlias = tuple[Compiled, Instant, Instant, Following]
"""A schedule whose instant becomes a run, the instant, its due time, and what comes after it."""


def plain_starts(
    rung: Sequence[DueSchedule],
    compiled: Mapping[int, Compiled | Broken],
    now: Instant,
    is_here: Callable[[Call], bool] | None,
    terms: Terms,
) -> dict[int, PlainStart]:
    """The due schedules that take the plain path. Their next instant is computed once for equal rules.

    `is_here` says whether this node has a callable; None: every node has all. A schedule with its own excluded days is
    not plain; an instant on a day that is excluded for all schedules is left to the general path."""
    starts: dict[int, PlainStart] = {}
    computed: dict[tuple[int, Instant, Instant], Following | None] = {}
    here: dict[str, bool] = {}  # whether this node has the callable
    for schedule_id, _, instant, due_at, is_clear in rung:
        known = compiled[schedule_id]
        if not is_clear or instant is None or isinstance(known, Broken) or not known.is_plain:
            continue
        action = known.model.action
        if is_here is not None and isinstance(action, Call):
            if action.target not in here:
                here[action.target] = is_here(action)
            if not here[action.target]:
                continue
        if terms.exclude is not None and terms.excludes(known.model, instant):
            continue
        key = id(known.rules), instant, due_at
        if key not in computed:
            computed[key] = following(known.rules, instant, due_at, now)
        if (then := computed[key]) is not None:
            starts[schedule_id] = known, instant, due_at, then
    return starts


def advance(tx: Tx, starts: Mapping[int, PlainStart], jobs: Jobs) -> list[PlainRun]:
    """Move the cadences and alarms; returns the runs, not yet written."""
    moves: list[Advance] = []
    runs: list[PlainRun] = []
    for run_id, (schedule_id, (compiled, instant, due_at, then)) in zip(
        tx.runs.reserve_ids(len(starts)), starts.items(), strict=True
    ):
        moves.append(Advance(schedule_id, instant, then.next_at, run_id, then.due_at))
        runs.append(jobs.of_plain(run_id, compiled, instant, due_at))
    tx.plain.advance(moves)
    return runs
