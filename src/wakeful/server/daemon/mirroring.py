"""Runs the mirror of definition files in a daemon and notifies it of every commit that touches a schedule.

When the setting changes while the daemon runs, the mirror is stopped and a new one started.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from wakeful.observe.fan_out import FanOut
from wakeful.ports.plain_runs import named
from wakeful.ports.sink import (
    Fact,
    RunsClaimed,
    RunsSettled,
    RunsWaiting,
    ScheduleChange,
    SchedulesChanged,
    Sink,
    Slugs,
)
from wakeful.server.mirror import Mirror, Which
from wakeful.server.mirror.texts import is_mirrored

if TYPE_CHECKING:
    from wakeful.app.bootstrap import Parts


class LiveMirror:
    """The mirror of a home, if it is enabled."""

    def __init__(
        self, home: Path, parts: Parts, which: Which, sink: Sink | None, *, is_trusting: Callable[[], bool]
    ) -> None:
        self._is_trusting = is_trusting
        self._folder = home / "schedule"
        self._parts = parts
        self._which: Which = which
        self._mirror: Mirror | None = None
        if isinstance(sink, FanOut):
            sink.listen(self._tell)

    async def start(self) -> None:
        if self._which != "off":
            mirror = Mirror(self._folder, self._parts, self._which, is_trusting=self._is_trusting)
            await mirror.start()
            self._mirror = mirror

    async def stop(self) -> None:
        mirror, self._mirror = self._mirror, None
        if mirror is not None:
            await mirror.stop()

    async def change(self, which: Which) -> None:
        """Mirror these definitions from now on; existing files stay."""
        if which != self._which:
            await self.stop()
            self._which = which
            await self.start()

    def _has_files(self, change: ScheduleChange) -> bool:
        """Whether a changed schedule has files, or may have had some. A new one of another kind has never had any."""
        slug, definition = change.slug, change.definition
        return slug is None or definition is None or is_mirrored(slug, definition, self._which)

    def _tell(self, facts: Sequence[Fact], slugs: Slugs) -> None:
        """The slugs that changed; an unknown one is found by the mirror's rescan."""
        if self._mirror is None:
            return
        changed: set[str | None] = set()
        for fact in facts:
            if isinstance(fact, SchedulesChanged):
                changes = [change for change in fact.changes if self._has_files(change)]
                changed.update(change.slug or slugs.get(change.schedule_id) for change in changes)
            elif isinstance(fact, RunsClaimed | RunsSettled | RunsWaiting):
                changed.update(slugs.get(run.schedule_id) for run in named(fact.runs))
        for slug in changed:
            if slug is not None:
                self._mirror.schedule_changed(slug)
