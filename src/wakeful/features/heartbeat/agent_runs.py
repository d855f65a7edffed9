"""The common part of turn runs and message runs: an agent performs both."""

from collections.abc import Callable
from typing import Final, TypeAlias

from wakeful.core.run.runs import Run, idempotency_key
from wakeful.core.time.instants import Instant
from wakeful.features.heartbeat.rules import HeartbeatTerms
from wakeful.ports.action import Fire
from wakeful.ports.store import Tx

NO_AGENT: Final = "no agent is configured in this process; add one under [agents] in the settings"


BudgetNote: TypeAlias = Callable[[Tx, str, Instant], str | None]
"""What a person is told if a budget of this agent is used up."""


def no_note(_tx: Tx, _agent: str, _now: Instant) -> str | None:
    """There are no budgets."""
    return None


class AgentRuns:
    """Base class of the keepers of turns and messages."""

    def __init__(
        self,
        terms: Callable[[], HeartbeatTerms],
        store_id: str,
        receipt_url: Callable[[int], str | None],
        node: str | None,
        *,
        has_agents: bool,
        budget_note: BudgetNote = no_note,
    ) -> None:
        self._terms = terms
        self._store_id = store_id
        self._receipt_url = receipt_url
        self._node = node  # the name of this node
        self._has_agents = has_agents
        self._budget_note = budget_note

    def _fire(self, run: Run, name: str) -> Fire:
        return Fire.of(run, name, idempotency_key(self._store_id, run), self._receipt_url(run.run_id))
