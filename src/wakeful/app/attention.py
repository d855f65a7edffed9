"""What needs attention: every problem as one item, with a sentence, a cure, and what its buttons act on.

Each source reads a bounded number of rows through an index, so the cost does not grow with the number of healthy
schedules or with the ledger.
"""

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Final, Literal, TypeAlias

from wakeful.app.agents import MissingProgram
from wakeful.core.returned import At, RunId, returned
from wakeful.core.run.resources import RESOURCES
from wakeful.core.run.runs import ERRORS
from wakeful.core.schedule.actions import Command, Prompt
from wakeful.core.self_scheduling.proposals import Proposal
from wakeful.core.time.instants import Instant
from wakeful.features.delivery.alerts import AlertView
from wakeful.features.delivery.incidents import of_channel
from wakeful.features.money.budget_rows import Brakes
from wakeful.features.schedules import queries
from wakeful.features.schedules.approval_texts import Change, changes_of, difference
from wakeful.features.schedules.approvals import base_of
from wakeful.features.schedules.health import Finding
from wakeful.features.schedules.proposal_rows import AgentProposals
from wakeful.features.schedules.queries import Choice
from wakeful.features.schedules.rules import Terms
from wakeful.features.schedules.views import ScheduleView, Status, as_text
from wakeful.ports.meta import Meta
from wakeful.ports.names import names_of
from wakeful.ports.outbox import Deliveries, Delivery, public_id
from wakeful.ports.store import STORE_ID, RunGlance, Tx

Level: TypeAlias = Literal["bad", "warn", "note"]
Kind: TypeAlias = Literal[
    "stuck",
    "failing",
    "late",
    "agent",
    "brake",
    "deadLetter",
    "delivery",
    "budget",
    "approval",
    "incident",
    "finding",
    "paused",
]

ITEMS_MAX: Final = 20
DIFFERENCE_MAX: Final = 80
"""Characters of each value of a changed field."""
"""How many items of one kind are listed."""
TEXT_MAX: Final = 160
PENDING_MAX: Final = 100
MAKE_ROOM: Final = "Free descriptors, memory, processes or disk space on its machine. It is tried again by itself."
COVERED: Final = frozenset({"stuck", "invalid", "disabled", "failing", "late", "alerts", "deliveries", "approvals"})
"""Findings whose subjects have separate items."""
_LEVELS: Final[Sequence[Level]] = ("bad", "warn", "note")


@dataclass(frozen=True, slots=True)
class Attention:
    """One problem. The ids name what can be acted on."""

    kind: Kind
    level: Annotated[Level, "note: intended, or forgotten"]
    title: str
    sentence: str
    cure: str | None = None
    at: Annotated[At | None, "since when"] = None
    slug: str | None = None
    run_id: RunId | None = None
    delivery_id: str | None = None
    approval_id: str | None = None
    alert_id: str | None = None
    agent: str | None = None
    status: Status | None = None
    field: Annotated[str | None, "the field of the definition that cures it"] = None
    needed: Annotated[float | None, "the limit that would be enough for one more run"] = None
    by_hand: Annotated[bool, "only a manual run failed"] = False


ATTENTION: Final = returned(Attention, name="AttentionItem")


def worst_first(items: Iterable[Attention]) -> list[Attention]:
    """By level; within a level in the given order."""
    return sorted(items, key=lambda item: _LEVELS.index(item.level))


def stuck_runs(tx: Tx) -> list[Attention]:
    """Items for runs whose end could not be proven."""
    runs = tx.runs.lock(queries.pulse(tx).stuck[:ITEMS_MAX])
    names = names_of(tx, {run.schedule_id for run in runs.values()})
    cure = "Stop the process it started, or restart the node."
    return [
        Attention(
            "stuck",
            "bad",
            names[run.schedule_id],
            f"Run {run.run_id} could not be stopped, and still occupies its lane. {run.error or ''}".strip(),
            cure,
            run.started_at,
            names[run.schedule_id],
            run.run_id,
        )
        for run in runs.values()
    ]


def troubled_schedules(
    tx: Tx, alerts: Sequence[AlertView], *, missing: Container[str] = (), terms: Terms, now: Instant
) -> list[Attention]:
    """Schedules that fail, were disabled, cannot be read, or are late. `missing`: agents without their program."""
    views = queries.chosen(tx, Choice(limit=ITEMS_MAX, is_troubled=True), now=now, terms=terms).schedules
    known = tx.schedules.by_slugs([view.slug for view in views])
    latest = tx.runs.latest([row.schedule_id for row in known.values()], limit=3)
    open_alerts = {alert.slug: alert.id for alert in alerts if alert.slug is not None}
    return [
        _troubled(
            view, latest.get(known[view.slug].schedule_id, ()) if view.slug in known else (), open_alerts, missing
        )
        for view in views
    ]


