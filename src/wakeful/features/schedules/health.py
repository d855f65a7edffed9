"""Health checks: is the clock alive, is anything stuck? Findings for `/healthz`, `/metrics` and `doctor`.

Everything comes from one consistent read of bounded cost. Only the check whether the store can be written needs a
write: `is_writable` makes a harmless one, with a time limit.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeAlias

from wakeful.core.run.runs import Run
from wakeful.core.schedule.labels import named
from wakeful.core.time.instants import (
    DAY,
    INSTANT_MAX,
    MINUTE,
    SECOND,
    Duration,
    Instant,
    format_duration,
    format_instant,
)
from wakeful.engine.incident_rows import Incidents
from wakeful.engine.limits import manual_max
from wakeful.features.schedules import queries
from wakeful.features.schedules.labels import has_node
from wakeful.features.schedules.rules import Terms
from wakeful.ports.clock import Clock
from wakeful.ports.meta import Meta
from wakeful.ports.names import names_of
from wakeful.ports.outbox import ALARM_DELIVERY, ALARM_INCIDENT, ALARM_PING
from wakeful.ports.store import ALARM_RUN, Node, Store, StoreUnavailable, Tx

Level: TypeAlias = Literal["ok", "warn", "bad"]

RUNS_MAX: Final = 1_000
TROUBLED_MAX: Final = 1_000
DIED_WITHIN: Final[Duration] = DAY
NAMED_MAX: Final = 10

LAG_MAX: Final[Duration] = 5 * SECOND
OVERDUE_MAX: Final[Duration] = MINUTE
SILENT_MAX: Final[Duration] = 2 * MINUTE
"""A node renews its lease every ten seconds, and sleeps for at most a minute."""
WRITE_WITHIN: Final[Duration] = 5 * SECOND
PROBE: Final = "health_probe"


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check."""

    name: str
    level: Level
    sentence: str
    cure: str | None = None
    slugs: Sequence[str] = ()  # the schedules concerned, the first few


def worst(findings: Sequence[Finding]) -> Level:
    """The worst level among the findings."""
    levels = {finding.level for finding in findings}
    return "bad" if "bad" in levels else "warn" if "warn" in levels else "ok"


@dataclass(frozen=True, slots=True)
class Health:
    """The result of all checks."""

    now: Instant
    findings: Sequence[Finding]
    nodes: Sequence[Node]  # those with a live lease
    last_tick_at: Instant | None
    lag: Duration
    running: int
    waiting: int
    stuck: int
    overdue: Duration
    failing: int = 0  # number of failing schedules, bounded
    late: int = 0
    incidents: int = 0  # open incidents that were reported

    @property
    def level(self) -> Level:
        """The worst level among the findings."""
        return worst(self.findings)

    @property
    def is_alive(self) -> bool:
        """Whether a node ticks."""
        return bool(self.nodes)


def health(tx: Tx, *, now: Instant) -> Health:
    """Run all checks, at a cost independent of the number of healthy schedules."""
    nodes = tx.nodes.all()
    live = [node for node in nodes if node.voided_at is None and node.lease_until > now]
    held = tx.runs.of_nodes([node.node_id for node in nodes], limit=RUNS_MAX) if nodes else []
    waiting = tx.runs.page(limit=RUNS_MAX, outcome="waiting")
    stuck = [run for run in held if run.stuck]
    # A slow receiver delays only its own deliveries; that does not count as clock lag.
    due_at = tx.alarms.next_due_at(besides=[ALARM_DELIVERY, ALARM_INCIDENT, ALARM_PING])
    overdue = 0 if due_at is None else max(now - due_at, 0)
    last_tick_at = max((node.last_tick_at for node in nodes), default=None)
    lag = max((node.lag for node in live), default=0)
    findings = [
        _ticking(live, last_tick_at, now),
        _lagging(lag),
        _stuck(tx, stuck),
        _orphans(held, live),
        _overdue(overdue, live),
        _parked(tx, waiting),
        _labels(tx, live, now),
        *(of_schedules := _schedules(tx, now)).findings,
        _incidents(incidents := sum(row.stage != "watched" for row in tx[Incidents].open())),
        _lone_nodes(nodes, now),
        _terms(live),
    ]
    running = sum(run.outcome == "running" for run in held)
    return Health(
        now,
        findings,
        live,
        last_tick_at,
        lag,
        running,
        len(waiting),
        len(stuck),
        overdue,
        of_schedules.failing,
        of_schedules.late,
        incidents,
    )


