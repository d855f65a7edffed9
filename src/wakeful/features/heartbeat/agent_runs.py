"""What the runs of turns and of messages have in common: an agent performs them."""

from collections.abc import Callable
from typing import Final

from wakeful.core.run.runs import Run
from wakeful.features.heartbeat.rules import HeartbeatTerms
from wakeful.ports.action import Fire

NO_AGENT: Final = "no agent is configured in this process; add one under [agents] in the settings"


class AgentRuns:
    """The base of both keepers."""

    def __init__(
        self,
        terms: Callable[[], HeartbeatTerms],
        store_id: str,
        receipt_url: Callable[[int], str | None],
        node: str | None,
        *,
        has_agents: bool,
    ) -> None:
        self._terms = terms
        self._store_id = store_id
        self._receipt_url = receipt_url
        self._node = node  # the name of this node
        self._has_agents = has_agents

    def _fire(self, run: Run, name: str) -> Fire:
        key = f"{self._store_id}-{run.schedule_id}-{run.occurrence}"
        return Fire.of(run, name, key, self._receipt_url(run.run_id))
