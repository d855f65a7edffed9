"""Terms for all schedules; they may change at runtime."""

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from wakeful.core.schedule.actions import Prompt
from wakeful.core.time.spacing import shortest_gap
from wakeful.features.schedules.checks import ScheduleLimits, minimum_interval_text
from wakeful.features.schedules.compiled import AGENT_LANE, Compiled

AgentLane: TypeAlias = Literal["serial", "parallel"]


@dataclass(frozen=True, slots=True)
class Terms:
    """Read at every decision (`ports.live`)."""

    limits: ScheduleLimits = field(default_factory=ScheduleLimits)
    default_zone: str = "UTC"  # for definitions without a zone
    is_standby: bool = False  # every instant is skipped
    agent_lane: AgentLane = "serial"  # whether an agent works on one run at a time

    def is_lifted(self, lane: str) -> bool:
        """Whether a lane is not enforced: agent lanes are not once agents may work in parallel."""
        return self.agent_lane == "parallel" and lane.startswith(AGENT_LANE)

    def too_often(self, compiled: Compiled) -> str | None:
        """Why a schedule prompts its agent too often, if it does: the limit may have changed since it was written."""
        if not isinstance(compiled.definition.action, Prompt) or compiled.definition.check is not None:
            return None  # a check may be asked often: the limit applies to turns
        gap, least = shortest_gap(compiled.rules.timing), self.limits.agent_interval_min
        return minimum_interval_text(least) if gap is not None and gap < least else None
