"""Moving out: schedules as a crontab, or as timers of systemd. What they cannot express is said for each schedule."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from wakeful.core.errors import Invalid
from wakeful.core.schedule.actions import Command
from wakeful.core.schedule.definition import Definition
from wakeful.core.schedule.definition_json import definition_from_json
from wakeful.core.time.instants import Instant
from wakeful.core.time.timing import Timing, resolve
from wakeful.features.moving.as_crontab import crontab_entry
from wakeful.features.moving.as_systemd import systemd_units
from wakeful.features.moving.leaving import Leaving
from wakeful.integrations.imports.entries import EntryRefused
from wakeful.integrations.imports.fitting import difference

Format: TypeAlias = Literal["crontab", "systemd"]
FORMATS: Final[tuple[Format, ...]] = ("crontab", "systemd")
_CARRIED: Final[Mapping[Format, frozenset[str]]] = {
    "crontab": frozenset({"slug", "schedule", "command", "enabled"}),
    "systemd": frozenset({"slug", "schedule", "command", "enabled", "catchUp", "stagger", "timeout"}),
}
_NEVER: Final = (
    "a crontab starts a job again while its last run is in progress, and has no time limit",
    "missed times are not caught up",
)


@dataclass(frozen=True, slots=True)
class LostSchedule:
    """What one schedule loses when it moves out; or why it cannot."""

    slug: str
    lost: Sequence[str]
    refused: str | None


@dataclass(slots=True)
class MovedOut:
    """Schedules as files of another scheduler."""

    files: dict[str, str] = field(default_factory=dict)
    lost: list[LostSchedule] = field(default_factory=list)


def moved_out(files: Mapping[str, str], form: Format, *, zone: str, now: Instant) -> MovedOut:
    """Exported definitions in another form. `zone` is the one of the machine that will run them."""
    moved = MovedOut()
    lines: list[str] = []
    for path, text in sorted(files.items()):
        kind, _, name = path.partition("/")
        slug = name.removesuffix(".json")
        if kind != "schedules":
            moved.lost.append(LostSchedule(f"{kind}/{slug}", (), f"a {form} has nothing like it"))
            continue
        data = json.loads(text)
        try:
            leaving = _leaving(slug, data, zone, now)
            made, lost = _crontab(leaving, lines) if form == "crontab" else _systemd(leaving)
        except (EntryRefused, Invalid) as refused:
            moved.lost.append(LostSchedule(slug, (), str(refused)))
            continue
        moved.files.update(made)
        moved.lost.append(LostSchedule(slug, [*lost, *_fields(data, form)], None))
    if lines:
        moved.files["crontab"] = "".join(lines)
    return moved


def _leaving(slug: str, data: Mapping[str, Any], zone: str, now: Instant) -> Leaving:
    definition: Definition = definition_from_json(data, default_zone=zone, slug=slug)
    action = definition.action
    if not isinstance(action, Command):
        raise EntryRefused("it runs no command, which is all that these can start")
    timing = resolve(definition.timing, now=now, default_zone=zone)
    return Leaving(slug, definition, action, timing, zone, now, data.get("enabled") is not False)


def _crontab(leaving: Leaving, lines: list[str]) -> tuple[dict[str, str], list[str]]:
    entry = crontab_entry(leaving)
    lines.append(entry.text)
    return {}, [*_NEVER, *_different(leaving.timing, entry.times, leaving.now, "cron"), *entry.lost]


def _systemd(leaving: Leaving) -> tuple[dict[str, str], list[str]]:
    units = systemd_units(leaving)
    different = [] if units.times is None else _different(leaving.timing, units.times, leaving.now, "systemd")
    return units.files, [*different, *units.lost]


def _different(
    timing: Timing, times: Callable[[Instant, int], Sequence[Instant]], now: Instant, there: str
) -> list[str]:
    problem = difference(timing, times, now=now)
    return [] if problem is None else [problem.replace("in the source", f"in {there}").replace("the source", there)]


def _fields(data: Mapping[str, Any], form: Format) -> list[str]:
    """The fields of the definition that have no place there."""
    return sorted(name for name in data if name not in _CARRIED[form])
