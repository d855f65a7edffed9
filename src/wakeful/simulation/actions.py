"""Actions that contact nothing: each attempt does what an attempt of its schedule did before."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeAlias

from wakeful.core.heartbeat.acknowledgement import AckRules
from wakeful.core.run.results import Done, Failed, Result, Unconfirmed
from wakeful.core.run.runs import RungName
from wakeful.core.run.usage import Usage
from wakeful.core.schedule.actions import Event
from wakeful.core.schedule.pre_check import CheckSpec, Found, NothingFound
from wakeful.core.simulation.draws import TOOK_MIN, UNRECORDED, Record, Sample, draw, finds_nothing, sample_of
from wakeful.core.simulation.request import Troubles
from wakeful.core.simulation.summary import Peak
from wakeful.core.time.instants import Instant
from wakeful.features.heartbeat.action import HeartbeatTurn, NothingToDo
from wakeful.ports.action import Action, Fire, Ladder, OrphanFate, Process
from wakeful.ports.clock import Clock

FAILURE: Final = "a simulated failure"
FOUND: Final = "found something (simulated)"
_NO_RECORD: Final = Record()


class Meter:
    """When attempts began and ended."""

    def __init__(self) -> None:
        self.begins: list[Instant] = []
        self.ends: list[Instant] = []

    def stop(self, now: Instant) -> None:
        """The process died, and with it everything in progress."""
        self.ends += [now] * (len(self.begins) - len(self.ends))

    def peak(self, *, touching: bool = False) -> Peak:
        """The largest number in progress; `touching` also counts an attempt at the very moment in which it ends."""
        begins, ends = sorted(self.begins), sorted(self.ends)
        peak, ended = Peak(0, None), 0
        for begun, at in enumerate(begins, 1):
            while ended < len(ends) and (ends[ended] < at or (ends[ended] == at and not touching)):
                ended += 1
            if begun - ended > peak.running:
                peak = Peak(begun - ended, at)
        return peak


class Behaviour:
    """What attempts do, according to their schedule's record and the simulated faults."""

    def __init__(
        self, seed: int, records: Mapping[str, Record], troubles: Troubles, clock: Clock, meter: Meter
    ) -> None:
        self._seed = seed
        self._records = records
        self._troubles = troubles
        self._clock = clock
        self.meter = meter

    def finds_nothing(self, slug: str, planned_at: Instant, attempt: int = 1) -> bool:
        """Whether the check before this turn finds nothing to do."""
        record = self._records.get(slug, _NO_RECORD)
        return record.nothing > 0 and finds_nothing(record, draw(self._seed, slug, planned_at, attempt))

    def sample(self, slug: str, planned_at: Instant, attempt: int) -> Sample:
        """What this attempt does, and how long it takes."""
        record, failing = self._records.get(slug, _NO_RECORD), self._troubles.failing.get(slug)
        if not record.samples and failing is None:
            sample = UNRECORDED
        else:
            drawn = draw(self._seed, slug, planned_at, attempt)
            sample = sample_of(record, drawn)
            if failing is not None and drawn.trouble < failing:
                sample = sample._replace(outcome="failed", error=FAILURE)
        took = max(self._troubles.slow.get(slug, sample.took), TOOK_MIN)
        return sample if took == sample.took else sample._replace(took=took)

    def usages(self, slug: str) -> list[Usage | None]:
        """What its attempts used."""
        return [sample.usage for sample in self._records.get(slug, _NO_RECORD).samples]

    async def repeat(self, fire: Fire, ladder: Ladder) -> Sample:
        """Take as long as the drawn attempt; returns how it ends."""
        await ladder.climb("started")
        sample = self.sample(fire.slug, fire.planned_at, fire.attempt)
        self.meter.begins.append(self._clock.read().now)
        try:
            if sample.outcome == "timedOut":
                await asyncio.Event().wait()  # until the engine ends it
            else:
                await self._clock.sleep(sample.took)
        finally:
            self.meter.ends.append(self._clock.read().now)
        return sample


Perform: TypeAlias = Callable[[Behaviour, Any, Fire, Ladder], Awaitable[Result]]


class RecordedAction:
    """Performs one kind of action as recorded. `is_local`: its claim already says that it started."""

    is_local = True

    def __init__(self, behaviour: Behaviour, perform: Perform) -> None:
        self._behaviour = behaviour
        self._perform = perform

    def proves(self, spec: Any) -> RungName:
        return "finished"

    def check(self, spec: Any) -> None:
        return None

    async def perform(self, spec: Any, fire: Fire, ladder: Ladder) -> Result:
        return await self._perform(self._behaviour, spec, fire, ladder)

    async def close(self) -> None: ...


async def perform(behaviour: Behaviour, _: Any, fire: Fire, ladder: Ladder) -> Result:
    """Perform any action of a schedule."""
    return ended(await behaviour.repeat(fire, ladder))


async def perform_check(behaviour: Behaviour, _: Any, fire: Fire, __: Ladder) -> Result:
    """Perform the check before a turn."""
    is_nothing = behaviour.finds_nothing(fire.slug, fire.planned_at, fire.attempt)
    return Done(carries=NothingFound() if is_nothing else Found(FOUND))


async def perform_beat(behaviour: Behaviour, spec: HeartbeatTurn, fire: Fire, ladder: Ladder) -> Result:
    """Perform a heartbeat turn. The reply means the same as the recorded one."""
    if spec.is_beat and behaviour.finds_nothing(fire.slug, fire.planned_at, fire.attempt):
        return Done("claimed", carries=NothingToDo(is_checked=spec.check is not None))
    sample = await behaviour.repeat(fire, ladder)
    return ended(sample, reply=reply_of(sample, spec.ack))


def reply_of(sample: Sample, ack: AckRules) -> str | None:
    """A reply that means the same as the recorded one."""
    match sample.reason:
        case "ok-empty":
            return ""
        case "sent":
            return "(simulated)"
        case "no-reply":
            return None
        case _:
            return ack.token


def ended(sample: Sample, *, reply: str | None = None) -> Result:
    """How the attempt ends."""
    match sample.outcome:
        case "succeeded":
            return Done(usage=sample.usage, reply=reply)
        case "unconfirmed":
            return Unconfirmed(sample.error or "no sign of an end, as before")
        case _:
            return Failed(sample.error or "failed, as before", usage=sample.usage)


def replaced(actions: Mapping[type[Any], Action], behaviour: Behaviour) -> Mapping[type[Any], Action]:
    """All actions, replaced so that none contacts anything. Events stay: they only wake the heartbeat."""
    plain = RecordedAction(behaviour, perform)
    special: dict[type[Any], Action] = {
        CheckSpec: RecordedAction(behaviour, perform_check),
        HeartbeatTurn: RecordedAction(behaviour, perform_beat),
        **({Event: actions[Event]} if Event in actions else {}),
    }
    return {kind: special.get(kind, plain) for kind in actions}


async def no_process(process: Process) -> OrphanFate:
    """Nothing to end: a simulated node starts no processes."""
    return "gone"
