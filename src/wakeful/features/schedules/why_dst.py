"""What daylight saving time did to an instant, in words.

The rules are in `core.time.wallclock`: a fixed time inside a gap runs once right after the gap, a repeated one runs
the first time only. This module detects which rule applied so that `why` can name it.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from wakeful.core.time.instants import SECOND, Instant, format_instant
from wakeful.core.time.timing import Cron, Times, Timing, wall_pattern
from wakeful.core.time.wall_pattern import WallPattern, count_walls, next_wall
from wakeful.core.time.wallclock import GAP_MAX
from wakeful.core.time.zones import Segment, segment_at

Effect: TypeAlias = Literal["madeUp", "firstOfTwo", "secondOfTwo"]


@dataclass(frozen=True, slots=True)
class DstChange:
    """An instant affected by a DST transition."""

    effect: Effect
    wall: str  # the wall time affected, HH:MM (or HH:MM:SS)
    day: str  # YYYY-MM-DD
    zone: str

    @property
    def sentence(self) -> str:
        """How the transition moved the instant."""
        match self.effect:
            case "madeUp":
                return f"{self.wall} does not exist on {self.day} in {self.zone}, so it is due right after the gap"
            case "firstOfTwo":
                return f"{self.wall} occurs twice on {self.day} in {self.zone}, and only the first one counts"
            case "secondOfTwo":
                return f"{self.wall} occurs twice on {self.day} in {self.zone}, and only the first one counted"


def dst_change_at(timing: Timing, at: Instant) -> DstChange | None:
    """The DST effect on an instant, whether or not the timing includes it; None if there is none."""
    if not isinstance(timing, Cron | Times) or timing.timezone is None:
        return None
    pattern, zone, second = wall_pattern(timing), timing.timezone, at // SECOND
    segment = segment_at(zone, second)
    if second == segment.start and segment.offset > segment.before:
        return _after_gap(pattern, zone, segment)
    wall = second + segment.offset
    if not pattern.runs_once or count_walls(pattern, wall, wall + 1) == 0 or at % SECOND:
        return None
    if wall < segment.seen:
        return DstChange("secondOfTwo", *_shown(wall), zone)
    following = segment_at(zone, segment.end)
    if following.offset < segment.offset and wall >= segment.end + following.offset:
        return DstChange("firstOfTwo", *_shown(wall), zone)
    return None


def _after_gap(pattern: WallPattern, zone: str, segment: Segment) -> DstChange | None:
    """The first instant after a gap, if it makes up for times inside the gap."""
    closes, opens = segment.start + segment.before, segment.start + segment.offset
    if not pattern.makes_up or opens - closes > GAP_MAX or count_walls(pattern, closes, opens) == 0:
        return None
    if count_walls(pattern, opens, opens + 1):
        return None  # it would have been due there anyway
    return DstChange("madeUp", *_shown(next_wall(pattern, closes - 1)), zone)


def _shown(wall: int) -> tuple[str, str]:
    """A wall time as (HH:MM, YYYY-MM-DD)."""
    text = format_instant(wall * SECOND)
    return text[11:19].removesuffix(":00"), text[:10]
