"""`wakeful why`: explains in one sentence why a schedule ran, did not run or will not run.

`why_facts` reads everything relevant in one consistent view; `why_words` turns it into a sentence and is a pure
function. Nothing here writes (L1).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from wakeful.core.returned import returned
from wakeful.core.schedule.lateness import LATE_REASONS
from wakeful.core.time.instants import Instant, format_optional
from wakeful.core.time.timing_words import describe
from wakeful.features.schedules.compiled import Broken
from wakeful.features.schedules.rules import Terms
from wakeful.features.schedules.run_views import view_run
from wakeful.features.schedules.why_facts import AdjacentInstant, BudgetOf, NamedRun, ProcessFacts, WhyCase, read_case
from wakeful.features.schedules.why_words import cause_of, sentence_of
from wakeful.ports.ownerships import Ownerships
from wakeful.ports.store import Tx

UNNAMED: Final = "another schedule"
"""In place of a name that an agent may not see."""


@dataclass(frozen=True, slots=True)
class Why:
    """The explanation, for people and for programs."""

    sentence: str
    facts: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        return WHY.write(self)


WHY: Final = returned(Why)


def why(
    tx: Tx,
    slug: str,
    *,
    at: Instant | None,
    now: Instant,
    terms: Terms | None = None,
    ledger_days: int = 90,
    viewer: str | None = None,
    used_up: BudgetOf | None = None,
) -> Why:
    """Explain the current state (without `at`), or what happened or will happen at an instant.

    `terms` are the current ones, and `used_up` finds a budget that keeps it from running. Times of schedules without a
    zone are shown in their default zone. Raises `NotFound` for a slug that never existed; removed schedules are still
    found.
    """
    case = read_case(tx, slug, at=at, now=now, process=ProcessFacts(terms or Terms(), ledger_days, used_up))
    if viewer is not None:
        case = replace(case, holder=_seen_by(tx, viewer, case.holder), blocker=_seen_by(tx, viewer, case.blocker))
    return Why(sentence_of(case), facts_of(case))


def _seen_by(tx: Tx, agent: str, named: NamedRun | None) -> NamedRun | None:
    """A run as an agent may see it: owners other than the agent have no name."""
    if named is None:
        return None
    owner = tx[Ownerships].among([named.run.schedule_id]).get(named.run.schedule_id)
    return named if owner is not None and owner.owner == agent else replace(named, slug=UNNAMED)


def facts_of(case: WhyCase) -> dict[str, Any]:
    """The facts behind the sentence."""
    cadence = case.cadence
    last = case.nodes.last
    return {
        "cause": cause_of(case),
        "slug": case.slug,
        "at": format_optional(case.asked_at),
        "now": format_optional(case.now),
        "instant": format_optional(case.instant),
        "timezone": case.zone,
        "timing": None if case.timing is None else describe(case.timing),
        "run": None if case.row is None else view_run(case.row, case.slug, case.attempts).to_json(),
        "blockedBy": _named(case.blocker),
        "laneHolder": _named(case.holder) if case.row is not None and case.row.outcome == "waiting" else None,
        "daylightSaving": None if case.dst is None else case.dst.sentence,
        "previous": _neighbour(case.before, case.offset),
        "next": _neighbour(case.after, case.offset),
        "nextRun": format_optional(case.next_due_at),
        "state": "invalid" if isinstance(case.compiled, Broken) else cadence.state,
        "stateReason": case.compiled.reason if isinstance(case.compiled, Broken) else cadence.state_reason,
        "stateAt": format_optional(cadence.state_at),
        "resumeAt": format_optional(cadence.resume_at),
        "backoffUntil": format_optional(cadence.backoff_until),
        "budgetFreesAt": None if case.used_up is None else format_optional(case.used_up.frees_at),
        "consecutiveErrors": cadence.consecutive_errors,
        "lastError": cadence.last_error,
        "plannedThrough": format_optional(cadence.planned_through),
        "createdAt": format_optional(case.schedule.created_at),
        "removedAt": format_optional(case.schedule.deleted_at),
        "isTicking": bool(case.nodes.live),
        "lastTick": None if last is None else format_optional(last.last_tick_at),
        "outage": _outage(case),
    }


def _outage(case: WhyCase) -> dict[str, Any] | None:
    """When no node ticked around a missed instant, judging by the node rows that still exist."""
    row = case.row
    if row is None or row.outcome != "missed" or row.reason in LATE_REASONS or case.nodes.down_until is None:
        return None
    return {"from": format_optional(case.nodes.down_from), "until": format_optional(case.nodes.down_until)}


def _named(named: NamedRun | None) -> dict[str, Any] | None:
    if named is None:
        return None
    run = named.run
    return {
        "runId": str(run.run_id),
        "slug": named.slug,
        "outcome": run.outcome,
        "startedAt": format_optional(run.started_at),
    }


def _neighbour(neighbour: AdjacentInstant | None, offset: int) -> dict[str, Any] | None:
    if neighbour is None:
        return None
    row = neighbour.row
    return {
        "at": format_optional(neighbour.at),
        "dueAt": format_optional(neighbour.at + offset),
        "runId": None if row is None else str(row.run_id),
        "outcome": None if row is None else row.outcome,
        "reason": None if row is None else row.reason,
    }