def _troubled(
    view: ScheduleView, runs: Sequence[RunGlance], open_alerts: Mapping[str, str], missing: Container[str]
) -> Attention:
    failed = next((run for run in runs if run.outcome in ERRORS), None)
    is_late = view.health == "late"
    starved = next((run for run in runs if run.outcome == "waiting" and run.reason == RESOURCES), None)
    sentence, cure = _trouble(view, missing)
    if starved is not None:
        sentence, cure = f"It cannot begin: {starved.error}", MAKE_ROOM
    return Attention(
        "late" if is_late else "failing",
        "warn" if is_late else "bad",
        view.slug,
        sentence,
        cure,
        None if failed is None or is_late else failed.ended_at,
        view.slug,
        None if failed is None else failed.run_id,
        alert_id=open_alerts.get(view.slug),
        agent=_agent_of(view),
        status=view.status,
        by_hand=view.failed_by_hand,
    )


def _agent_of(view: ScheduleView) -> str | None:
    action = None if view.definition is None else view.definition.action
    return action.agent if isinstance(action, Prompt) else None


def _trouble(view: ScheduleView, missing: Container[str]) -> tuple[str, str]:
    """What is wrong with a schedule, and the cure."""
    error = view.last_error or view.status_reason or "it did not succeed"
    times = view.consecutive_errors
    if view.failed_by_hand:
        return f"Its last manual run failed: {error}", "Fix the cause, then run it again, or acknowledge it."
    match view.status:
        case "invalid":
            return f"Its definition cannot be read: {view.status_reason or error}", "Correct it with Edit."
        case "disabled":
            return f"Disabled after {times} errors in a row. The last: {error}", "Fix the cause, then resume it."
        case "done":
            return f"Its only run failed: {error}", "Run it again, or acknowledge it."
    if view.health == "late":
        return f"It should have started. {view.status_reason or ''}".strip(), "Open it to see why."
    last = f"The last {times} runs failed" if times > 1 else "The last run failed"
    return f"{last}: {error}", _failing_cure(view, missing)


def _failing_cure(view: ScheduleView, missing: Container[str]) -> str:
    action = None if view.definition is None else view.definition.action
    agent = _agent_of(view)
    if agent is not None and agent in missing:
        fix = f"Install the program of agent {agent}, or correct its path"
    elif isinstance(action, Command):
        fix = "Fix the command, or provide what it needs"
    else:
        fix = "Fix the cause"
    planned = "" if view.next_run is None else f" Its next run is planned for {as_text(view.next_run)}."
    return f"{fix}, then run it again.{planned}"


def proposals(tx: Tx, *, now: Instant) -> list[Attention]:
    """What agents proposed, waiting for a person."""
    return [
        Attention(
            "approval",
            "warn",
            row.slug,
            _wish(row, changes_of(row, base_of(tx, row))),
            "Approve or reject it.",
            row.asked_at,
            row.slug,
            approval_id=row.proposal_id,
            agent=row.owner,
        )
        for row in tx[AgentProposals].pending(now=now)[:ITEMS_MAX]
    ]


def _wish(row: Proposal, changes: Sequence[Change]) -> str:
    """What a proposal asks for; `approvals` shows every value."""
    if row.kind == "run":
        return f"The agent {row.owner} wants it to run once now."
    if row.schedule_id is None:
        return f"The agent {row.owner} wants to add this schedule."
    differences = "; ".join(difference(change, most=DIFFERENCE_MAX) for change in changes)
    return f"The agent {row.owner} wants to change this schedule{': ' if differences else ''}{differences}."


def letters(tx: Tx, place_of: Callable[[str], str | None]) -> list[Attention]:
    """Items for dead letters, and for addressees whose oldest message keeps failing. `place_of`: where the address of a
    channel is written."""
    store_id = tx[Meta].value(STORE_ID) or ""
    dead = tx[Deliveries].page(status="dead", before_id=None, limit=ITEMS_MAX)
    failing: dict[int, Delivery] = {}
    for row in tx[Deliveries].page(status="pending", before_id=None, limit=PENDING_MAX):
        if row.attempts and row.last_error is not None:
            failing[row.addressee_id] = row  # newest first, so the oldest stays
    return [
        *(_letter(row, store_id, "deadLetter", "bad", "could not be delivered", place_of) for row in dead),
        *(_letter(row, store_id, "delivery", "warn", "is still being tried", place_of) for row in failing.values()),
    ]


