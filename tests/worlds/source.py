"""Another scheduler as an inhabitant: its jobs run there until they are taken over, at any moment and in any trouble.

The source is outside of every machine and never fails: a job runs there at each of its times, by the same wall clock,
as long as it is switched on. So what ran there is known without running it: everything until it was switched off. What
is taken over is driven by the real `Handovers`, over a switch that is slow, fails, and loses its answer.
"""

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from wakeful.app.bootstrap import FeatureContext
from wakeful.core.errors import Invalid
from wakeful.core.refusals import NotFound
from wakeful.core.run.runs import Run
from wakeful.core.schedule.definition import rules_of
from wakeful.core.schedule.definition_json import definition_from_json
from wakeful.core.time.instants import HOUR, MINUTE, SECOND, Duration, Instant, format_duration, format_instant
from wakeful.core.time.timing import Timing
from wakeful.features.moving.handover import Handovers, next_handover_at
from wakeful.features.moving.handover_rows import Handover, HandoverJournals
from wakeful.features.schedules import commands
from wakeful.features.schedules.checks import check
from wakeful.features.schedules.takeover import await_handover, take_over
from wakeful.ports.action import Action
from wakeful.ports.handlers import FeatureHooks
from wakeful.ports.moving import SwitchFailed
from wakeful.ports.store import Tx
from worlds import source_laws as laws
from worlds.inhabitants import Act, Boot, Surroundings, Touch, draw_times
from worlds.system import ZONE, Shipped

NAME: Final = "source"
HANDOVER: Final = "handover"
KIND: Final = "simulated"
PATIENCE: Final[Duration] = 15 * MINUTE
LIVES: Final[Duration] = HOUR // 2
_DONE: Final = ("done", "abandoned")


@dataclass(slots=True)
class Job:
    """One job of the source."""

    slug: str
    timing: Timing
    host: str  # the machine that takes it over
    began_at: int  # true time when that was asked for
    off_at: Instant | None = None  # by the wall: it ran there until then
    off_since: int | None = None  # the same in true time
    is_over: bool = False  # it was judged, or cannot be


class SimSwitch:
    """The way to the source from one boot."""

    def __init__(self, source: "Source", boot: Boot) -> None:
        self._source = source
        self._boot = boot

    async def is_off(self, what: Sequence[Mapping[str, Any]]) -> bool:
        await self._boot.clock.sleep(self._source.rng.randrange(SECOND))
        return all(self._source.jobs[one["job"]].off_at is not None for one in what)

    async def switch_off(self, what: Sequence[Mapping[str, Any]], *, within: Duration) -> None:
        rng = self._source.rng
        manner = rng.random()
        await self._boot.clock.sleep(rng.randrange(2 * SECOND) if manner < 0.7 else rng.randrange(90 * SECOND))
        if rng.random() < 0.1:
            raise SwitchFailed("it does not answer")
        for one in what:
            self._source.switched_off(self._source.jobs[one["job"]], self._boot)
        if rng.random() < 0.3:
            raise SwitchFailed("the answer was lost")


