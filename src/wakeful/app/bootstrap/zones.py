"""The time zone and zone rules of this machine, and replanning when the rules change."""

import zoneinfo
from importlib.metadata import version
from pathlib import Path
from typing import Final

import tzlocal

from wakeful.app.bootstrap.parts import Parts
from wakeful.ports.meta import Meta

ZONE_RULES: Final = "zone_rules"
STEP: Final = 500


async def replan_if_zones_changed(parts: Parts, rules: str) -> bool:
    """Replan zoned schedules if they were planned with other time-zone rules than this machine has now."""
    known = await parts.store.read(lambda tx: tx[Meta].value(ZONE_RULES))
    if known == rules:
        return False
    step: tuple[int, list[str]] | None = (0, [])
    while known is not None and step is not None:
        start = step[0]
        step = await parts.store.write(
            lambda tx, start=start: parts.alarms.replan_zoned(tx, after_id=start, limit=STEP)  # type: ignore[misc]
        )
    await parts.store.write(lambda tx: tx[Meta].set(ZONE_RULES, rules))
    return known is not None


def resolve_zone(timezone: str) -> str:
    """A zone's name; `local` is the system's zone."""
    return tzlocal.get_localzone_name() if timezone == "local" else timezone


def zone_rules() -> str:
    """The version of the time-zone rules in use."""
    for folder in zoneinfo.TZPATH:
        listing = Path(folder) / "tzdata.zi"
        if listing.is_file():
            with listing.open(encoding="utf-8") as lines:
                return f"system {lines.readline().strip('# ').strip()}"
    return f"package {version('tzdata')}"
