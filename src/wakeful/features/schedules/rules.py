"""Terms for all schedules; they may change at runtime."""

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from wakeful.core.schedule.actions import Prompt
from wakeful.core.schedule.definition import Definition
from wakeful.core.schedule.exclude import Exclude, Sources, excluded_days
from wakeful.core.time.excluded_days import ExcludedDays, is_excluded
from wakeful.core.time.instants import Instant
from wakeful.core.time.spacing import shortest_gap
from wakeful.core.time.timing import Timing, without_days, zone_of
from wakeful.features.schedules.checks import ScheduleLimits, minimum_interval_text
from wakeful.features.schedules.compiled import AGENT_LANE, Compiled
from wakeful.integrations.calendars.files import CalendarFiles

AgentLane: TypeAlias = Literal["serial", "parallel"]


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms, read at every decision (`ports.live`)."""

    limits: ScheduleLimits = field(default_factory=ScheduleLimits)
    default_zone: str = "UTC"  # for definitions without a zone
    is_standby: bool = False  # every instant is skipped
    agent_lane: AgentLane = "serial"  # whether an agent works on one run at a time
    exclude: Exclude | None = None  # days on which no schedule runs
    calendars: CalendarFiles | None = None  # None: this process reads no calendar files

    def is_lifted(self, lane: str) -> bool:
        """Whether a lane is not enforced: agent lanes are not once agents may work in parallel."""
        return self.agent_lane == "parallel" and lane.startswith(AGENT_LANE)

    def excluded(self, definition: Definition) -> ExcludedDays | None:
        """The days on which the schedule does not run: its own and those of all schedules; None: there are none."""
        return self.excluded_in(definition.timing, definition.exclude)

    def excluded_in(self, timing: Timing, own: Exclude | None = None) -> ExcludedDays | None:
        """Like `excluded`, for a timing."""
        common = self.exclude
        if own is None and common is None:
            return None
        zone = (None if own is None else own.timezone) or zone_of(timing) or self.default_zone
        return excluded_days(zone, *(self._days(part) for part in (own, common) if part is not None))

    def starting(self, timing: Timing, definition: Definition) -> Timing:
        """The timing of a schedule, possibly with its end or reset filled in, without excluded days."""
        return without_days(timing, self.excluded(definition))

    def excludes(self, definition: Definition, t: Instant) -> bool:
        """Whether the instant is on an excluded day of the schedule."""
        excluded = self.excluded(definition)
        return excluded is not None and is_excluded(excluded, t)

    def _days(self, exclude: Exclude) -> Sources:
        if exclude.calendar is None or self.calendars is None:
            return exclude.dates, None
        return exclude.dates, self.calendars(exclude.calendar)

    def calendar_fault(self, name: str) -> str | None:
        """Why a calendar file cannot be read; None: it can."""
        return None if self.calendars is None else self.calendars.fault(name)

    def too_often(self, compiled: Compiled) -> str | None:
        """Why a schedule prompts its agent too often, if it does: the limit may have changed since it was written."""
        if not isinstance(compiled.model.action, Prompt) or compiled.model.check is not None:
            return None  # a check may be asked often: the limit applies to turns
        gap, least = shortest_gap(compiled.rules.timing), self.limits.agent_interval_min
        return minimum_interval_text(least) if gap is not None and gap < least else None
