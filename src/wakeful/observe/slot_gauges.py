"""Quota slot metrics, from the last report of each slot."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from prometheus_client.core import GaugeMetricFamily

from wakeful.ports.event_data import SlotChanged
from wakeful.ports.events import SLOT_STOPPED
from wakeful.ports.store import Report


class SlotGauges:
    """The last report about each slot."""

    def __init__(self) -> None:
        self._slots: dict[str, SlotChanged] = {}

    def listen(self, reports: Sequence[Report[Any]]) -> None:
        """Keep the last report of each slot; a removed slot has no metrics."""
        for report in reports:
            slot = report.about
            if not isinstance(slot, SlotChanged):
                continue
            self._slots.pop(slot.slot, None)
            if report.event is not SLOT_STOPPED:
                self._slots[slot.slot] = slot

    def family(self, name: str, means: str) -> GaugeMetricFamily:
        """One metric, with a sample for each slot that has a value."""
        family = GaugeMetricFamily(name, means, labels=["slot"])
        for slot, data in sorted(self._slots.items()):
            value = _VALUES[name](data)
            if value is not None:
                family.add_metric([slot], value)
        return family


_VALUES: Final[Mapping[str, Callable[[SlotChanged], float | None]]] = {
    "wakeful_slot_percentage": lambda slot: slot.percentage,
    "wakeful_slot_warm": lambda slot: float(slot.reset_at is not None),
    "wakeful_slot_quota_errors": lambda slot: slot.quota_errors,
    "wakeful_slot_wake_errors": lambda slot: slot.wake_errors,
    "wakeful_slot_disabled": lambda slot: float(slot.is_disabled or slot.is_wake_disabled),
}
