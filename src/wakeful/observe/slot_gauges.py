"""Quota slot metrics, from the last report of each slot."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from prometheus_client.core import GaugeMetricFamily

from wakeful.ports.store import Report

STREAM: Final = "slots"
GONE: Final = "stopped"


class SlotGauges:
    """The last report about each slot."""

    def __init__(self) -> None:
        self._slots: dict[str, Mapping[str, object]] = {}

    def listen(self, reports: Sequence[Report]) -> None:
        """Keep the last report of each slot; a removed slot has no metrics."""
        for report in reports:
            if report.stream != STREAM or report.slot is None:
                continue
            self._slots.pop(report.slot, None)
            if report.what != GONE:
                self._slots[report.slot] = report.data

    def family(self, name: str, means: str) -> GaugeMetricFamily:
        """One metric, with a sample for each slot that has a value."""
        family = GaugeMetricFamily(name, means, labels=["slot"])
        for slot, data in sorted(self._slots.items()):
            value = _VALUES[name](data)
            if value is not None:
                family.add_metric([slot], value)
        return family


def _number(data: Mapping[str, object], field: str) -> float | None:
    value = data.get(field)
    return float(value) if isinstance(value, int | float) else None


_VALUES: Final[Mapping[str, Callable[[Mapping[str, object]], float | None]]] = {
    "wakeful_slot_percentage": lambda data: _number(data, "percentage"),
    "wakeful_slot_warm": lambda data: float(data.get("resetAt") is not None),
    "wakeful_slot_quota_errors": lambda data: _number(data, "quotaErrors"),
    "wakeful_slot_wake_errors": lambda data: _number(data, "wakeErrors"),
    "wakeful_slot_disabled": lambda data: float(bool(data.get("isDisabled") or data.get("isWakeDisabled"))),
}
