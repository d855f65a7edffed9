"""Names of 0.2 for the process that an app is; all are deprecated."""

from typing import TYPE_CHECKING, Unpack, cast

from wakeful.api.deprecation import warn_of
from wakeful.app.bootstrap import Agents
from wakeful.app.runtime_config import Changes
from wakeful.core.money.spending import ScheduleCost
from wakeful.core.self_scheduling.limits import SelfSchedulingTerms
from wakeful.features.schedules.rules import Terms
from wakeful.features.schedules.views import ScheduleView
from wakeful.ports.clock import Moment
from wakeful.ports.store import Store

if TYPE_CHECKING:
    from wakeful.api.python import Wakeful


class OldProcess:
    """What 0.2 had as methods of the app."""

    @property
    def address(self) -> str:
        """Deprecated: what the app was created with."""
        warn_of("address", instead="keep the path or URL that the app was created with")
        return self._process._url

    @property
    def store(self) -> Store:
        """Deprecated: the operations of the nouns."""
        warn_of("store", instead="use the operations of app.schedules, app.ledger and the other nouns")
        return self._process._store

    def moment(self) -> Moment:
        """Deprecated: `app.now`."""
        warn_of("moment", "now")
        return self._process._moment()

    @property
    def is_started(self) -> bool:
        """Deprecated: what is asked before the start raises `NotStarted`."""
        warn_of("is_started", instead="what is asked before the start raises NotStarted")
        return self._process._is_started

    @property
    def is_ticking(self) -> bool:
        """Deprecated: `app.system.nodes`."""
        warn_of("is_ticking", "system.nodes")
        return self._process._is_ticking

    async def change(self, **changes: Unpack[Changes]) -> None:
        """Deprecated: start an app with the other settings."""
        warn_of("change", instead="stop the app, and start one with the other settings")
        await self._process._change(**changes)

    async def change_otel(self, endpoint: str | None) -> None:
        """Deprecated: start an app with another `otel`."""
        warn_of("change_otel", instead="stop the app, and start one with the other settings")
        await self._process._change_otel(endpoint)

    def change_agents(self, agents: Agents) -> None:
        """Deprecated: start an app with other `agents`."""
        warn_of("change_agents", instead="stop the app, and start one with the other settings")
        self._process._change_agents(agents)

    def change_self_scheduling(self, terms: SelfSchedulingTerms) -> None:
        """Deprecated: start an app with another `self_scheduling`."""
        warn_of("change_self_scheduling", instead="stop the app, and start one with the other settings")
        self._process._change_self_scheduling(terms)

    @property
    def default_zone(self) -> str:
        """Deprecated: what the app was created with."""
        warn_of("default_zone", instead="keep the timezone that the app was created with")
        return self._process._open.conditions.default_zone

    @property
    def terms(self) -> Terms:
        """Deprecated, without a successor."""
        warn_of("terms", instead="keep the settings that the app was created with")
        return self._process._terms

    async def run_of_token(self, token: str) -> int | None:
        """Deprecated, without a successor."""
        warn_of("run_of_token", instead="the daemon recognises runs by their tokens")
        return await self._process._run_of_token(token)

    async def cost_of(self, view: ScheduleView) -> ScheduleCost | None:
        """Deprecated: `cost` of what `app.get` returns."""
        warn_of("cost_of", instead="use the cost of what app.get returns")
        return await self._process._cost_of(view)

    @property
    def _process(self) -> "Wakeful":
        return cast("Wakeful", self)