def _letter(
    row: Delivery, store_id: str, kind: Kind, level: Level, state: str, place_of: Callable[[str], str | None]
) -> Attention:
    text = " ".join(row.text.split())
    shown = text if len(text) <= TEXT_MAX else f"{text[: TEXT_MAX - 1]}…"
    times = "1 attempt" if row.attempts == 1 else f"{row.attempts} attempts"
    place = place_of(row.channel)
    address = "its address" if place is None else f"its address ({place})"
    return Attention(
        kind,
        level,
        f"Message to {row.channel}",
        f"“{shown}” {state} after {times}{'' if row.last_error is None else f': {row.last_error}'}",
        f"Correct the channel {row.channel}: {address} or the server behind it. Then send the message again.",
        row.enqueued_at,
        row.slug,
        row.run_id,
        delivery_id=public_id(store_id, row),
    )


def stopped_agents(tx: Tx) -> list[Attention]:
    """Agents that were stopped because of their cost."""
    return [
        Attention("brake", "bad", brake.agent, brake.text, "Look at its runs, then release it.", brake.at, agent=name)
        for name, brake in tx[Brakes].all().items()
    ]


def incidents(alerts: Sequence[AlertView], items: Sequence[Attention]) -> list[Attention]:
    """Open incidents that no other item is about."""
    slugs = {item.slug for item in items if item.kind in ("failing", "late", "stuck")}
    covered = {item.alert_id for item in items}
    names = {of_channel(item.title.removeprefix("Message to ")) for item in items if item.delivery_id is not None}
    names |= {f"brake:{item.agent}" for item in items if item.kind == "brake"}
    return [
        Attention(
            "incident",
            "bad",
            alert.slug or alert.incident.partition(":")[2] or alert.incident,
            alert.text,
            None,
            alert.opened_at,
            alert.slug,
            alert.run_id,
            alert_id=alert.id,
        )
        for alert in alerts
        if alert.slug not in slugs and alert.incident not in names and alert.id not in covered
    ]


def other_findings(findings: Sequence[Finding]) -> list[Attention]:
    """Health check findings that have no separate item."""
    return [
        Attention(
            "finding",
            "bad" if finding.level == "bad" else "warn",
            finding.name,
            finding.sentence,
            finding.cure,
            slug=finding.slugs[0] if finding.name == "slots" and finding.slugs else None,
        )
        for finding in findings
        if finding.level != "ok" and finding.name not in COVERED
    ]


def halted_schedules(tx: Tx, *, terms: Terms, now: Instant) -> list[Attention]:
    """Schedules that a person paused or switched off: intended, or forgotten. If a manual run of one failed, that is an
    item as well."""
    paused = queries.chosen(tx, Choice(limit=ITEMS_MAX, status="paused"), now=now, terms=terms).schedules
    disabled = queries.chosen(tx, Choice(limit=ITEMS_MAX, status="disabled"), now=now, terms=terms).schedules
    off = [view for view in disabled if view.health == "off"]
    halted = [*paused, *off][:ITEMS_MAX]
    known = tx.schedules.by_slugs([view.slug for view in halted])
    cadences = tx.cadences.lock([row.schedule_id for row in known.values()])
    since = {slug: cadences[row.schedule_id].state_at for slug, row in known.items()}
    latest = tx.runs.latest([row.schedule_id for row in known.values()], limit=3)
    failed = [
        _troubled(view, latest.get(known[view.slug].schedule_id, ()), {}, ()) for view in halted if view.failed_by_hand
    ]
    return failed + [
        Attention(
            "paused",
            "note",
            view.slug,
            _halted(view),
            "Resume it if it was paused by mistake.",
            since.get(view.slug),
            view.slug,
            status=view.status,
        )
        for view in halted
    ]


def _halted(view: ScheduleView) -> str:
    if view.status == "paused" and view.next_run is not None and view.status_reason is not None:
        return f"Paused {view.status_reason or ''}".rstrip() + "."
    if view.status == "paused":
        return "It does not run until it is resumed."
    return "Switched off: it does not run until it is resumed."


def missing_programs(missing: Mapping[str, MissingProgram]) -> list[Attention]:
    """Agents whose program is not installed, with the cure."""
    return [
        Attention(
            "agent",
            "bad",
            f"Agent {name}",
            f"{program.problem[:1].upper()}{program.problem[1:]}.",
            f"Install it, or correct its path in {program.place}; then test the agent. Its schedules fail until it "
            "works.",
            agent=name,
        )
        for name, program in sorted(missing.items())
    ]