async def is_writable(store: Store, clock: Clock, *, within: Duration = WRITE_WITHIN) -> Finding:
    """Whether a commit succeeds in reasonable time."""
    now = clock.read().now
    ended = asyncio.Event()

    async def probe() -> None:
        try:
            await store.write(lambda tx: tx[Meta].set(PROBE, str(now)))
        finally:
            ended.set()

    task = asyncio.create_task(probe())
    await clock.wait(ended, within)
    if not ended.is_set():
        task.cancel()
    await asyncio.wait([task])
    cure = "free disk space, and check that the store's file or server is reachable and writable"
    if task.cancelled():
        return Finding("store", "bad", f"a write did not complete within {format_duration(within)}", cure)
    error = task.exception()
    if isinstance(error, StoreUnavailable):
        return Finding("store", "bad", f"cannot write to the store: {error}", cure)
    if error is not None:
        return Finding("store", "bad", f"a write failed: {type(error).__name__}: {error}", cure)
    if trouble := store.trouble():
        cure = "check the network and any proxy in front of the server; failed operations are retried"
        return Finding("store", "warn", f"the store is writable, but {trouble}", cure)
    return Finding("store", "ok", "the store is writable")


def _ticking(live: Sequence[Node], last_tick_at: Instant | None, now: Instant) -> Finding:
    if not live:
        seen = "" if last_tick_at is None else f"; last seen at {format_instant(last_tick_at)}"
        return Finding("clock", "bad", f"no process is ticking{seen}", "start one: wakeful up")
    silent = now - max(node.last_tick_at for node in live)
    names = ", ".join(f"{node.name} (pid {node.pid})" for node in live[:NAMED_MAX])
    if silent > SILENT_MAX:
        sentence = f"{names} should be ticking, but was last seen {_ago(silent)}"
        return Finding("clock", "warn", sentence, "it may hang: check server.log, or restart it")
    return Finding("clock", "ok", f"{names} ticks, last seen {_ago(silent)}")


def _lagging(lag: Duration) -> Finding:
    if lag > LAG_MAX:
        cure = "the machine or the store is too slow, or something blocks the event loop: check the load"
        return Finding("lag", "warn", f"runs start {format_duration(lag)} late", cure)
    return Finding("lag", "ok", f"runs start on time ({format_duration(lag)} late at most)")


def _stuck(tx: Tx, stuck: Sequence[Run]) -> Finding:
    if not stuck:
        return Finding("stuck", "ok", "nothing is stuck")
    which = ", ".join(f"run {run.run_id}" for run in stuck[:NAMED_MAX])
    sentence = f"{len(stuck)} could not be stopped and still occupy their lane and capacity: {which}"
    return Finding("stuck", "bad", sentence, "stop the processes they started, or restart the node", _slugs(tx, stuck))


def _orphans(held: Sequence[Run], live: Sequence[Node]) -> Finding:
    alive = {node.node_id for node in live}
    lost = [run for run in held if run.outcome == "running" and run.owner not in alive]
    if not lost:
        return Finding("orphans", "ok", "no run is left over from a dead node")
    sentence = f"{len(lost)} runs belong to a dead node; the next node that ticks takes them over"
    cure = None if live else "start a process that ticks: wakeful up"
    return Finding("orphans", "warn", sentence, cure)


def _overdue(overdue: Duration, live: Sequence[Node]) -> Finding:
    if overdue <= OVERDUE_MAX:
        return Finding("overdue", "ok", "nothing is overdue")
    sentence = f"an alarm was due {_ago(overdue)}"
    if live and all(node.running >= manual_max(node.capacity) for node in live):
        cure = "raise limits.concurrency_max, or wait for runs to end"
        is_full = all(node.running >= node.capacity for node in live)
        limit = "the concurrency limit" if is_full else "the concurrency limit for manual runs"
        return Finding("overdue", "warn", f"{sentence}, and {limit} is reached", cure)
    cure = "start a process that ticks: wakeful up" if not live else "ticking has stopped: check server.log"
    return Finding("overdue", "bad", sentence, cure)


def _parked(tx: Tx, waiting: Sequence[Run]) -> Finding:
    """Find runs that wait for a free lane: they would wait forever."""
    of_lanes = [run for run in waiting if run.lane is not None]
    holders = tx.lanes.holders() if of_lanes else {}
    alarms = tx.alarms.by_refs(ALARM_RUN, [run.run_id for run in of_lanes]) if of_lanes else {}
    forgotten = [
        run
        for run in of_lanes
        if run.lane not in holders and (alarm := alarms.get(run.run_id)) is not None and alarm.parked
    ]
    if not forgotten:
        return Finding("lanes", "ok", "no run waits for a free lane")
    lanes = ", ".join(sorted({repr(run.lane) for run in forgotten})[:NAMED_MAX])
    sentence = f"{len(forgotten)} runs are waiting for lanes that are free: {lanes}"
    return Finding("lanes", "bad", sentence, "pause and resume their schedules", _slugs(tx, forgotten))


