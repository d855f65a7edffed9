"""The runs that call: in whose name the programs of a run may do what.

Every kind of run says so itself (`RunKeeper.agent_of`), so nothing here knows the names of kinds.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple

from wakeful.core.run.runs import Run, RunKind
from wakeful.core.time.instants import DAY, Instant
from wakeful.features.schedules.owned import Actor
from wakeful.ports.charges import Charges
from wakeful.ports.handlers import RunAgent, RunKeeper
from wakeful.ports.names import names_of
from wakeful.ports.ownerships import Ownerships
from wakeful.ports.store import Tx

RUNS_MAX: Final = 10_000
TURN_MAX: Final = 7 * DAY
"""How long ago a turn that just ended may have begun."""
DEFAULT_AGENT: Final = "default"

Keepers = Mapping[RunKind, RunKeeper]


class CallingRun(NamedTuple):
    """A run that a process belongs to."""

    run_id: int
    is_agents: bool  # whether it is an agent's turn, or a command that an agent wrote
    is_running: bool
    agent: str | None  # None: the default agent


def agent_of(tx: Tx, run: Run, keepers: Keepers) -> RunAgent | None:
    """The agent in whose name a run's programs call; None if this process cannot tell."""
    keeper = keepers.get(run.kind)
    return None if keeper is None else keeper.agent_of(tx, run)


def actor_of(tx: Tx, run: Run, keepers: Keepers, *, default: str) -> Actor:
    """The run as a caller, with its lineage and where its reply goes."""
    name = names_of(tx, [run.schedule_id])[run.schedule_id]
    agent = agent_of(tx, run, keepers)
    if agent is None:
        return Actor(default, run.run_id, name, is_agent_run=False)
    return Actor(agent.name or default, run.run_id, name, agent.depth, agent.reply_to, is_agent_run=agent.is_turn)


def running_on(tx: Tx, host: str) -> list[Run]:
    """The runs in progress on one machine."""
    nodes = [node.node_id for node in tx.nodes.all() if node.host == host]
    runs = tx.runs.of_nodes(nodes, limit=RUNS_MAX) if nodes else []
    return [run for run in runs if run.outcome == "running"]


def agent_at_work(tx: Tx, keepers: Keepers, *, host: str, since: Instant) -> Actor | None:
    """An agent that works on this machine, or has since `since`: one whose turn is open, or whose command runs."""
    nodes = [node.node_id for node in tx.nodes.all() if node.host == host]
    for run in tx.runs.of_nodes(nodes, limit=RUNS_MAX) if nodes else []:
        if is_agents(tx, run, keepers):
            return actor_of(tx, run, keepers, default=DEFAULT_AGENT)
    ended = sorted({*tx[Charges].ended_since(since, asked_since=since - TURN_MAX), *tx[Ownerships].last_runs()})
    here = _ended_on(tx, ended, nodes, since) if ended else []
    found = next((run for run in here if is_agents(tx, run, keepers)), None)
    return None if found is None else actor_of(tx, found, keepers, default=DEFAULT_AGENT)


def _ended_on(tx: Tx, run_ids: Sequence[int], nodes: Collection[int], since: Instant) -> list[Run]:
    """Those of these runs of which an attempt on one of these nodes has ended since: the last one, or one before a
    retry, for which the run may still wait."""
    earlier = tx.runs.attempts(run_ids)
    return [
        run
        for run in tx.runs.lock(run_ids).values()
        if any(
            node in nodes and ended_at is not None and ended_at >= since
            for node, ended_at in [
                (run.owner, run.ended_at),
                *((attempt.owner, attempt.ended_at) for attempt in earlier.get(run.run_id, ())),
            ]
        )
    ]


def is_agents(tx: Tx, run: Run, keepers: Keepers) -> bool:
    """Whether this is an agent's turn, or a command that an agent wrote."""
    agent = agent_of(tx, run, keepers)
    return agent is not None and agent.is_agents


def calling_run(
    tx: Tx, keepers: Keepers, *, host: str, leaders: Collection[int], marked: Collection[int]
) -> CallingRun | None:
    """The run that a process belongs to: one whose program has one of these process ids on this machine, or one that
    gave the process its token (`marked`). If there are several, an agent's comes first."""
    led = [run for run in running_on(tx, host) if _process_of(run) in leaders]
    given = tx.runs.lock(sorted(marked)) if marked else {}
    found = [_calling(tx, run, keepers) for run in {**{run.run_id: run for run in led}, **given}.values()]
    return min(found, key=lambda run: (not run.is_agents, not run.is_running, run.run_id), default=None)


def _calling(tx: Tx, run: Run, keepers: Keepers) -> CallingRun:
    agent = agent_of(tx, run, keepers)
    is_agents = agent is None or agent.is_agents  # a kind that this process does not know may be a turn
    return CallingRun(run.run_id, is_agents, run.outcome == "running", None if agent is None else agent.name)


def _process_of(run: Run) -> int | None:
    """The id of the run's own process, which leads a session: each is started in a separate one."""
    process = json.loads(run.process) if run.process else {}
    return process.get("pid") if isinstance(process, dict) else None
