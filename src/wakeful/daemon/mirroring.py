"""Definition files beside the clock of a daemon: told of every commit that touches a schedule."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from wakeful.mirror import Mirror, Which
from wakeful.ports.sink import Fact, RunsClaimed, RunsSettled, RunsWaiting, SchedulesChanged, Sink, Slugs
from wakeful.telemetry.fan_out import FanOut

if TYPE_CHECKING:
    from wakeful.bootstrap import Parts


def make_mirror(home: Path, parts: Parts, which: Which, sink: Sink | None) -> Mirror:
    """The mirror of a home, listening to what is committed."""
    mirror = Mirror(home / "schedule", parts, which)
    if isinstance(sink, FanOut):
        sink.listen(lambda facts, slugs: _tell(mirror, facts, slugs))
    return mirror


def _tell(mirror: Mirror, facts: Sequence[Fact], slugs: Slugs) -> None:
    """The slugs of whatever changed; one that is not known is found by the mirror's own rescan."""
    changed: set[str | None] = set()
    for fact in facts:
        if isinstance(fact, SchedulesChanged):
            changed.update(change.slug or slugs.get(change.schedule_id) for change in fact.changes)
        elif isinstance(fact, RunsClaimed | RunsSettled | RunsWaiting):
            changed.update(slugs.get(run.schedule_id) for run in fact.runs)
    for slug in changed:
        if slug is not None:
            mirror.schedule_changed(slug)
