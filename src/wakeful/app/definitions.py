"""Writing definitions: checked at the edge, put into the store in one transaction each, or in batches."""

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeVar

from wakeful.app.bootstrap import Parts
from wakeful.app.merging import changed, definition_options
from wakeful.app.values import Guard, New, WrittenSchedule
from wakeful.core.errors import Invalid
from wakeful.core.schedule.definition import Definition
from wakeful.core.schedule.definition_json import definition_from_json, definition_from_parts
from wakeful.core.time.instants import Instant
from wakeful.engine.batch import Batcher
from wakeful.features.schedules import commands, queries
from wakeful.features.schedules.checks import Checked
from wakeful.features.schedules.upcoming import next_times
from wakeful.ports.store import Schedule, Tx

log = logging.getLogger("wakeful")
T = TypeVar("T")

BATCH: Final = 500
NEXT_TIMES: Final = 5


class _Rehearsed(Exception):
    """Ends a write that was only tried: its transaction is rolled back."""

    def __init__(self, written: WrittenSchedule) -> None:
        super().__init__(written)
        self.written = written


class DefinitionWriter:
    """Writes schedules into the store of a system that is put together."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._puts: Batcher[Checked, commands.Put | Invalid] = Batcher(self._put_many)

    async def command(self, command: Callable[[Tx, Instant], T]) -> T:
        """One function of a transaction; the engine looks again after it."""
        now = self._parts.clock.read().now
        answer = await self._parts.store.write(lambda tx: command(tx, now))
        self._parts.engine.ring_bell()
        return answer

    async def add(self, new: New) -> None:
        """Add or update one; many callers share a commit."""
        await self._put(self._check(new))

    async def add_many(self, schedules: Sequence[New]) -> None:
        """Add or update many; all are checked before any is written."""
        checked = [self._check(new) for new in schedules]
        for start in range(0, len(checked), BATCH):
            for fate in await self._put_many(checked[start : start + BATCH]):
                if isinstance(fate, Invalid):
                    raise fate

    async def put(self, slug: str, definition: Mapping[str, Any]) -> commands.Put:
        """Write a definition in its JSON shape."""
        return await self._put(self._read(slug, definition))

    async def write(self, slug: str, definition: Any, guard: Guard | None, is_rehearsal: bool) -> WrittenSchedule:
        """Write a definition in its JSON shape and read it back; a rehearsal leaves no trace."""
        checked = self._read(slug, definition)

        def write(tx: Tx, now: Instant) -> WrittenSchedule:
            stored = None
            if guard is not None:
                guard(stored := held(tx, slug))
            (fate,) = commands.put_many(tx, [checked], hooks=self._parts.hooks, now=now)
            if isinstance(fate, Invalid):
                raise fate
            if guard is not None and stored is None and not fate.is_created:
                guard(held(tx, slug))  # nothing could be locked where nothing was, and another node was first
            return _read_back(tx, slug, now, checked.warnings, is_created=fate.is_created)

        return await self._try(write, is_rehearsal)

    async def patch(
        self, slug: str, changes: Mapping[str, Any], guard: Guard | None, is_rehearsal: bool
    ) -> WrittenSchedule:
        """Merge changes into a definition and read it back."""
        warnings: tuple[str, ...] = ()

        def edit(schedule: Schedule, now: Instant) -> Checked:
            nonlocal warnings
            if guard is not None:
                guard(schedule)
            checked = self._read(slug, changed(json.loads(schedule.definition), changes), now)
            warnings = checked.warnings
            return checked

        def write(tx: Tx, now: Instant) -> WrittenSchedule:
            commands.change(tx, slug, edit, hooks=self._parts.hooks, now=now, if_version=None)
            return _read_back(tx, slug, now, warnings, is_created=False)

        return await self._try(write, is_rehearsal)

    async def update(self, slug: str, if_version: int | None, options: Mapping[str, Any]) -> None:
        """Change some of a definition, by its JSON names in snake_case."""
        changes = definition_options(options)

        def edit(schedule: Schedule, now: Instant) -> Checked:
            return self._read(slug, changed(json.loads(schedule.definition), changes), now)

        hooks = self._parts.hooks
        await self.command(lambda tx, now: commands.change(tx, slug, edit, hooks=hooks, now=now, if_version=if_version))

    async def _try(self, write: Callable[[Tx, Instant], WrittenSchedule], is_rehearsal: bool) -> WrittenSchedule:
        """A write as it is, or one that is taken back before it is kept."""

        def rehearse(tx: Tx, now: Instant) -> WrittenSchedule:
            raise _Rehearsed(write(tx, now))

        try:
            return await self.command(rehearse if is_rehearsal else write)
        except _Rehearsed as rehearsed:
            return rehearsed.written

    async def _put(self, checked: Checked) -> commands.Put:
        fate = await self._puts.submit(checked)
        if isinstance(fate, Invalid):
            raise fate
        return fate

    async def _put_many(self, checked: list[Checked]) -> list[commands.Put | Invalid]:
        parts = self._parts
        now = parts.clock.read().now
        fates = await parts.store.write(partial(commands.put_many, checked=checked, hooks=parts.hooks, now=now))
        for fate in fates:
            if isinstance(fate, commands.Put) and fate.compiled is not None:
                parts.compilations.keep(fate.compiled)
        parts.engine.ring_bell()
        return fates

    def _read(self, slug: str, definition: Any, now: Instant | None = None) -> Checked:
        return self._checked(definition_from_json(definition, default_zone=self._parts.default_zone, slug=slug), now)

    def _check(self, new: New) -> Checked:
        zone = self._parts.default_zone
        return self._checked(definition_from_parts(new.slug, new.timing, new.action, new.options, default_zone=zone))

    def _checked(self, definition: Definition, now: Instant | None = None) -> Checked:
        """Inside a transaction `now` is the one it is done at: an anchor taken later would lie ahead of it, and a grid
        begins at an anchor that lies ahead."""
        checked = self._parts.check(definition, now=self._parts.clock.read().now if now is None else now)
        for warning in checked.warnings:
            log.warning("%s: %s", definition.slug, warning)
        return checked


def held(tx: Tx, slug: str) -> Schedule | None:
    """The schedule of that slug, locked; None if there is none."""
    found = tx.schedules.by_slugs([slug]).get(slug)
    if found is None:
        return None
    tx.cadences.lock([found.schedule_id])
    # Read again under the lock: another node may have edited or removed it between the two statements.
    found = tx.schedules.by_ids([found.schedule_id])[found.schedule_id]
    return found if found.deleted_at is None else None


def _read_back(tx: Tx, slug: str, now: Instant, warnings: tuple[str, ...], *, is_created: bool) -> WrittenSchedule:
    following = next_times(tx, slug, now=now, after=now, count=NEXT_TIMES)
    return WrittenSchedule(queries.get(tx, slug, now=now), is_created, warnings, tuple(following))
