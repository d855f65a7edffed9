"""Agents in the ledger: each agent's last turns, and how many sessions it keeps for schedules."""

from collections import Counter
from dataclasses import dataclass
from typing import Final

from wakeful.core.schedule.actions import Prompt
from wakeful.core.schedule.cadence import Cadence
from wakeful.features.schedules import queries
from wakeful.features.schedules.compiled import AGENT_LANE, Compiled, read_stored
from wakeful.features.schedules.run_views import RunView
from wakeful.ports.store import Tx

SCHEDULES_MAX: Final = 10_000
RECENT_MAX: Final = 200
TURNS_MAX: Final = 5
_PAGE: Final = 500


@dataclass(frozen=True, slots=True)
class AgentRecord:
    """One agent in the ledger."""

    turns: tuple[RunView, ...] = ()  # newest first, at most `TURNS_MAX`
    sessions: int = 0

    @property
    def last_turn(self) -> RunView | None:
        return self.turns[0] if self.turns else None


def agent_records(tx: Tx) -> dict[str, AgentRecord]:
    """Records by agent name. Reads the schedules (the first ten thousand), and the newest runs for agents whose
    schedule was removed."""
    sessions: Counter[str] = Counter()
    newest: dict[str, Cadence] = {}
    for agent, cadence in _cadences(tx):
        sessions[agent] += cadence.session_id is not None
        known = newest.get(agent)
        if cadence.last_run_at is not None and (known is None or cadence.last_run_at > (known.last_run_at or 0)):
            newest[agent] = cadence
    last = _recent(tx)
    for agent, cadence in newest.items():
        rows = [cadence.last_row_id] if cadence.last_row_id is not None else []
        for row in tx.runs.page(schedule_id=cadence.schedule_id, limit=1) if rows else ():
            last[agent] = sorted({*last.get(agent, ()), row.run_id}, reverse=True)[:TURNS_MAX]
    return {
        name: AgentRecord(tuple(queries.run(tx, run_id) for run_id in last.get(name, ())), sessions[name])
        for name in {*last, *sessions}
    }


def _cadences(tx: Tx) -> list[tuple[str, Cadence]]:
    """The agents of schedules with a prompt, each with the schedule's cadence."""
    cadences: list[tuple[str, Cadence]] = []
    after: str | None = None
    for _ in range(SCHEDULES_MAX // _PAGE):
        rows = tx.schedules.page(after=after, limit=_PAGE)
        agents: dict[int, str] = {}
        for row in rows:
            compiled = read_stored(row.schedule_id, row.version, row.definition)
            if isinstance(compiled, Compiled) and isinstance(compiled.model.action, Prompt):
                agents[row.schedule_id] = compiled.model.action.agent
        cadences += [(agents[schedule_id], item) for schedule_id, item in tx.cadences.lock(agents).items()]
        if len(rows) < _PAGE:
            break
        after = rows[-1].slug
    return cadences


def _recent(tx: Tx) -> dict[str, list[int]]:
    """The newest runs in each agent's lane, among the newest of all."""
    by_agent: dict[str, list[int]] = {}
    for row in tx.runs.page(limit=RECENT_MAX):
        if row.lane is not None and row.lane.startswith(AGENT_LANE) and row.started_at is not None:
            by_agent.setdefault(row.lane.removeprefix(AGENT_LANE), []).append(row.run_id)
    return {agent: run_ids[:TURNS_MAX] for agent, run_ids in by_agent.items()}
