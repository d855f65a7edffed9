"""Which processes loaded the functions of Python workflows, and what waits because none of those ticks.

A process registers what it loaded when it starts (`Loaded`), also if another process holds the clock. A process that
ticks leaves workflows that it has not loaded to others: for a moment it does not touch their alarms, then it postpones
them, so that they are neither lost nor checked in a loop.
"""

import sys
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from wakeful.core.run.runs import Run
from wakeful.core.schedule.gates import ELSEWHERE, Defer
from wakeful.core.time.instants import MINUTE, SECOND, Duration, Instant, format_instant
from wakeful.core.workflow.rows import Workflow
from wakeful.core.workflow.rules import rings_at
from wakeful.engine.membership import Identity
from wakeful.features.workflows.loaded_rows import Loaded, LoadedWorkflows
from wakeful.features.workflows.state import read_flows
from wakeful.integrations.actions.process_table import started_of
from wakeful.ports.store import Node, Tx
from wakeful.ports.workflows import StoredWorkflows

LEFT_FOR: Final[Duration] = 2 * SECOND
ASKED_AGAIN: Final[Duration] = 5 * SECOND
DEFERRED_MAX: Final[Duration] = 10 * SECOND
OUTDATED_AFTER: Final[Duration] = MINUTE
WORKFLOWS_MAX: Final = 1_000
NAMED_MAX: Final = 3


class Unloaded(NamedTuple):
    """A workflow that waits for a process with its functions."""

    workflow: str
    sentence: str
    cure: str


def deferred(run: Run, now: Instant) -> Defer:
    """The wait of a run whose function is not here; a long one is checked less often."""
    return Defer(now + min(max((now - run.due_at) // 10, SECOND), DEFERRED_MAX), ELSEWHERE)


def note_loaded(tx: Tx, names: Sequence[str], own: Identity, *, now: Instant) -> None:
    """Register what this process loaded, in place of processes that have ended."""
    if not names:
        return
    for row in tx[LoadedWorkflows].all():
        if row.workflow in names and row.host == own.host and not _is_running(row):
            tx[LoadedWorkflows].forget(row)
    started, program = started_of(own.pid) or "", Path(sys.argv[0]).name or "python"
    tx[LoadedWorkflows].put_many(
        [Loaded(name, own.name, own.host, own.pid, started, program, now, None) for name in sorted(names)]
    )


def note_ended(tx: Tx, own: Identity, *, now: Instant) -> None:
    """This process stops. The rows stay, so that people can be told who had the functions."""
    rows = [row for row in tx[LoadedWorkflows].all() if _place(row) == own and row.ended_at is None]
    tx[LoadedWorkflows].put_many([row._replace(ended_at=now) for row in rows])


def unloaded(tx: Tx, *, now: Instant) -> list[Unloaded]:
    """The workflows with work that is due while no ticking process has their functions."""
    workflows = tx[StoredWorkflows].of_python(limit=WORKFLOWS_MAX)
    if not workflows:
        return []
    live = [node for node in tx.nodes.all() if node.voided_at is None and node.lease_until > now]
    ticking = {Identity(node.name, node.host, node.pid) for node in live}
    by_name: dict[str, list[Loaded]] = {}
    for row in tx[LoadedWorkflows].all():
        by_name.setdefault(row.workflow, []).append(row)
    here = {row.workflow for row in tx[LoadedWorkflows].all() if row.ended_at is None and _place(row) in ticking}
    waiting = _waiting(tx, workflows, here, now) if live else []
    return [_outdated(name, live) if name in here else _unloaded(name, live, by_name.get(name, [])) for name in waiting]


def _waiting(tx: Tx, workflows: Sequence[Workflow], here: Collection[str], now: Instant) -> list[str]:
    """The workflows that have something to do now that no process does. `here` are those that a process that ticks has
    loaded: perhaps in another version, which lacks the handler of the run that waits."""
    open_ids = [workflow.open_run_id for workflow in workflows if workflow.open_run_id is not None]
    runs = tx.runs.lock(open_ids) if open_ids else {}
    waits = {
        run.run_id: now - run.due_at for run in runs.values() if run.outcome == "waiting" and run.reason == ELSEWHERE
    }
    names = [
        workflow.name
        for workflow in workflows
        if (wait := waits.get(workflow.open_run_id or 0)) is not None
        and (wait >= OUTDATED_AFTER or workflow.name not in here)
    ]
    idle = [workflow for workflow in workflows if workflow.open_run_id is None and workflow.name not in here]
    for flow in read_flows(tx, idle).values() if idle else ():
        at = rings_at(flow, now)
        names += [flow.workflow.name] if at is not None and at <= now else []
    return sorted(names)


def _outdated(name: str, live: Sequence[Node]) -> Unloaded:
    ticks = ", ".join(f"{node.name} (pid {node.pid} on {node.host})" for node in live[:NAMED_MAX])
    sentence = f"{name} is waiting for a handler that the module loaded by {ticks} does not have"
    return Unloaded(name, sentence, "load the same version of the module everywhere, and restart those processes")


def _unloaded(name: str, live: Sequence[Node], loaded: Sequence[Loaded]) -> Unloaded:
    ticks = ", ".join(f"{node.name} (pid {node.pid} on {node.host})" for node in live[:NAMED_MAX])
    verb = "ticks and has" if len(live) == 1 else "tick and have"
    start = f"{name} is waiting for its Python functions: {ticks} {verb} not loaded them"
    running = [row for row in loaded if _is_running(row)]
    if running:
        has = ", ".join(f"{row.program} (pid {row.pid})" for row in running[:NAMED_MAX])
        verb = "has" if len(running) == 1 else "have"
        cure = "stop the process that ticks, or add the module to its [workflows] modules and restart it"
        return Unloaded(name, f"{start}; {has} {verb}, but not the clock", cure)
    cure = "start the program that declares it, or add its module to [workflows] modules and restart the daemon"
    if not loaded:
        return Unloaded(name, f"{start}, and no running process has", cure)
    last = loaded[-1]
    until = "has died" if last.ended_at is None else f"ended at {format_instant(last.ended_at)}"
    return Unloaded(name, f"{start}; {last.program} (pid {last.pid} on {last.host}), which had, {until}", cure)


def _place(row: Loaded) -> Identity:
    return Identity(row.node, row.host, row.pid)


def _is_running(row: Loaded) -> bool:
    """Whether the process runs on this machine. The start includes the boot, so it never matches elsewhere."""
    return row.ended_at is None and bool(row.started) and started_of(row.pid) == row.started
