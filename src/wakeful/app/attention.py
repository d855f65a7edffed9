"""What needs attention: every problem as one item, with a sentence, a cure, and what its buttons act on.

Each source reads a bounded number of rows through an index, so the cost does not grow with the number of healthy
schedules or with the ledger.
"""

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal, TypeAlias

from wakeful.core.delivery.incidents import Incident
from wakeful.core.money.prices import NANO, dollars
from wakeful.core.run.runs import ERRORS
from wakeful.core.schedule.actions import Command, Prompt
from wakeful.core.time.instants import Instant, format_instant
from wakeful.features.delivery.alerts import AlertView
from wakeful.features.delivery.incidents import of_channel
from wakeful.features.money.queries import BudgetView
from wakeful.features.schedules import queries
from wakeful.features.schedules.health import Finding
from wakeful.features.schedules.queries import Choice
from wakeful.features.schedules.rules import Terms
from wakeful.features.schedules.views import ScheduleView, as_text
from wakeful.ports.names import names_of
from wakeful.ports.outbox import Delivery, public_id
from wakeful.ports.store import STORE_ID, Tx

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
"""How many items of one kind are listed."""
TEXT_MAX: Final = 160
CENT: Final = NANO // 100
PENDING_MAX: Final = 100
COVERED: Final = frozenset({"stuck", "invalid", "disabled", "failing", "late", "alerts", "deliveries", "approvals"})
"""Findings whose subjects have separate items."""
_LEVELS: Final[Sequence[Level]] = ("bad", "warn", "note")


@dataclass(frozen=True, slots=True)
class Attention:
    """One problem. The ids name what its buttons act on."""

    kind: Kind
    level: Level
    title: str
    sentence: str
    cure: str | None = None
    at: Instant | None = None  # since when
    slug: str | None = None
    run_id: int | None = None
    delivery_id: str | None = None
    approval_id: str | None = None
    alert_id: int | None = None
    agent: str | None = None
    status: str | None = None  # of the schedule
    field: str | None = None  # of the definition, that cures it
    needed: float | None = None  # the limit that would be enough for one more run

    def to_json(self) -> dict[str, Any]:
        out = {name: value for name, value in asdict(self).items() if value is not None}
        for name in ("run_id", "alert_id"):
            if name in out:
                out[name] = str(out[name])
        if self.at is not None:
            out["at"] = format_instant(self.at)
        return {_CAMEL.get(name, name): value for name, value in out.items()}


_CAMEL: Final = {
    "run_id": "runId",
    "delivery_id": "deliveryId",
    "approval_id": "approvalId",
    "alert_id": "alertId",
}


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
    open_alerts = {alert.slug: alert.row.incident_id for alert in alerts if alert.slug is not None}
    items: list[Attention] = []
    for view in views:
        runs = latest.get(known[view.slug].schedule_id, ()) if view.slug in known else ()
        failed = next((run for run in runs if run.outcome in ERRORS), None)
        level: Level = "warn" if view.health == "late" else "bad"
        sentence, cure = _trouble(view, missing)
        items.append(
            Attention(
                "late" if view.health == "late" else "failing",
                level,
                view.slug,
                sentence,
                cure,
                None if failed is None or view.health == "late" else failed.ended_at,
                view.slug,
                None if failed is None else failed.run_id,
                alert_id=open_alerts.get(view.slug),
                agent=_agent_of(view),
                status=view.status,
            )
        )
    return items


def _agent_of(view: ScheduleView) -> str | None:
    action = None if view.definition is None else view.definition.action
    return action.agent if isinstance(action, Prompt) else None


def _trouble(view: ScheduleView, missing: Container[str]) -> tuple[str, str]:
    """What is wrong with a schedule, and the cure."""
    error = view.last_error or view.status_reason or "it did not succeed"
    times = view.consecutive_errors
    match view.status:
        case "invalid":
            return f"Its definition cannot be read: {view.status_reason}", "Correct it with Edit."
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
            f"The agent {row.owner} wants to {'add' if row.schedule_id is None else 'change'} this schedule.",
            "Approve or reject it.",
            row.asked_at,
            row.slug,
            approval_id=row.proposal_id,
            agent=row.owner,
        )
        for row in tx.proposals.pending(now=now)[:ITEMS_MAX]
    ]


def letters(tx: Tx, places: Mapping[str, str] | None = None) -> list[Attention]:
    """Items for dead letters, and for addressees whose oldest message keeps failing. `places`: where `channels.NAME`
    is written."""
    store_id = tx.meta.get(STORE_ID) or ""
    dead = tx.deliveries.page(status="dead", before_id=None, limit=ITEMS_MAX)
    failing: dict[int, Delivery] = {}
    for row in tx.deliveries.page(status="pending", before_id=None, limit=PENDING_MAX):
        if row.attempts and row.last_error is not None:
            failing[row.addressee_id] = row  # newest first, so the oldest stays
    return [
        *(_letter(row, store_id, "deadLetter", "bad", "could not be delivered", places or {}) for row in dead),
        *(_letter(row, store_id, "delivery", "warn", "is still being tried", places or {}) for row in failing.values()),
    ]


