"""Health findings besides the clock: dead letters, channels, the heartbeat's budget, workflows that need a person."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from wakeful.app.bootstrap.cron_rules import still_concerned
from wakeful.core.http_headers import left_out
from wakeful.core.time.instants import DAY, Instant, format_instant
from wakeful.core.workflow.rows import HandlerRun, Workflow
from wakeful.features.delivery.inbound import InboundFinding
from wakeful.features.heartbeat.queries import heartbeat_view
from wakeful.features.heartbeat.rules import HEARTBEAT, HeartbeatTerms
from wakeful.features.money.unpriced import Unpriced
from wakeful.features.schedules.compiled import calendar_named, slots_named
from wakeful.features.schedules.health import Finding
from wakeful.features.schedules.proposal_rows import AgentProposals
from wakeful.features.schedules.rules import Terms
from wakeful.features.workflows import loading
from wakeful.features.workflows.message_rows import Messages, Waiting
from wakeful.features.workflows.modules import Fault
from wakeful.observe.tracing import TracingTrouble
from wakeful.ports.handler_runs import HandlerRunDetails
from wakeful.ports.outbox import Deliveries
from wakeful.ports.slots import QuotaSlots
from wakeful.ports.store import Tx
from wakeful.ports.workflows import StoredWorkflows

if TYPE_CHECKING:  # it needs the settings, which few programs have
    from wakeful.integrations.plugins.loading import Trouble

NAMED_MAX: Final = 10
WAITING_MAX: Final = DAY
WORKFLOWS: Final = "workflows"
CHANNELS: Final = "channels"
TRACING: Final = "tracing"
SLOTS: Final = "slots"
APPROVALS: Final = "approvals"
CALENDARS: Final = "calendars"
HEADERS: Final = "headers"
HEADER_SCHEDULES_MAX: Final = 1_000
BUDGETS: Final = "budgets"
CRON: Final = "cron"
CALENDAR_SCHEDULES_MAX: Final = 1_000
SLOT_SCHEDULES_MAX: Final = 1_000
PLUGINS: Final = "plugins"
_PLUGIN_CURES: Final = {
    "load": "Correct or install the package, or remove it from `plugins` in wakeful.toml; then restart the daemon.",
    "raised": "Report it to the author of the package. What it was asked to do is tried again as usual.",
    "blocked": "Report it to the author of the package: it must not block; until then, remove it from `plugins`.",
}


def missing_slots(tx: Tx) -> list[Finding]:
    """Removed quota slots that schedules still name: those run without a slot, or have no time."""
    schedules = tx.schedules.naming_slot(after_id=0, limit=SLOT_SCHEDULES_MAX)
    if not schedules:
        return []
    known = {slot.name for slot in tx[QuotaSlots].all()}
    missing: dict[str, list[str]] = {}
    for schedule in schedules:
        for name in slots_named(schedule):
            if name not in known:
                missing.setdefault(name, []).append(schedule.slug)
    if not missing:
        return [Finding(SLOTS, "ok", "every slot that a schedule names exists")]
    return [_missing_slot(name, slugs) for name, slugs in sorted(missing.items())[:NAMED_MAX]]


def _missing_slot(name: str, slugs: Sequence[str]) -> Finding:
    named = ", ".join(slugs[:NAMED_MAX]) + (" and others" if len(slugs) > NAMED_MAX else "")
    verb = "names" if len(slugs) == 1 else "name"
    cure = f"add it again: wakeful slots add {name} …; or remove the reference: wakeful edit {slugs[0]} --set slot=null"
    return Finding(SLOTS, "warn", f"slot {name} is gone, and {named} {verb} it", cure, list(slugs[:NAMED_MAX]))


def calendars(tx: Tx, terms: Terms) -> list[Finding]:
    """Calendar files that cannot be read, and so exclude nothing."""
    users: dict[str, list[str]] = {}
    if terms.exclude is not None and terms.exclude.calendar is not None:
        users[terms.exclude.calendar] = ["[exclude]"]
    for schedule in tx.schedules.with_calendar(after_id=0, limit=CALENDAR_SCHEDULES_MAX):
        name = calendar_named(schedule)
        if name is not None:
            users.setdefault(name, []).append(schedule.slug)
    return [_unread(fault, users[name]) for name in sorted(users) if (fault := terms.calendar_fault(name)) is not None][
        :NAMED_MAX
    ]


def _unread(fault: str, users: Sequence[str]) -> Finding:
    named = ", ".join(users[:NAMED_MAX]) + (" and others" if len(users) > NAMED_MAX else "")
    verb = "names" if len(users) == 1 else "name"
    cure = "correct the file; it is reloaded automatically"
    return Finding(CALENDARS, "warn", f"{fault}; {named} {verb} it, and it excludes nothing", cure, list(users) or ())


def headers(tx: Tx) -> list[Finding]:
    """Definitions of 0.2 with headers that only the connection may set."""
    schedules = tx.schedules.with_own_headers(after_id=0, limit=HEADER_SCHEDULES_MAX)
    workflows = tx[StoredWorkflows].page(after=None, limit=HEADER_SCHEDULES_MAX)
    stored = [("schedule", row.slug, row.definition) for row in schedules]
    stored += [("workflow", row.name, row.definition) for row in workflows if '"headers":{' in row.definition]
    found = [(kind, slug, names) for kind, slug, definition in stored if (names := left_out(definition))]
    return [
        Finding(
            HEADERS,
            "warn",
            f"{slug} is sent without the headers {', '.join(names)} of its definition: the connection sets them",
            f"remove them from the {kind}",
            [slug],
        )
        for kind, slug, names in found[:NAMED_MAX]
    ]


def replanned(tx: Tx) -> list[Finding]:
    """Cron expressions that this version reads in another way than the one that planned them."""
    concerned = still_concerned(tx)
    if not concerned:
        return []
    named = ", ".join(concerned[:NAMED_MAX]) + (" and others" if len(concerned) > NAMED_MAX else "")
    sentence = (
        f"a range of one value with a step is now read as this value, as cron does (7-7/1 is 7, not 7 to 23); "
        f"what has one was replanned: {named}"
    )
    cure = "check the times: wakeful next; then write the value alone in the expression (7)"
    return [Finding(CRON, "warn", sentence, cure, list(concerned[:NAMED_MAX]) or ())]


def proposals(tx: Tx, *, now: Instant) -> Finding:
    """Whether an agent's proposal waits for a person."""
    waiting = tx[AgentProposals].pending(now=now)
    if not waiting:
        return Finding(APPROVALS, "ok", "nothing is waiting for approval")
    named = ", ".join(f"{row.slug} (by {row.owner})" for row in waiting[:NAMED_MAX])
    more = f" and {len(waiting) - NAMED_MAX} more" if len(waiting) > NAMED_MAX else ""
    first = format_instant(min(row.expires_at for row in waiting))
    sentence = f"{len(waiting)} proposed by agents, waiting for approval: {named}{more}; the first expires at {first}"
    slugs = [row.slug for row in waiting[:NAMED_MAX]]
    return Finding(APPROVALS, "warn", sentence, "decide: wakeful approvals, then approve ID or reject ID", slugs)


