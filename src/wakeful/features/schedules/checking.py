"""Applies a prompt schedule's check to its run: a turn follows, or the instant is skipped."""

import json
from typing import Any, NamedTuple

from wakeful.core.run.results import Done, Ending
from wakeful.core.run.runs import OUTSIDE_PLAN, Run
from wakeful.core.run.settlement import Close, Wait
from wakeful.core.schedule.actions import Prompt
from wakeful.core.schedule.cadence import Cadence
from wakeful.core.schedule.definition import Definition
from wakeful.core.schedule.pre_check import (
    CHECK_FAILED,
    CHECKED,
    NOTHING_TO_DO,
    CheckFailed,
    CheckSpec,
    Found,
    NothingFound,
    with_output,
)
from wakeful.core.time.instants import Duration, Instant
from wakeful.core.time.timing import next_after
from wakeful.features.schedules.compiled import Compiled, lane_of
from wakeful.ports.store import Tx

KEPT = "check"
MERGED = frozenset({NOTHING_TO_DO, CHECK_FAILED})
"""Adjacent instants that were skipped for one of these reasons are one row."""


class Checked(NamedTuple):
    """What follows from a check, and what is stored on the run."""

    settlement: Close | Wait
    result: str | None = None


def check_output(run: Run) -> str | None:
    """What this run's check found; None if it has not run yet."""
    kept: dict[str, Any] = {} if run.result is None else json.loads(run.result)
    output = kept.get(KEPT)
    return output if isinstance(output, str) else None


def spec_of(run: Run, definition: Definition) -> object:
    """What to perform next: the check, or the turn with what it found."""
    if definition.check is None:
        return definition.action
    output = check_output(run)
    if output is None:
        return CheckSpec(definition.check)
    assert isinstance(definition.action, Prompt)  # noqa: S101 - only a prompt has a check
    action = definition.action
    return Prompt(with_output(action.text, output), action.agent, action.session_config, action.memory)


def after_check(
    run: Run, ending: Ending, own: Compiled, cadence: Cadence, *, interval: Duration, now: Instant
) -> Checked | None:
    """What follows from a check; None if the ending was not a check's. Turns keep the minimum interval of agents,
    checks do not."""
    if not isinstance(ending, Done) or own.model.check is None:
        return None
    match ending.carries:
        case NothingFound():
            return Checked(Close("skipped", None, None, NOTHING_TO_DO))
        case CheckFailed(error=error) if own.model.check.on_error == "skip":
            return Checked(Close("skipped", None, error, CHECK_FAILED))
        case CheckFailed(error=error):
            output = f"(the check failed: {error})"
        case Found(output=output):
            pass
        case _:
            return None
    at = now
    if run.trigger != "manual" and cadence.last_run_at is not None and cadence.last_run_at <= now:
        at = max(now, cadence.last_run_at + interval)
    wait = Wait(at, CHECKED, "checked", None, None, is_attempt=False, lane=lane_of(own.model))
    return Checked(wait, json.dumps({KEPT: output}, ensure_ascii=False))


def row_before(tx: Tx, run: Run, close: Close, own: Compiled) -> Run | None:
    """The row that this instant joins: the row right before it, skipped for the same reason. Runs that are not planned,
    such as replays, cover no instant of the plan, so they neither join a row nor are joined."""
    is_planned = run.trigger not in OUTSIDE_PLAN
    if close.reason not in MERGED or not is_planned or run.attempt > 1 or run.definition is not None:
        return None
    for row in tx.runs.page(schedule_id=run.schedule_id, before_id=run.run_id, limit=1):
        last = row.planned_until or row.planned_at
        is_same = (row.outcome, row.reason, row.version) == ("skipped", close.reason, run.version)
        if is_same and row.trigger not in OUTSIDE_PLAN and next_after(own.rules.timing, last) == run.planned_at:
            locked = tx.runs.lock([row.run_id]).get(row.run_id)
            if locked is not None:
                return locked._replace(planned_until=run.planned_at, instants=locked.instants + 1, error=close.error)
    return None
