"""Compiled definitions, cached by version so that stored text is parsed once, not at every instant."""

from collections.abc import Iterable
from functools import lru_cache
from typing import Final, NamedTuple

from wakeful.core.run.runs import Run
from wakeful.core.run.settlement import Policy
from wakeful.core.schedule.actions import Call, Isolate, Prompt
from wakeful.core.schedule.cadence import Rules
from wakeful.core.schedule.definition import Definition, policy_of, rules_of
from wakeful.core.schedule.definition_json import (
    SHAPES_KEPT,
    Encoded,
    decode_definition,
    decode_members,
    split_stored,
    under_slug,
)
from wakeful.core.schedule.labels import queue_of
from wakeful.core.schedule.plain import is_plain, starts_plainly
from wakeful.core.schedule.policies import OnCrash
from wakeful.core.time.timing import AfterReset, zone_of
from wakeful.ports.store import Schedule, Tx
from wakeful.ports.version_cache import VersionCache

READ_KEPT: Final = 4_096
"""How many definitions that were read for lists are kept."""

COMPILED_KEPT: Final = 32_768
"""How many definitions stay compiled in each of two generations. One takes 0.5 to 3 kB, most of it for its prompt or
command. If more schedules than this are due in turn, each is compiled again whenever it fires."""

KIND: Final = "schedule"
"""The kind of a schedule's runs."""

AGENT_LANE: Final = "agent:"
"""The prefix of an agent's lane; the agent's name follows."""


class Compiled(NamedTuple):
    """One version of one schedule, split into rules for planning, for settling, and the action."""

    schedule_id: int
    version: int
    slug: str
    model: Definition  # its definition under any slug: schedules that differ only in their slugs share it
    rules: Rules
    policy: Policy
    lane: str | None
    is_plain: bool
    starts_plainly: bool
    work: object  # one object for definitions that do the same in the same way; see `_work_of`
    run_on: str | None = None  # the queue of its alarm and runs (`core.schedule.labels`)

    @property
    def definition(self) -> Definition:
        """Its definition under its own slug: a copy, so read `model` where the slug does not matter."""
        return under_slug(self.model, self.slug)


def agent_of(compiled: Compiled) -> str | None:
    """The agent that the definition prompts, or None."""
    action = compiled.model.action
    return action.agent if isinstance(action, Prompt) else None


class Broken(NamedTuple):
    """A stored definition that can no longer be read (e.g. its zone was removed)."""

    schedule_id: int
    version: int
    reason: str


def lane_of(definition: Definition) -> str | None:
    """The lane of the definition's turns or other actions."""
    if definition.lane is None and isinstance(definition.action, Prompt):
        return f"{AGENT_LANE}{definition.action.agent}"
    return definition.lane


def compile_definition(schedule_id: int, version: int, definition: Definition) -> Compiled:
    """Compile a definition."""
    # A check needs no lane: its run gets one when it found something.
    lane = None if definition.check is not None else lane_of(definition)
    rules, policy = rules_of(definition, schedule_id), policy_of(definition)
    queue = queue_of(definition.run_on)
    plain = is_plain(definition)
    start = plain or starts_plainly(definition)
    work = _work_of(definition) if plain else definition
    return Compiled(schedule_id, version, definition.slug, definition, rules, policy, lane, plain, start, work, queue)


def _work_of(definition: Definition) -> object:
    """What a plain definition performs, and how: one object for definitions that otherwise differ at most in their
    slugs, rules, lanes and timeouts, and in what matters only after a failure. The zone belongs to it, because equal
    timings may be written in different zones, and days may be excluded in them. Equal arguments may be different
    values, such as 1 and true, so a call with arguments is shared only by its own definition."""
    action = definition.action
    if not isinstance(action, Call) or action.args:
        return definition
    return _call_work(action.target, action.isolate, definition.on_crash, zone_of(definition.timing))


@lru_cache(maxsize=SHAPES_KEPT)
def _call_work(_target: str, _isolate: Isolate | None, _on_crash: OnCrash, _zone: str | None) -> object:
    return object()