def dead_letters(tx: Tx) -> Finding:
    """Whether any delivery to a person was given up."""
    counts = {channel: count.get("dead", 0) for channel, count in tx[Deliveries].open_counts().items()}
    dead = {channel: count for channel, count in sorted(counts.items()) if count}
    if not dead:
        return Finding("deliveries", "ok", "no dead letters")
    named = ", ".join(f"{count} to {channel}" for channel, count in list(dead.items())[:NAMED_MAX])
    cure = "see why: wakeful outbox --status dead; then wakeful outbox retry ID, or discard ID"
    return Finding("deliveries", "warn", f"dead letters: {named}", cure)


def inbound(problems: Sequence[InboundFinding]) -> list[Finding]:
    """Problems with receiving messages from people."""
    if not problems:
        return [Finding(CHANNELS, "ok", "no problem with receiving messages on inbound channels")]
    shown = [Finding(CHANNELS, "warn", *finding) for finding in problems[:NAMED_MAX]]
    if len(problems) > NAMED_MAX:
        more = f"{len(problems) - NAMED_MAX} more"
        shown.append(Finding(CHANNELS, "warn", more, "see all: wakeful channels -o json"))
    return shown


def plugins(troubles: "Iterable[Trouble]") -> Iterator[Finding]:
    """What each plugin did wrong."""
    for trouble in troubles:
        yield Finding(PLUGINS, "warn", trouble.sentence, _PLUGIN_CURES[trouble.what])


def tracing(endpoint: str | None, trouble: TracingTrouble | None) -> list[Finding]:
    """Whether a collector takes the traces, if there is one."""
    if trouble is not None:
        return [Finding(TRACING, "warn", *trouble)]
    return [] if endpoint is None else [Finding(TRACING, "ok", f"traces are sent to {endpoint}")]


