"""Writing definitions: each is checked first and written in one transaction, or many together."""

import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeVar

from wakeful.app.lifecycle import AppLifecycle
from wakeful.app.merging import changed, definition_options
from wakeful.app.values import Guard, New, WrittenSchedule
from wakeful.core.errors import Invalid
from wakeful.core.schedule.definition import Definition, check_slug
from wakeful.core.schedule.definition_json import definition_from_json, definition_from_parts, is_same_work
from wakeful.core.time.instants import Instant
from wakeful.engine.batch import Batcher
from wakeful.features.schedules import commands, queries
from wakeful.features.schedules.checks import Checked, check
from wakeful.features.schedules.rules import Terms
from wakeful.features.schedules.upcoming import next_times
from wakeful.ports.handlers import EngineHooks
from wakeful.ports.store import Schedule, Tx

log = logging.getLogger("wakeful")
T = TypeVar("T")

BATCH: Final = 500
NEXT_TIMES: Final = 5


class _Rehearsed(Exception):
    """Rolls a rehearsal's transaction back."""

    def __init__(self, written: WrittenSchedule) -> None:
        super().__init__(written)
        self.written = written


class Definitions(AppLifecycle):
    """Adds and edits schedules."""

    _puts: Batcher[Checked, commands.Put | Invalid]

    async def _write_declared(self) -> None:
        self._puts = Batcher(self._put_many)
        await self.add_many(self._declared)

    async def add_many(self, schedules: Iterable[New]) -> list[str]:
        """Add or update many schedules; all are checked before any is written."""
        given = list(schedules)
        slugs = [new.slug for new in given]
        checked = self._check_all(given)
        for start in range(0, len(checked), BATCH):
            end = start + BATCH
            for put in await self._put_many(checked[start:end], slugs[start:end]):
                if isinstance(put, Invalid):
                    raise put
        return slugs

    async def put(self, slug: str, definition: Mapping[str, Any]) -> commands.Put:
        """Write a definition in its JSON form."""
        return await self._put(self._read(slug, definition, self._clock.read().now))

    async def write(
        self, slug: str, definition: Any, *, guard: Guard | None = None, is_rehearsal: bool = False
    ) -> WrittenSchedule:
        """Write a definition in its JSON form and read it back, in one transaction; a rehearsal changes nothing."""
        checked = self._read(slug, definition, self._clock.read().now)

        def write(tx: Tx, now: Instant) -> WrittenSchedule:
            stored = None
            if guard is not None:
                guard(stored := locked(tx, slug))
            (put,) = commands.put_many(tx, [checked], hooks=self._open.hooks, now=now)
            if isinstance(put, Invalid):
                raise put
            if guard is not None and stored is None and not put.is_created:
                guard(locked(tx, slug))  # there was no row to lock, and another node created it first
            return _read_back(tx, put, now, checked.warnings, is_rehearsal, self.terms)

        return await self._write_or_rehearse(write, is_rehearsal)

    async def put_all(self, definitions: Mapping[str, Any], *, then: Callable[[Tx, Instant], T]) -> T:
        """Write definitions in their JSON form, by slug, and call `then`, in one transaction: all or none."""
        now = self._clock.read().now
        checked = [self._read(slug, definition, now) for slug, definition in definitions.items()]

        def write(tx: Tx, now: Instant) -> T:
            for put in commands.put_many(tx, checked, hooks=self._open.hooks, now=now):
                if isinstance(put, Invalid):
                    raise put
            return then(tx, now)

        return await self._command(write)

    async def patch(
        self, slug: str, changes: Mapping[str, Any], *, guard: Guard | None = None, is_rehearsal: bool = False
    ) -> WrittenSchedule:
        """Merge changes into a definition (RFC 7396, by its JSON names) and read it back, in one transaction."""
        warnings: tuple[str, ...] = ()

        def edit(schedule: Schedule, now: Instant) -> Checked:
            nonlocal warnings
            if guard is not None:
                guard(schedule)
            checked = self._read(slug, changed(json.loads(schedule.definition), changes), now)
            warnings = checked.warnings
            return checked

        def write(tx: Tx, now: Instant) -> WrittenSchedule:
            put = commands.change(tx, slug, edit, hooks=self._open.hooks, now=now, if_version=None)
            return _read_back(tx, put, now, warnings, is_rehearsal, self.terms)

        return await self._write_or_rehearse(write, is_rehearsal)

    async def update(self, slug: str, *, if_version: int | None = None, **changes: Any) -> None:
        """Change fields of a definition, by their JSON names in snake_case; None resets a field to its default."""
        options, hooks = definition_options(changes), self._open.hooks

        def edit(schedule: Schedule, now: Instant) -> Checked:
            return self._read(slug, changed(json.loads(schedule.definition), options), now)

        await self._command(
            lambda tx, now: commands.change(tx, slug, edit, hooks=hooks, now=now, if_version=if_version)
        )

    def checked(self, slug: str, definition: Any) -> Definition:
        """The definition that this JSON would become; raises `Invalid` if it would be refused."""
        return self._read(slug, definition, self._clock.read().now).definition

    @property
    def hooks(self) -> EngineHooks:
        """What commands on schedules need from the engine."""
        return self._open.hooks

    @property
    def default_zone(self) -> str:
        """The time zone of definitions that name none."""
        return self._open.conditions.default_zone

    async def _command(self, command: Callable[[Tx, Instant], T]) -> T:
        """Run a command in one transaction, then let the engine look again."""
        parts, now = self._open, self._clock.read().now
        result = await parts.store.write(lambda tx: command(tx, now))
        parts.engine.ring_bell()
        return result

    async def _write_or_rehearse(
        self, write: Callable[[Tx, Instant], WrittenSchedule], is_rehearsal: bool
    ) -> WrittenSchedule:
        def rehearse(tx: Tx, now: Instant) -> WrittenSchedule:
            raise _Rehearsed(write(tx, now))

        try:
            return await self._command(rehearse if is_rehearsal else write)
        except _Rehearsed as rehearsed:
            return rehearsed.written

    async def _add(self, new: New) -> None:
        """Add or update a schedule; many callers share a commit."""
        await self._put(self._check_new(new, self._clock.read().now))

    async def _put(self, checked: Checked) -> commands.Put:
        put = await self._puts.submit(checked)
        if isinstance(put, Invalid):
            raise put
        return put

    async def _put_many(
        self, checked: Sequence[Checked], slugs: Sequence[str] | None = None
    ) -> list[commands.Put | Invalid]:
        parts, now = self._open, self._clock.read().now
        puts = await parts.store.write(
            partial(commands.put_many, checked=checked, hooks=parts.hooks, now=now, slugs=slugs)
        )
        for put in puts:
            if isinstance(put, commands.Put) and put.is_created:
                parts.compilations.keep(put.compiled)
        parts.engine.ring_bell()
        return puts

    def _read(self, slug: str, definition: Any, now: Instant) -> Checked:
        zone = self._open.conditions.default_zone
        return self._check(definition_from_json(definition, default_zone=zone, slug=slug, now=now), now)

    def _check_new(self, new: New, now: Instant) -> Checked:
        zone = self._open.conditions.default_zone
        definition = definition_from_parts(new.slug, new.timing, new.action, new.options, default_zone=zone)
        return self._check(definition, now)

    def _check_all(self, schedules: Sequence[New]) -> list[Checked]:
        """Check each definition as of one time. One that differs from the previous one only in its slug is not checked
        again, and gets the same result."""
        checked: list[Checked] = []
        before: New | None = None
        now = self._clock.read().now
        for new in schedules:
            if before is None or not _is_same_but_slug(before, new):
                checked.append(self._check_new(new, now))
            else:
                check_slug(new.slug)
                checked.append(checked[-1])
                self._warn(new.slug, checked[-1])
            before = new
        return checked

    def _check(self, definition: Definition, now: Instant) -> Checked:
        """Check a definition at `now`, the time of the transaction: a later anchor would lie in the future, and the
        grid of an interval starts at its anchor."""
        checked = check(definition, self._open.conditions, now=now)
        self._warn(definition.slug, checked)
        return checked

    def _warn(self, slug: str, checked: Checked) -> None:
        for warning in checked.warnings:
            log.warning("%s: %s", slug, warning)


def _is_same_but_slug(new: New, other: New) -> bool:
    is_same = new.options is other.options or not (new.options or other.options)
    return is_same and is_same_work(new.timing, new.action, other.timing, other.action)


def locked(tx: Tx, slug: str) -> Schedule | None:
    """The schedule with that slug, locked; None if it does not exist."""
    schedule = tx.schedules.by_slugs([slug]).get(slug)
    if schedule is None:
        return None
    tx.cadences.lock([schedule.schedule_id])
    # Read again under the lock: another node may have edited or removed it between the two statements.
    schedule = tx.schedules.by_ids([schedule.schedule_id])[schedule.schedule_id]
    return schedule if schedule.deleted_at is None else None


def _read_back(
    tx: Tx, put: commands.Put, now: Instant, warnings: tuple[str, ...], is_rehearsal: bool, terms: Terms
) -> WrittenSchedule:
    view = queries.get(tx, put.slug, now=now, terms=terms, compiled=put.compiled)
    times = next_times(tx, put.slug, now=now, after=now, count=NEXT_TIMES, terms=terms) if is_rehearsal else []
    return WrittenSchedule(view, put.is_created, warnings, tuple(times))
