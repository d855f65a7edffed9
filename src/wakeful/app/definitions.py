"""Writing definitions: each is checked first and written in one transaction, or many together."""

import json
import logging
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, Final, TypeVar, Unpack

from wakeful.app.action_forms import action_of
from wakeful.app.lifecycle import AppLifecycle
from wakeful.app.merging import changed, definition_options
from wakeful.app.schedule_options import (
    JSON_NAMES,
    OPTION_NAMES,
    RETRY_KEYWORDS,
    UPDATE_NAMES,
    AddOptions,
    ScheduleChanges,
    python_names,
    refuse_unknown,
)
from wakeful.app.timing_forms import GivenTiming, timing_of
from wakeful.app.values import Declared, Guard, New, WrittenSchedule
from wakeful.app.with_cost import with_cost
from wakeful.core.errors import Invalid
from wakeful.core.schedule.definition import Definition, check_slug
from wakeful.core.schedule.definition_json import WRITTEN, definition_from_json, definition_from_parts, is_same_work
from wakeful.core.time.instants import Instant
from wakeful.core.time.timing import resolve
from wakeful.core.time.timing_json import timing_to_json
from wakeful.engine.batch import Batcher
from wakeful.engine.engine import Engine
from wakeful.features.schedules import commands, queries
from wakeful.features.schedules.checks import Checked, Conditions, check, refuse_excluded
from wakeful.features.schedules.upcoming import next_times
from wakeful.features.schedules.views import view_new
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
        await self._add_declared(self._declared)

    async def add(self, slug: str | None, timing: GivenTiming, **options: Unpack[AddOptions]) -> str:
        """Add a schedule, or update the one with that slug, keeping its state; returns the slug.

        The timing may be text, such as `"weekdays at 9:00"`. At most one of call, command, http, prompt, dispatch and
        event says what to do; without one, the `on_due` handler is called. A call takes `args` and `isolate`, a prompt
        `agent` and `session_config`. The other options are those of a definition in snake_case: catch_up, max_lateness,
        overlap, timeout, on_crash, retry, max_consecutive_errors, active_hours, stagger, lane, enabled and so on.

        `retries=3` is short for a `retry` with exponential backoff: after 10 s (or `retry_delay`), then twice as long
        each time, at most an hour. `retry_on` and `give_up_on` take exception types raised by a call.
        """
        new = New(slug, timing, **options)
        with python_names(options):
            declared = self._declare(new)
            await self._put(self._check_new(declared, self._clock.read().now))
        return declared.slug

    async def add_many(self, schedules: Iterable[New]) -> list[str]:
        """Add or update many schedules; all are checked before any is written."""
        declared: list[Declared] = []
        before: New | None = None
        for new in schedules:
            like = declared[-1] if before is not None and _is_alike(before.given, new.given) else None
            declared.append(self._declare(new, like))
            before = new
        return await self._add_declared(declared)

    async def _add_declared(self, declared: Sequence[Declared]) -> list[str]:
        slugs = [one.slug for one in declared]
        with python_names(RETRY_KEYWORDS):
            checked = self._check_all(declared)
        for start in range(0, len(checked), BATCH):
            end = start + BATCH
            for put in await self._put_many(checked[start:end], slugs[start:end]):
                if isinstance(put, Invalid):
                    raise put
        return slugs

    def _declare(self, new: New, like: Declared | None = None) -> Declared:
        """A schedule with its action and options read, or with those of `like`, which was given the same."""
        slug = new.slug if new.slug is not None else f"job-{secrets.token_hex(4)}"
        if like is not None:
            return Declared(slug, new.timing, like.action, like.options)
        options = {name: value for name, value in new.given.items() if name in OPTION_NAMES or name in JSON_NAMES}
        return Declared(slug, new.timing, action_of(self._registry, slug, new.given), definition_options(options))

    async def _write(
        self, slug: str, definition: Any, *, guard: Guard | None = None, is_rehearsal: bool = False
    ) -> WrittenSchedule:
        """Write a definition in its JSON form and read it back, in one transaction; a rehearsal changes nothing."""
        hooks, now = self._open.hooks, self._clock.read().now
        checked = self._read(slug, definition, now)

        def write(tx: Tx) -> tuple[commands.Put, Sequence[str]]:
            stored = None
            if guard is not None:
                guard(stored := locked(tx, slug))
            (put,) = commands.put_many(tx, [checked], hooks=hooks, now=now)
            if isinstance(put, Invalid):
                raise put
            if guard is not None and stored is None and not put.is_created:
                guard(locked(tx, slug))  # there was no row to lock, and another node created it first
            return put, checked.warnings

        return await self._write_one(write, now, is_rehearsal)

    async def _put_all(self, definitions: Mapping[str, Any], *, then: Callable[[Tx, Instant], T]) -> T:
        """Write definitions in their JSON form, by slug, and call `then`, in one transaction: all or none."""
        now = self._clock.read().now
        checked = [self._read(slug, definition, now) for slug, definition in definitions.items()]

        def write(tx: Tx, now: Instant) -> T:
            for put in commands.put_many(tx, checked, hooks=self._open.hooks, now=now):
                if isinstance(put, Invalid):
                    raise put
            return then(tx, now)

        return await self._command(write)

    async def _patch(
        self,
        slug: str,
        changes: Mapping[str, Any],
        *,
        replaced: Mapping[str, Any] = MappingProxyType({}),
        guard: Guard | None = None,
        if_version: int | None = None,
        is_rehearsal: bool = False,
    ) -> WrittenSchedule:
        """Merge changes into a definition (RFC 7396, by its JSON names), and read it back, in one transaction. The
        fields in `replaced` are not merged."""
        hooks, now = self._open.hooks, self._clock.read().now
        warnings: Sequence[str] = ()

        def edit(schedule: Schedule, now: Instant) -> Checked:
            nonlocal warnings
            if guard is not None:
                guard(schedule)
            checked = self._read(slug, changed({**json.loads(schedule.definition), **replaced}, changes), now)
            warnings = checked.warnings
            return checked

        def write(tx: Tx) -> tuple[commands.Put, Sequence[str]]:
            put = commands.change(tx, slug, edit, hooks=hooks, now=now, if_version=if_version)
            return put, warnings

        return await self._write_one(write, now, is_rehearsal)

    async def update(self, slug: str, *, if_version: int | None = None, **changes: Unpack[ScheduleChanges]) -> None:
        """Change fields of a definition, by their JSON names in snake_case; None resets a field to its default.
        `schedule` is a timing, text, or an object in its JSON form."""
        refuse_unknown([name for name in changes if name not in WRITTEN], UPDATE_NAMES)
        with python_names(changes):
            options = definition_options(changes)
            timing = options.get("schedule")
            replaced = (
                {} if isinstance(timing, str | Mapping | None) else {"schedule": self._written(options.pop("schedule"))}
            )
            await self._patch(slug, options, replaced=replaced, if_version=if_version)

    def _checked(self, slug: str, definition: Any) -> Definition:
        """The definition that this JSON would become; raises `Invalid` if it would be refused."""
        checked = self._read(slug, definition, self._clock.read().now)
        refuse_excluded(checked)
        return checked.definition

    def _written(self, timing: object) -> dict[str, Any]:
        """A timing in its JSON form; a delay counts from now."""
        now, zone = self._clock.read().now, self._open.conditions.default_zone
        return timing_to_json(resolve(timing_of(timing, now=now, default_zone=zone), now=now, default_zone=zone))

    async def _command(self, command: Callable[[Tx, Instant], T]) -> T:
        """Run a command in one transaction, then let the engine look again."""
        parts, now = self._in_use, self._clock.read().now
        result = await parts.store.write(lambda tx: command(tx, now))
        parts.engine.ring_bell()
        return result

    async def _write_one(
        self, write: Callable[[Tx], tuple[commands.Put, Sequence[str]]], now: Instant, is_rehearsal: bool
    ) -> WrittenSchedule:
        """Write a schedule and read it back, in one transaction, which a rehearsal rolls back."""
        parts = self._open

        def operation(tx: Tx) -> tuple[commands.Put, WrittenSchedule]:
            put, warnings = write(tx)
            written = self._read_back(tx, put, now, tuple(warnings), is_rehearsal)
            if is_rehearsal:
                raise _Rehearsed(written)
            return put, written

        try:
            put, written = await parts.store.write(operation)
        except _Rehearsed as rehearsed:
            return rehearsed.written
        _look_at(parts.engine, [put], now)
        return written

    async def _put(self, checked: Checked) -> commands.Put:
        """Add or update a schedule; many callers share a commit."""
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
        _look_at(parts.engine, [put for put in puts if isinstance(put, commands.Put)], now)
        return puts

    def _read(self, slug: str, definition: Any, now: Instant) -> Checked:
        conditions = self._open.conditions
        read = definition_from_json(definition, default_zone=conditions.default_zone, slug=slug, now=now)
        return self._check(read, conditions, now)

    def _check_new(self, new: Declared, now: Instant) -> Checked:
        conditions = self._open.conditions
        zone = conditions.default_zone
        timing = timing_of(new.timing, now=now, default_zone=zone)
        definition = definition_from_parts(new.slug, timing, new.action, new.options, default_zone=zone)
        return self._check(definition, conditions, now)

    def _check_all(self, schedules: Sequence[Declared]) -> list[Checked]:
        """Check each definition as of one time. One that differs from the previous one only in its slug is not checked
        again, and gets the same result."""
        checked: list[Checked] = []
        before: Declared | None = None
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

    def _check(self, definition: Definition, conditions: Conditions, now: Instant) -> Checked:
        """Check a definition at `now`, the time of the transaction: a later anchor would lie in the future, and the
        grid of an interval starts at its anchor."""
        checked = check(definition, conditions, now=now)
        self._warn(definition.slug, checked)
        return checked

    def _read_back(
        self, tx: Tx, put: commands.Put, now: Instant, warnings: tuple[str, ...], is_rehearsal: bool
    ) -> WrittenSchedule:
        terms = self._open.terms.value
        if put.row is not None and put.beginning is not None:
            view = view_new(put.row, put.beginning, put.compiled, now=now, terms=terms)
        else:
            view = queries.get(tx, put.slug, now=now, terms=terms, compiled=put.compiled)
        times = next_times(tx, put.slug, now=now, after=now, count=NEXT_TIMES, terms=terms) if is_rehearsal else []
        view = with_cost(tx, view, terms=terms, money=self._money.terms, now=now)
        return WrittenSchedule(view, put.is_created, warnings, tuple(times), is_rehearsal)

    def _warn(self, slug: str, checked: Checked) -> None:
        for warning in checked.warnings:
            log.warning("%s: %s", slug, warning)


def _look_at(engine: Engine, puts: Iterable[commands.Put], now: Instant) -> None:
    """Let the engine tick when the first new one is due; after an edit it ticks now."""
    due = (now if put.beginning is None else put.beginning.due_at for put in puts)
    engine.look_by(min((at for at in due if at is not None), default=None))


def _is_alike(given: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two schedules certainly have the same action and options: the same objects were given for them."""
    return given.keys() == other.keys() and all(value is other[name] for name, value in given.items())


def _is_same_but_slug(new: Declared, other: Declared) -> bool:
    is_same = new.options is other.options or not (new.options or other.options)
    if isinstance(new.timing, str) or isinstance(other.timing, str):
        return is_same and new.timing == other.timing and new.action is other.action
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
