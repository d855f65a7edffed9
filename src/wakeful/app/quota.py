"""An app's quota slots: plugged in from the settings, and updated when they change."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from wakeful.app.bootstrap import FeatureContext, resolve_zone
from wakeful.app.slots_of_runs import slot_of
from wakeful.config import Settings
from wakeful.config.one_slot import read_slot, secrets_of
from wakeful.config.slots import AnySlot
from wakeful.core.slot.windows import UsageWindow
from wakeful.features.quota.feature import Quota
from wakeful.features.quota.registry import Config, SlotRegistry
from wakeful.integrations.plugins.loading import Plugins
from wakeful.integrations.providers.from_settings import make_provider
from wakeful.ports.action import Withholds
from wakeful.ports.clock import Clock
from wakeful.ports.handlers import FeatureHooks
from wakeful.ports.quota import QuotaProvider


class QuotaSlots:
    """A process's quota feature; created when it is plugged in."""

    def __init__(
        self,
        settings: Settings,
        *,
        home: Path,
        file: str,
        learn: Callable[[Iterable[str]], None] = lambda _: None,
        withholds: Withholds | None = None,
        plugins: Plugins | None = None,
    ) -> None:
        self._settings = settings
        self._home = home
        self._file = file
        self._learn = learn  # secrets to be masked in all output
        self._withholds = withholds  # variables that programs do not get
        self._plugins = plugins
        self._quota: Quota | None = None

    @property
    def quota(self) -> Quota:
        if self._quota is None:
            raise RuntimeError("not started; quota slots are available once the app has started")
        return self._quota

    async def report(self, agent: str, windows: tuple[UsageWindow, ...]) -> None:
        """Record the usage windows that an agent's turn reported."""
        await self.quota.report(agent, windows)

    async def plug(self, context: FeatureContext) -> FeatureHooks:
        """Create the feature on an open store."""

        def make(name: str, slot: AnySlot) -> QuotaProvider:
            return make_provider(
                name,
                slot,
                clock=context.clock,
                home=self._home,
                zone=resolve_zone("local"),
                listener=context.listener,
                withholds=self._withholds,
                plugins=self._plugins,
            )

        def read(name: str, data: Mapping[str, Any]) -> AnySlot:
            slot = read_slot(name, data, home=self._home)
            self._learn(secrets_of(slot))
            return slot

        self._quota = quota = Quota(
            context.store,
            context.clock,
            store_id=context.store_id,
            ring_bell=context.ring_bell,
            apply=context.apply,
            slot_of=slot_of(context.compilations),
            config=self._config(self._settings),
            make_provider=make,
            read_slot=read,
        )
        return quota.plug()._replace(on_settings=[self._changed])

    async def _changed(self, old: Settings, new: Settings) -> None:
        if (old.slots, old.quota) != (new.slots, new.quota):
            await self.quota.change(self._config(new))

    def _config(self, settings: Settings) -> Config:
        return Config(settings.slots, settings.quota, resolve_zone("local"), self._file)


def book_of(settings: Settings, clock: Clock, *, home: Path, file: str) -> SlotRegistry:
    """The slots that these settings define, for reading only: no provider is called."""

    def make(name: str, slot: AnySlot) -> QuotaProvider:
        return make_provider(name, slot, clock=clock, home=home, zone=resolve_zone("local"))

    config = Config(settings.slots, settings.quota, resolve_zone("local"), file)
    return SlotRegistry(config, make, lambda name, data: read_slot(name, data, home=home))
