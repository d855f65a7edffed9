"""What an app is made with: the options of programs, and what a daemon around it provides."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from wakeful.app.bootstrap import Agents, MakeFeature
from wakeful.app.delivery import MakeChannels
from wakeful.app.heartbeat_settings import Heartbeat
from wakeful.app.money import Budgets
from wakeful.app.runtime_config import Changes
from wakeful.app.values import MakeListener, MakeService, MakeSink, Watched
from wakeful.core.delivery.alert_rules import AlertTerms
from wakeful.core.delivery.retries import DeliveryLimits
from wakeful.core.self_scheduling.limits import SelfSchedulingTerms
from wakeful.core.time.instants import Instant
from wakeful.features.heartbeat.feature import HeartbeatFeature
from wakeful.features.money.feature import Money
from wakeful.observe.log_reading import RunLog
from wakeful.ports.action import Withholds
from wakeful.ports.clock import Clock

if TYPE_CHECKING:
    from wakeful.config import SettingsStatus
    from wakeful.features.quota.feature import Quota
    from wakeful.integrations.plugins.loading import Plugins

LogOfRun: TypeAlias = Callable[[int, Instant, Instant], Awaitable[RunLog]]
"""The log lines of a run between two times."""


class Options(Changes, total=False):
    """Keywords of `Wakeful`."""

    tick: bool
    name: str | None
    clock: Clock | None
    agents: Agents | None
    features: Sequence[MakeFeature]
    workflow_modules: Sequence[str]
    heartbeat: Heartbeat | HeartbeatFeature | None
    channels: MakeChannels | None
    delivery: DeliveryLimits | None
    alerts: AlertTerms | None
    budgets: Budgets | Money | None
    self_scheduling: SelfSchedulingTerms | None
    otel: str | None
    home: str | Path | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """What surrounds the app in a daemon: addresses, observers, secrets, settings."""

    receipts_at: str | None = None  # where agents and commands post receipts
    api_at: str | None = None  # where programs on this machine reach the API
    withholds: Withholds | None = None
    redact: Callable[[str], str] | None = None
    sink: MakeSink | None = None
    stream: Watched | None = None
    listener: MakeListener | None = None
    background: MakeService | None = None
    workflow_folder: Path | None = None
    settings: "Callable[[], SettingsStatus] | None" = None  # those in effect
    quota: "Callable[[], Quota] | None" = None  # the slots
    log_of_run: LogOfRun | None = None
    providers: Callable[[], Mapping[str, str]] = dict  # of the models of agents, by agent, for traces
    plugins: "Plugins | None" = None  # those that the settings name
    page_at: Callable[[], str] = str  # the address of the page


def refuse_unknown(options: Options) -> None:
    """Refuse a misspelt keyword, naming the nearest one."""
    known = [*Changes.__annotations__, *Options.__annotations__]
    for name in options:
        if name not in known:
            near = get_close_matches(name, known, 1)
            cure = f"did you mean {near[0]!r}?" if near else f"the options are {', '.join(known)}"
            raise TypeError(f"Wakeful has no option {name!r}; {cure}")