class Source:
    """All jobs of the source, and who has them."""

    name = NAME
    touches: Sequence[Touch] = (Touch("handovers", HANDOVER, "created_at"),)

    def __init__(self, rng: random.Random, world: Surroundings, *, days: float, per_day: float) -> None:
        self.rng = rng
        self._world = world
        self._days = days
        self._per_day = per_day
        self.jobs: dict[str, Job] = {}
        self._taken = 0
        self._excused = 0
        self._boots: dict[str, Boot] = {}

    def move_in(self, boot: Boot) -> "SourceTenant":
        self._boots[host_of(boot)] = boot
        return SourceTenant(self, boot)

    def actions(self, _: Boot, __: Action) -> Mapping[type[Any], Action]:
        return {}

    def draw_acts(self, near: Sequence[int]) -> list[Act]:
        per_day = min(self._per_day / 4, 5.0)
        times = draw_times(self.rng, per_day=per_day, days=self._days, near=near)
        return [Act(at, NAME, "take over", self.rng.random()) for at in times]

    def figures(self) -> Mapping[str, int]:
        return {"jobs taken over": self._taken, "jobs taken over on a clock that moved": self._excused}

    def new_job(self, boot: Boot, now: Instant) -> tuple[Job, dict[str, Any]]:
        """A job of the source, and the definition that it becomes here."""
        slug = f"m{len(self.jobs) + 1}"
        every = self.rng.choice((MINUTE, MINUTE, 5 * MINUTE))
        anchor = now - self.rng.randrange(every) if self.rng.random() < 0.5 else 0
        written = {
            "schedule": {"type": "every", "every": format_duration(every), "anchor": format_instant(max(0, anchor))},
            "http": {"url": "http://simulated/"},
            "catchUp": self.rng.choice(("once", "skip", "all")),
            "maxConsecutiveErrors": 0,
            "expiresAt": format_instant(now + LIVES),  # a job of every minute is dear
        }
        timing = rules_of(definition_from_json(written, default_zone=ZONE, slug=slug), 0).timing
        job = Job(slug, timing, host_of(boot), self._world.loop.now_ms)
        self.jobs[slug] = job
        return job, written

    def switched_off(self, job: Job, boot: Boot) -> None:
        if job.off_at is None:
            job.off_at, job.off_since = self._world.wall.read(), self._world.loop.now_ms
            self._world.say(lambda: f"{boot.name}: {job.slug} is off in its source")

    # -- what the store says ------------------------------------------------------------------------------------------

    def look(
        self, touched: Mapping[str, frozenset[int]], runs: Mapping[int, Run], *, now: Instant, pruned_before: Instant
    ) -> Iterator[str]:
        if HANDOVER not in touched:
            return
        tx = self._world.seen_tx
        for job in [job for job in self.jobs.values() if not job.is_over]:
            row = tx[HandoverJournals].get(job.slug)
            if row is None or row.stage not in _DONE:
                continue
            job.is_over = True
            if self._world.stepped_at >= job.began_at:
                self._excused += 1  # a clock that moves makes its source repeat and skip
                continue
            self._taken += row.stage == "done"
            yield from self._judge(tx, job, row, runs)

    def _judge(self, tx: Tx, job: Job, row: Handover, runs: Mapping[int, Run]) -> Iterator[str]:
        schedule = tx.schedules.by_slugs([job.slug])[job.slug]
        cadence = tx.cadences.lock([schedule.schedule_id])[schedule.schedule_id]
        if row.stage == "abandoned":
            yield from laws.abandoned_runs_there(job.slug, job.off_at)
            return
        rows = [run for run in runs.values() if run.schedule_id == schedule.schedule_id]
        yield from laws.is_off_there(job.slug, job.off_at)
        if job.off_at is not None:
            yield from laws.runs_once_in_all(job.slug, job.timing, job.off_at, cadence.planned_through, rows)

    def ticked(self, *, now: Instant, is_asleep: bool, ahead_max: Duration) -> Iterator[str]:
        since = self._world.loop.now_ms - PATIENCE
        for job in self.jobs.values():
            boot = self._boots.get(job.host)
            is_calm = boot is not None and boot.began_at < since and boot.is_undisturbed(since)
            if not job.is_over and job.off_since is not None and job.off_since < since and is_calm:
                yield from laws.is_taken_over_in_the_end(job.slug, self._world.loop.now_ms - job.off_since)

    def last_look(self) -> Iterator[str]:
        yield from ()


class SourceTenant:
    """The handovers on one boot."""

    def __init__(self, source: Source, boot: Boot) -> None:
        self._source = source
        self._boot = boot
        self._handovers: Handovers | None = None
        self._system: Shipped | None = None

    async def plug(self, context: FeatureContext) -> FeatureHooks:
        self._handovers = Handovers(
            context.store,
            context.clock,
            host=host_of(self._boot),
            switches={KIND: SimSwitch(self._source, self._boot)},
            activate=_activate,
            ring_bell=context.ring_bell,
        )
        return FeatureHooks(services=[self._handovers])

    def arrive(self, system: Shipped) -> None:
        """The system that it is part of is put together."""
        self._system = system

    async def act(self, act: Act) -> None:
        assert self._system is not None and self._handovers is not None
        parts = self._system.parts
        now = parts.clock.read().now
        job, written = self._source.new_job(self._boot, now)
        definition = definition_from_json(written, default_zone=ZONE, slug=job.slug)
        checked = check(definition, parts.conditions, now=now)
        body = json.dumps({"slugs": [job.slug], "off": [{"kind": KIND, "what": {"job": job.slug}}]})
        journal = Handover(job.slug, KIND, job.host, "written", next_handover_at(now), None, body, None, now, now)

        def write(tx: Tx) -> None:
            (put,) = commands.put_many(tx, [checked], hooks=parts.hooks, now=now)
            if isinstance(put, Invalid):
                raise put
            await_handover(tx, job.slug, now=now)
            tx[HandoverJournals].put(journal)

        await parts.store.write(write)
        self._handovers.drive(journal)


def _activate(tx: Tx, slug: str, off_at: Instant, hand_at: Instant, now: Instant) -> None:
    try:
        take_over(tx, slug, off_at=off_at, hand_at=hand_at, now=now)
    except NotFound:
        return


def host_of(boot: Boot) -> str:
    """The machine of a boot."""
    return boot.name.partition(".")[0]
