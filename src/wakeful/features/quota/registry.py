"""Slot definitions: from the settings, which take precedence, or from the store, written over REST."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from wakeful.config.slots import AnySlot, Quota
from wakeful.core.errors import Invalid
from wakeful.core.refusals import Conflict
from wakeful.core.slot.slot import Slot, SlotRules
from wakeful.core.time.timing import Times
from wakeful.features.quota.reported import REPORTED_RULES, ReportedQuota, ReportedSlot, reported_slot
from wakeful.ports.quota import QuotaProvider

MakeProvider: TypeAlias = Callable[[str, AnySlot], QuotaProvider]
ReadSlot: TypeAlias = Callable[[str, Mapping[str, Any]], AnySlot]
"""Parses a slot written over REST; raises `Invalid` with every error."""


@dataclass(frozen=True, slots=True)
class Config:
    """The quota part of the settings."""

    slots: Mapping[str, AnySlot] = field(default_factory=dict)
    quota: Quota = field(default_factory=Quota)
    zone: str = "UTC"  # the zone that `local` means
    file: str = "wakeful.toml"


class Defined:
    """A usable slot: its rules and its provider."""

    __slots__ = ("is_from_settings", "provider", "rules", "written")

    def __init__(
        self, written: AnySlot | ReportedSlot, rules: SlotRules, provider: QuotaProvider, is_from_settings: bool
    ) -> None:
        self.written: Final = written
        self.rules: Final = rules
        self.provider: Final = provider
        self.is_from_settings: Final = is_from_settings


@dataclass(frozen=True, slots=True)
class Unusable:
    """A stored slot that is unusable (e.g. its variable is missing); it affects no other slot (L9)."""

    reason: str


class SlotRegistry:
    """The compiled definition of every slot."""

    def __init__(self, config: Config, make_provider: MakeProvider, read_slot: ReadSlot) -> None:
        self._make = make_provider
        self._read = read_slot
        self._stored: dict[str, tuple[tuple[int, int, str], Defined | Unusable]] = {}
        self._retired: list[QuotaProvider] = []
        self._config = config
        self._settings = self._from_settings({}, config)

    @property
    def config(self) -> Config:
        return self._config

    @property
    def names(self) -> frozenset[str]:
        """The names of the slots in the settings."""
        return frozenset(self._settings)

    def change(self, config: Config) -> None:
        """Apply changed settings. A provider in use finishes its request first."""
        before, self._settings = self._settings, self._from_settings(self._settings, config)
        kept = {id(defined.provider) for defined in self._settings.values()}
        self._retired += [defined.provider for defined in before.values() if id(defined.provider) not in kept]
        self._config = config
        self._forget_stored()

    def of(self, slot: Slot) -> Defined | Unusable:
        """The current definition of this slot."""
        known = self._settings.get(slot.name)
        if known is not None:
            return known
        if slot.definition is None:
            return Unusable("it is not defined in this process's settings")
        # Keyed by row and text: a slot that was removed and recreated restarts its version numbers.
        key = (slot.slot_id, slot.version, slot.definition)
        kept = self._stored.get(slot.name)
        if kept is None or kept[0] != key:
            if kept is not None and isinstance(kept[1], Defined):
                self._retired.append(kept[1].provider)
            self._stored[slot.name] = kept = (key, self._from_store(slot.name, slot.definition))
        return kept[1]

    def check(self, name: str, data: Mapping[str, Any]) -> None:
        """Check a definition; raises `Invalid`, or `Conflict` if the settings define that slot."""
        if name in self._settings:
            raise Conflict(f"slot {name} is defined in {self._config.file}; change it there")
        self._read(name, data)

    def define(self, name: str, data: Mapping[str, Any]) -> Defined:
        """Check a definition without storing it; raises `Invalid`."""
        written = self._read(name, data)
        return Defined(written, self._rules(written, self._config), self._make(name, written), False)

    async def close(self) -> None:
        """Close all providers."""
        self._forget_stored()
        for provider in [*self._retired, *(defined.provider for defined in self._settings.values())]:
            await provider.close()
        self._retired = []

    def _from_settings(self, before: Mapping[str, Defined], config: Config) -> dict[str, Defined]:
        definitions: dict[str, Defined] = {}
        for name, written in config.slots.items():
            known = before.get(name)
            same = known is not None and known.written == written
            provider = known.provider if known is not None and same else self._make(name, written)
            definitions[name] = Defined(written, self._rules(written, config), provider, True)
        return definitions

    def _from_store(self, name: str, definition: str) -> Defined | Unusable:
        try:
            data = json.loads(definition)
            reported = reported_slot(data)
            if reported is not None:
                return Defined(reported, REPORTED_RULES, ReportedQuota(reported.agent), False)
            return self.define(name, data)
        except Invalid as invalid:
            return Unusable("; ".join(map(str, invalid.errors)))
        except Exception as error:  # a bad stored text affects only this slot
            return Unusable(str(error) or type(error).__name__)

    def _forget_stored(self) -> None:
        self._retired += [known.provider for _, known in self._stored.values() if isinstance(known, Defined)]
        self._stored.clear()

    def _rules(self, written: AnySlot, config: Config) -> SlotRules:
        quota = config.quota
        zone = config.zone if written.timezone == "local" else written.timezone
        return SlotRules(
            enabled=written.enabled,
            interval=written.interval,
            times=Times(written.times, zone) if written.times else None,
            after_reset=written.after_reset,
            poll=written.poll,
            retry_window=quota.retry_window if written.retry_window is None else written.retry_window,
            errors_max=quota.errors_max if written.errors_max is None else written.errors_max,
            backoff_cap=quota.backoff_cap if written.backoff_cap is None else written.backoff_cap,
        )