def _letter(row: Delivery, store_id: str, kind: Kind, level: Level, state: str, places: Mapping[str, str]) -> Attention:
    text = " ".join(row.text.split())
    shown = text if len(text) <= TEXT_MAX else f"{text[: TEXT_MAX - 1]}…"
    times = "1 attempt" if row.attempts == 1 else f"{row.attempts} attempts"
    place = places.get(f"channels.{row.channel}")
    address = "its address" if place is None else f"its address ({place})"
    return Attention(
        kind,
        level,
        f"Message to {row.channel}",
        f"“{shown}” {state} after {times}: {row.last_error}",
        f"Correct the channel {row.channel}: {address} or the server behind it. Then send the message again.",
        row.enqueued_at,
        row.slug,
        row.run_id,
        delivery_id=public_id(store_id, row),
    )


def budgets(
    views: Sequence[BudgetView],
    alerts: Sequence[AlertView] = (),
    *,
    warn_at: float,
    estimate: Callable[[BudgetView], int | None] = lambda _view: None,
) -> list[Attention]:
    """Budgets that are used up, or nearly. `estimate`: what one more run would cost."""
    open_alerts = {alert.row.name: alert.row for alert in alerts}
    near = [view for view in views if view.spent + view.reserved >= view.limit * warn_at][:ITEMS_MAX]
    return [
        _budget(view, next(filter(None, map(open_alerts.get, view.incidents)), None), estimate(view)) for view in near
    ]


def _budget(view: BudgetView, alert: Incident | None, estimated: int | None) -> Attention:
    def amount(value: int) -> str:
        return f"${dollars(value):,.2f}" if view.unit == "usd" else f"{value:,} tokens"

    used = view.spent + view.reserved
    is_over = used >= view.limit
    share = f"{used * 100 // max(view.limit, 1)}%"
    whose = "all agents" if view.scope == "all" else view.scope.partition(":")[2]
    name = f"{_PERIODS[view.period]} budget"
    state = "used up" if is_over else "nearly used up"
    sentence = f"{name.capitalize()} {state}: {amount(used)} of {amount(view.limit)} ({share})."
    frees = format_instant(view.frees_at)
    needed = None if estimated is None else used + estimated
    if needed is not None and view.unit == "usd":
        needed += -needed % CENT  # a rounded amount must be enough as well
    enough = "" if needed is None or not is_over else f": {amount(needed)} is enough for one more run"
    skipped = f"Runs that cost money are skipped until {frees}. To run them sooner, raise the limit{enough}."
    is_of_schedule = view.scope.startswith("schedule:")
    return Attention(
        "budget",
        "bad" if is_over else "warn",
        f"{whose}: {name}",
        sentence,
        skipped if is_over else f"It resets at {frees}. Raise the limit if that is too late.",
        None if alert is None else alert.opened_at,
        slug=whose if is_of_schedule else None,
        alert_id=None if alert is None else alert.incident_id,
        agent=whose if view.scope.startswith("agent:") else None,
        field=_FIELDS.get((view.unit, view.period)) if is_of_schedule else None,
        needed=None if needed is None or not is_over else dollars(needed) if view.unit == "usd" else needed,
    )


_PERIODS: Final = {"day": "daily", "month": "monthly"}
_FIELDS: Final = {
    ("usd", "day"): "budget.perDay",
    ("usd", "month"): "budget.perMonth",
    ("tokens", "day"): "budget.tokensPerDay",
}


def stopped_agents(tx: Tx) -> list[Attention]:
    """Agents that were stopped because of their cost."""
    return [
        Attention("brake", "bad", brake.agent, brake.text, "Look at its runs, then release it.", brake.at, agent=name)
        for name, brake in tx.budgets.brakes().items()
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
            alert.slug or alert.row.name.partition(":")[2] or alert.row.name,
            alert.row.text,
            None,
            alert.row.opened_at,
            alert.slug,
            alert.row.run_id,
            alert_id=alert.row.incident_id,
        )
        for alert in alerts
        if alert.slug not in slugs and alert.row.name not in names and alert.row.incident_id not in covered
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
    """Schedules that a person paused or switched off: intended, or forgotten."""
    paused = queries.chosen(tx, Choice(limit=ITEMS_MAX, status="paused"), now=now, terms=terms).schedules
    disabled = queries.chosen(tx, Choice(limit=ITEMS_MAX, status="disabled"), now=now, terms=terms).schedules
    off = [view for view in disabled if view.health == "off"]
    halted = [*paused, *off][:ITEMS_MAX]
    known = tx.schedules.by_slugs([view.slug for view in halted])
    cadences = tx.cadences.lock([row.schedule_id for row in known.values()])
    since = {slug: cadences[row.schedule_id].state_at for slug, row in known.items()}
    return [
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
        return f"Paused {view.status_reason}."
    if view.status == "paused":
        return "It does not run until it is resumed."
    return "Switched off: it does not run until it is resumed."


def missing_programs(problems: Mapping[str, str], places: Mapping[str, str] | None = None) -> list[Attention]:
    """Agents whose program is not installed, with the cure. `places`: where `agents.NAME` is written."""
    return [
        Attention(
            "agent",
            "bad",
            f"Agent {name}",
            f"{problem[:1].upper()}{problem[1:]}.",
            f"Install it, or correct its path in {(places or {}).get(f'agents.{name}', 'wakeful.toml')}; then test the "
            "agent. Its schedules fail until it works.",
            agent=name,
        )
        for name, problem in sorted(problems.items())
    ]