def stopped_workflows(tx: Tx) -> list[Finding]:
    """Workflows that are stopped until a person acts, each with the error and what to do."""
    stopped = tx[StoredWorkflows].stopped(limit=NAMED_MAX + 1)
    if not stopped:
        return [Finding(WORKFLOWS, "ok", "no workflow waits for a person")]
    runs = tx[HandlerRunDetails].among(
        [workflow.open_run_id for workflow in stopped if workflow.open_run_id is not None]
    )
    findings = [_stopped(workflow, runs.get(workflow.open_run_id or 0)) for workflow in stopped[:NAMED_MAX]]
    if len(stopped) > NAMED_MAX:
        findings.append(Finding(WORKFLOWS, "warn", "more workflows have stopped", "see all of them: wakeful workflows"))
    return findings


def unloaded_modules(faults: Sequence[Fault]) -> list[Finding]:
    """Modules of `[workflows] modules` that could not be loaded."""
    cure = "correct [workflows] modules or the module, then restart the daemon"
    return [
        Finding(WORKFLOWS, "warn", f"module {fault.module} cannot be loaded: {fault.error}", cure)
        for fault in faults[:NAMED_MAX]
    ]


def unloaded_workflows(tx: Tx, *, now: Instant) -> list[Finding]:
    """Python workflows that wait because no process that ticks has loaded their functions."""
    waiting = loading.unloaded(tx, now=now)[:NAMED_MAX]
    return [Finding(WORKFLOWS, "warn", found.sentence, found.cure, [found.workflow]) for found in waiting]


def waiting_messages(tx: Tx, *, now: Instant) -> list[Finding]:
    """Topics whose oldest pending message has waited for more than a day."""
    waiting = tx[Messages].waiting_since(before=now - WAITING_MAX, limit=NAMED_MAX)
    return [_waiting(message) for message in waiting]


def _waiting(waiting: Waiting) -> Finding:
    whose = (
        f"consumer {waiting.consumer} has not taken it"
        if waiting.is_active
        else f"its consumer {waiting.consumer} is gone"
    )
    whose = whose if waiting.consumer else "no consumer reads it"
    since = format_instant(waiting.since)
    words = f"{waiting.workflow}: the oldest message of topic {waiting.topic} has been pending since {since}; {whose}"
    command = f"wakeful workflows messages {waiting.workflow} {waiting.topic} --status pending"
    cure = f"see it: {command}; then use it, or skip it"
    return Finding(WORKFLOWS, "warn", words, cure, [waiting.workflow])


def _stopped(workflow: Workflow, run: HandlerRun | None) -> Finding:
    cure = f"fix the cause, then: wakeful workflows resume {workflow.name}"
    if run is not None and run.awaits == "uncertain":
        command = f"wakeful workflows resolve {workflow.name} {run.run_id} retry|didNotHappen|skip"
        cure = f"find out what happened, then: {command}"
    return Finding(WORKFLOWS, "warn", f"{workflow.name} has stopped: {workflow.error}", cure, [workflow.name])


def unpriced(agents: Sequence[Unpriced]) -> list[Finding]:
    """Agents of unknown cost, to which limits in dollars cannot apply."""
    return [
        Finding(BUDGETS, "ok", f"{agent.sentence}; this is allowed")
        if agent.is_allowed
        else Finding(BUDGETS, "warn", agent.sentence, _priced(agent.cure), list(agent.slugs) or ())
        for agent in agents[:NAMED_MAX]
    ]


def _priced(cure: str) -> str:
    return f'{cure}; or allow it: unpriced = "allow" under [budgets], or wakeful budget set … --unpriced allow'


def budget(tx: Tx, terms: HeartbeatTerms, *, now: Instant) -> Finding:
    """Whether the heartbeat exceeded its turns per hour."""
    view = heartbeat_view(tx, terms, now=now)
    if view.tripped_at is None:
        return Finding(HEARTBEAT, "ok", f"{view.turns_in_hour} turns within the last hour")
    most, since = terms.beats.turns_per_hour_max, format_instant(view.tripped_at)
    until = "" if view.held_until is None else f" and waits until {format_instant(view.held_until)}"
    sentence = f"the heartbeat used up its {most} turns per hour at {since}{until}"
    return Finding(HEARTBEAT, "warn", sentence, "see who wakes it: wakeful runs heartbeat", [HEARTBEAT])