def compile_new(definitions: Iterable[tuple[int, Encoded]]) -> list[Compiled]:
    """Compile new definitions. Those with the same model share everything but their slugs."""
    compiled: list[Compiled] = []
    shared: Compiled | None = None
    for schedule_id, (slug, _, model) in definitions:
        if shared is None or model is not shared.model or model.stagger:  # a stagger depends on the id
            shared = compile_definition(schedule_id, 1, model)
        compiled.append(_under(shared, schedule_id, 1, slug))
    return compiled


class Compilations:
    """Compiled definitions, cached by schedule."""

    def __init__(self) -> None:
        self._cache: VersionCache[Compiled | Broken] = VersionCache(COMPILED_KEPT)

    def of(self, tx: Tx, wanted: Iterable[tuple[int, int]]) -> dict[int, Compiled | Broken]:
        """Compiled definitions for (schedule id, version); those not cached are read in one query."""
        known: dict[int, Compiled | Broken] = {}
        missing: list[int] = []
        for schedule_id, version in wanted:
            compiled = self._cache.get(schedule_id, version)
            if compiled is None:
                missing.append(schedule_id)
            else:
                known[schedule_id] = compiled
        for schedule in tx.schedules.by_ids(missing).values() if missing else ():
            compiled = read_stored(schedule.schedule_id, schedule.version, schedule.definition)
            self.keep(compiled)
            known[schedule.schedule_id] = compiled
        return known

    def of_run(self, tx: Tx, run: Run) -> Compiled | Broken | None:
        """The definition a schedule's run started with; None if no copy is left."""
        if run.definition is not None:
            return read_stored(run.schedule_id, run.version, run.definition)
        return self.of(tx, [(run.schedule_id, run.version)]).get(run.schedule_id)

    def keep(self, compiled: Compiled | Broken) -> None:
        """Cache a compiled definition."""
        self._cache.keep(compiled.schedule_id, compiled)


def read_stored(schedule_id: int, version: int, text: str) -> Compiled | Broken:
    """Compile a stored text; a broken one affects only its own schedule (L9)."""
    try:
        return _compiled(schedule_id, version, text)
    except Exception as error:  # a bad stored text affects only this schedule
        return Broken(schedule_id, version, str(error) or type(error).__name__)


@lru_cache(maxsize=READ_KEPT)
def _compiled(schedule_id: int, version: int, text: str) -> Compiled:
    """A page reads the same definitions again and again. An unreadable definition is tried again: its zone may be
    back."""
    parts = split_stored(text)
    if parts is None:
        return compile_definition(schedule_id, version, decode_definition(text))
    slug, members = parts
    model = decode_members(members)
    # A stagger depends on the id.
    shared = compile_definition(schedule_id, version, model) if model.stagger else _shared(members)
    return _under(shared, schedule_id, version, slug)


@lru_cache(maxsize=SHAPES_KEPT)
def _shared(members: str) -> Compiled:
    """What all schedules with these members have in common."""
    return compile_definition(0, 0, decode_members(members))


def _under(shared: Compiled, schedule_id: int, version: int, slug: str) -> Compiled:
    """The same definition for another schedule."""
    _, _, _, model, rules, policy, lane, plain, start, work, run_on = shared
    return Compiled(schedule_id, version, slug, model, rules, policy, lane, plain, start, work, run_on)


def calendar_named(schedule: Schedule) -> str | None:
    """The calendar file that a schedule names."""
    compiled = read_stored(schedule.schedule_id, schedule.version, schedule.definition)
    exclude = compiled.model.exclude if isinstance(compiled, Compiled) else None
    return None if exclude is None else exclude.calendar


def slots_named(schedule: Schedule) -> tuple[str, ...]:
    """The quota slots a schedule waits for: by its `slot`, and by a timing after a reset."""
    compiled = read_stored(schedule.schedule_id, schedule.version, schedule.definition)
    if not isinstance(compiled, Compiled):
        return ()
    timing = compiled.model.timing
    named = [compiled.model.slot, timing.slot if isinstance(timing, AfterReset) else None]
    return tuple(dict.fromkeys(name for name in named if name is not None))