def _labels(tx: Tx, live: Sequence[Node], now: Instant) -> Finding:
    """Labels that schedules or runs need and no live node has: they wait until a node has one."""
    wanted = [queue for queue in tx.labelled.queues() if not has_node(queue, live, now=now)]
    if not wanted:
        return Finding("labels", "ok", "every label that a schedule needs is on a living node")
    schedules = tx.labelled.due_schedules(wanted, now=INSTANT_MAX, limit=NAMED_MAX)
    runs = tx.labelled.due_runs(wanted, now=INSTANT_MAX, limit=NAMED_MAX)
    waiting = {row.schedule_id for row in schedules} | {run.schedule_id for run in runs}
    slugs = names_of(tx, waiting).values()
    sentence = "; ".join(f"no live node has {named(queue)}" for queue in wanted[:NAMED_MAX])
    cure = "start a node with the label, or add it to [node] labels in the wakeful.toml of one"
    return Finding("labels", "warn", f"{sentence}; waiting: {', '.join(sorted(slugs))}", cure, sorted(slugs))


class _Troubled(NamedTuple):
    findings: Sequence[Finding]
    failing: int
    late: int


def _schedules(tx: Tx, now: Instant) -> _Troubled:
    """The schedules with problems, by kind."""
    troubled = queries.chosen(
        tx, queries.Choice(limit=TROUBLED_MAX, is_troubled=True), now=now, terms=Terms()
    ).schedules
    invalid = [view.slug for view in troubled if view.status == "invalid"]
    disabled = [view.slug for view in troubled if view.status == "disabled"]
    failing = [view.slug for view in troubled if view.health == "failing" and view.slug not in {*invalid, *disabled}]
    late = [view.slug for view in troubled if view.health == "late"]
    findings = [
        _named("invalid", invalid, "every schedule can be read", "cannot be read", "correct it: wakeful edit SLUG"),
        _named(
            "disabled",
            disabled,
            "no schedule was disabled after errors",
            "disabled after errors",
            "fix the cause, then: wakeful resume SLUG",
        ),
        _named(
            "failing",
            failing,
            "no schedule is failing",
            "failing",
            "see why: wakeful why SLUG; list open incidents: wakeful alerts",
        ),
        _named("late", late, "no schedule is late", "late", "see why: wakeful why SLUG"),
    ]
    return _Troubled(findings, len(troubled) - len(late), len(late))


def _incidents(count: int) -> Finding:
    """Open incidents that were reported."""
    if count == 0:
        return Finding("alerts", "ok", "no incident is open")
    return Finding("alerts", "warn", f"open incidents: {count}", "see them: wakeful alerts")


def _lone_nodes(nodes: Sequence[Node], now: Instant) -> Finding:
    """Find nodes that died while others continue: no outage, but someone should check."""
    live = [node for node in nodes if node.voided_at is None and node.lease_until > now]
    latest = {(node.host, node.name): node.started_at for node in sorted(live, key=lambda node: node.started_at)}
    died = [
        node
        for node in nodes
        if node.voided_at is not None
        and node.voided_at >= node.lease_until
        and now - node.voided_at < DIED_WITHIN
        and latest.get((node.host, node.name), 0) <= node.last_tick_at  # else it was restarted
    ]
    if not live or not died:
        return Finding("nodes", "ok", "no node died while others continued")
    named = ", ".join(f"{node.name} (pid {node.pid} on {node.host})" for node in died[:NAMED_MAX])
    return Finding("nodes", "warn", f"died while others continued: {named}", "restart it, if it is still needed")


def _terms(live: Sequence[Node]) -> Finding:
    """Check that all nodes report under the same rules."""
    if len({node.terms for node in live if node.terms}) <= 1:
        return Finding("settings", "ok", "all nodes have the same [alerts] and [budgets]")
    named = ", ".join(f"{node.name} on {node.host}" for node in live[:NAMED_MAX])
    cure = "give all of them the same [alerts] and [budgets] in wakeful.toml"
    return Finding("settings", "warn", f"nodes have different [alerts] or [budgets]: {named}", cure)


def _named(name: str, slugs: Sequence[str], none: str, state: str, cure: str) -> Finding:
    """The finding about schedules in a state; `none` if there are none. If it is one, its name is in the command."""
    if not slugs:
        return Finding(name, "ok", none)
    count = f"{len(slugs)} schedules"
    if len(slugs) == 1:
        count, cure = "1 schedule", cure.replace("SLUG", slugs[0])
    named = ", ".join(slugs[:NAMED_MAX]) + (" and others" if len(slugs) > NAMED_MAX else "")
    return Finding(name, "warn", f"{count} {state}: {named}", cure, slugs[:NAMED_MAX])


def _slugs(tx: Tx, runs: Sequence[Run]) -> Sequence[str]:
    return sorted(names_of(tx, {run.schedule_id for run in runs[:NAMED_MAX]}).values()) or ()


def _ago(length: Duration) -> str:
    return f"{format_duration(max(length - length % SECOND, 0))} ago"
