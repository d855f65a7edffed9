"""The world: machines that crash, freeze, sleep and boot with a wrong clock, over one store, under the judge's eye.

Theory of operation
-------------------
Everything here is true time; only the `Wall` is what the machines believe. A `Machine` boots again and again: each boot
is a `Process` of the virtual loop with its own store handle, clock and engine, so that killing it leaves nothing behind
but what was committed. Troubles are carried out at their time by one driver task that belongs to no machine.

The judge is asked inside the store's commit (`machine`): before anybody is answered, before anything that
follows from the commit can happen, and also when the node is about to die of that very commit. It is asked again after
every tick, whether silence has set in.

The first broken law ends the world.
"""

import asyncio
import logging
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import copy_context
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from wakeful.core.errors import Invalid
from wakeful.core.schedule.labels import queue_of
from wakeful.core.time.instants import DAY, HOUR, MINUTE, SECOND, Duration, Instant, format_duration, format_instant
from wakeful.engine.limits import Limits
from wakeful.features.schedules.rules import Terms
from wakeful.ports.action import Fire
from wakeful.ports.clock import Moment
from wakeful.ports.store import Node, StoreUnavailable, Tx
from wakeful.stores.sqlite.connection import connect, open_reader
from wakeful.stores.sqlite.store import SqliteStore
from wakeful.testing.virtual_clock import EPOCH, Wall
from wakeful.testing.virtual_loop import VirtualLoop, drain
from worlds import laws
from worlds.alike import Alike, AlikeDeed, draw_alike, is_one
from worlds.facts import Notes, read_facts, take_notes
from worlds.faults import (
    Climate,
    ClockStep,
    CommitFaults,
    Deed,
    Freeze,
    Outage,
    Restart,
    Suspend,
    Trouble,
    WrongClock,
    draw_definition,
    draw_troubles,
    streams,
)
from worlds.holidays import Calendar, Holidays, draw_holidays, with_own_days
from worlds.inhabitants import Act
from worlds.judge import Broken, Judge
from worlds.laws import Ending, Seen
from worlds.machine import Machine
from worlds.meddling import TOUCHES, Meddlers, Meddling, draw_meddling
from worlds.population import settle_in
from worlds.shortages import Shortages
from worlds.system import ZONE, Assemble, System, run_on_for
from worlds.told import Reader

NAP: Final = 10 * SECOND
"""A node that is full looks again this soon; sleeping longer is sleeping."""

Say = Callable[[str], None]


class Report(NamedTuple):
    """What a world came to."""

    seed: int
    days: float
    nodes: int
    commits: int
    ticks: int
    attempts: int
    rows: int
    crashes: int
    boots: int
    outside: Mapping[str, int]  # what people did to runs, and what inhabitants saw, in numbers


class World:
    """One run of one seed."""

    def __init__(
        self, seed: int, climate: Climate, limits: Limits, folder: Path, assemble: Assemble, say: Say | None = None
    ) -> None:
        self.seed = seed
        self.climate = climate
        self.limits = limits
        self.path = folder / f"world-{seed}.db"
        self.assemble = assemble
        self.loop = VirtualLoop()
        self.wall = Wall(self.loop)
        self.calendar = Calendar(lambda: self.loop.now_ms)
        self.judge = Judge(self.calendar)
        self._reader = Reader()
        (self.rng, self.machine_rng, self.handler_rng, commit_rng) = streams(
            seed, "troubles", "machines", "handlers", "commits"
        )
        (shortage_rng,) = streams(seed, "shortages")
        self.shortages = Shortages(shortage_rng, climate.shortages)
        self.days_rng, holiday_rng = streams(seed, "own days", "holidays")
        self._holidays = draw_holidays(holiday_rng, days=climate.days, per_day=climate.holidays_per_day)
        self.commit_faults = CommitFaults(commit_rng, probability=climate.crash_per_commit)
        self.ticks = self.attempts = self.crashes = self.boots = 0
        self.stepped_at = -1  # true time when the wall was last moved
        self._voided: set[int] = set()  # nodes that were seen to have lost their lease
        self.slugs: dict[str, None] = {}  # those a person was told are there
        self.attended_at: dict[str, int] = {}
        self.cancelled: dict[int, int] = {}  # runs a person asked to cancel, and their last attempt then
        self._say = say
        self._named = 0
        self._steps = 0  # what the wall was moved by for good
        meddling_rng, meddlers_rng = streams(seed, "meddling", "meddlers")
        self._meddling = draw_meddling(meddling_rng, climate)
        self.meddlers = Meddlers(meddlers_rng, self, climate)
        (alike_rng,) = streams(seed, "alike")
        self._alike = draw_alike(alike_rng, climate) if climate.has_alike else []
        self.batches: Counter[str] = Counter()  # of runs that were written together (`worlds.plain_law`)
        self.inhabitants = settle_in(seed, climate, self, folder)
        self._machines = [Machine(self, index) for index in range(climate.nodes)]
        self._broken: asyncio.Future[None] = self.loop.create_future()
        self.context = copy_context()
        self._observer: Any = None
        self._notes: Notes | None = None
        self.is_over = False

    # -- life ---------------------------------------------------------------------------------------------------------

    def run(self) -> Report:
        """From the first boot to the last day; raises `Broken` at the first broken law."""
        self.loop.set_exception_handler(lambda _, about: self.report([f"L9 {about['message']}: {about}"]))
        with _listening(self):
            try:
                self.loop.run(self._main())
            finally:
                self.is_over = True
                for machine in self._machines:
                    machine.remove()
                if self._observer is not None:
                    self._observer.connection.close()
                self.loop.set_exception_handler(lambda *_: None)
                drain(self.loop)
        rows = sum(len(book.rows) for book in self.judge.books.values())
        climate = self.climate
        return Report(
            self.seed, climate.days, climate.nodes, self.judge.looks, self.ticks, self.attempts, rows, self.crashes,
            self.boots, self.meddlers.figures() | {
                what: count for one in self.inhabitants for what, count in one.figures().items()
            } | self.batches,
        )  # fmt: skip

    async def _main(self) -> None:
        maker = SqliteStore.open_inline(self.path, hook=_Calm())
        await maker.close()
        connection = connect(self.path)
        take_notes(connection, [*TOUCHES, *(touch for one in self.inhabitants for touch in one.touches)])
        connection.close()
        self._observer = open_reader(self.path)
        self._notes = Notes(self._observer)
        driver = asyncio.create_task(self._drive())
        await asyncio.wait([driver, self._broken], return_when=asyncio.FIRST_COMPLETED)
        if self._broken.done():
            driver.cancel()
            await asyncio.wait([driver])
            await self._broken
        self._broken.cancel()
        await driver

    async def _drive(self) -> None:
        for machine in self._machines:
            machine.boot()
        await asyncio.sleep(1)
        for _ in range(self.rng.randint(2, self.climate.schedules)):
            self._do(Deed(0, "add", 0.0, self._definition(self.rng)))
            await asyncio.sleep(self.rng.random())
        troubles: list[Trouble | Act | Holidays | Meddling | Alike | AlikeDeed] = [
            *draw_troubles(self.rng, self.climate, self._definition)
        ]
        near = [trouble.at for trouble in troubles if not isinstance(trouble, Deed)]
        troubles += [act for one in self.inhabitants for act in one.draw_acts(near)]
        troubles += self._holidays
        troubles += self._meddling
        troubles += self._alike
        for trouble in sorted(troubles, key=lambda trouble: trouble.at):
            await self._until(trouble.at)
            self.say(lambda trouble=trouble: str(trouble))  # type: ignore[misc]
            self._befall(trouble)
        await self._until(int(self.climate.days * DAY))
        self.report(self._last_look())

    async def _until(self, true_time: int) -> None:
        if true_time > self.loop.now_ms:
            await asyncio.sleep((true_time - self.loop.now_ms) / 1000)

    # -- what people and their clients see ----------------------------------------------------------------------------

    def say(self, text: Callable[[], str]) -> None:
        """Tell whoever replays this; the text is only made if somebody listens."""
        if self._say is not None:
            self._say(f"{format_duration(self.loop.now_ms):>16} | {format_instant(self.wall.read())} | {text()}")

    def report(self, violations: Iterable[str]) -> None:
        """End the world if there is any."""
        found = list(violations)
        if not found or self._broken.done() or self.is_over:
            return
        when = f"after {format_duration(self.loop.now_ms)}, the wall says {format_instant(self.wall.read())}"
        command = f"python -m worlds --seed {self.seed} --days {self.climate.days:g}"
        command += f" --nodes {self.climate.nodes}"
        command += "" if self.climate.meddling_min else " --left-alone"
        command += " --alike" if self.climate.has_alike else ""
        command += f" --with {','.join(sorted(self.climate.inhabitants)) or 'nobody'}"
        text = "\n  ".join(found[:8])
        self._broken.set_exception(Broken(f"seed {self.seed}, {when}:\n  {text}\nreplay it: {command}"))

    @property
    def seen_tx(self) -> Tx:
        """The store as it was last committed, for reading."""
        tx: Tx = self._observer.tx
        return tx

    @property
    def is_clock_unset(self) -> bool:
        """Whether the wall says a time before there was anything."""
        return self.wall.read() < EPOCH - HOUR

    def later(self, delay: Duration, callback: Callable[[], None]) -> None:
        """Do something that belongs to no machine."""
        self.loop.call_at(self.loop.time() + delay / 1000, callback, context=self.context)

    # -- the judge ----------------------------------------------------------------------------------------------------

    def look(self) -> None:
        """Hold what the last commit wrote against the laws."""
        if self._notes is None or self._broken.done():
            return
        connection = self._observer.connection
        connection.execute("BEGIN")
        touched = self._notes.read_on()
        found: list[str] = []
        if touched is not None:
            kept = (self.limits.ledger_days - 10) * DAY  # a clock a few days ahead may forget a few days more
            now, pruned_before = self.wall.read(), self._true_wall() - kept
            facts = read_facts(self._observer.tx, touched, waiting=self.judge.waiting)
            found += self.judge.look(facts, now=now, pruned_before=pruned_before)
            found += self._reader.look(self._observer.tx, facts, self.calendar.terms(Terms(default_zone=ZONE)), now)
            found += self._judge_leases(facts.nodes)
            self.meddlers.look(self._observer.tx, touched.others, facts.runs)
            for inhabitant in self.inhabitants:
                found += inhabitant.look(touched.others, facts.runs, now=now, pruned_before=pruned_before)
        connection.execute("ROLLBACK")
        self.report(found)

    def _judge_leases(self, nodes: Iterable[Node]) -> Iterator[str]:
        """Ask of each node that has lost its lease just now whether it gave cause."""
        taken = [node.node_id for node in nodes if node.voided_at is not None and node.node_id not in self._voided]
        self._voided.update(taken)
        for machine in self._machines:
            since = machine.steady_since
            if machine.node_id in taken and since is not None:
                steady_for = self.loop.now_ms - since
                yield from laws.lease_is_kept(
                    machine.name, machine.node_id, steady_for=steady_for, lease=self.limits.lease
                )

    def ticked(self, machine: Machine, moment: Moment, deadline: int) -> None:
        """A node has looked at its clock."""
        self.ticks += 1
        machine.ticks += 1
        if self.is_clock_unset or self.wall.read() != moment.now:
            return  # nothing is planned on a clock that is not set; and this one moved under the tick
        if deadline <= moment.monotonic:
            return  # it looks again at once: there is more, or it has just learnt that it lost its lease
        # A clock that comes back while nobody is up is compared with how far it was when a lease was last renewed.
        ahead_max = 2 * MINUTE + self.limits.renew_every
        is_asleep = deadline > moment.monotonic + NAP and not machine.is_stopping
        found = list(self._silent(machine, moment.now, is_asleep=is_asleep, ahead_max=ahead_max))
        if found and is_asleep:  # something may have come due while it looked, and rung the bell
            self.later(1, partial(self._look_again, machine, ahead_max, since=(machine.ticks, self.stepped_at)))
        else:
            self.report(found)
        self.report(machine.haunted())
        self.report(self._left_lying(machine))

    def _silent(self, machine: Machine, now: Instant, *, is_asleep: bool, ahead_max: Duration) -> Iterator[str]:
        yield from self.judge.ticked(now=now, is_asleep=is_asleep, ahead_max=ahead_max, labels=machine.labels)
        for inhabitant in self.inhabitants:
            yield from inhabitant.ticked(now=now, is_asleep=is_asleep, ahead_max=ahead_max)

    def _look_again(self, machine: Machine, ahead_max: Duration, *, since: tuple[int, int]) -> None:
        """A node seemed to sleep over something; if it has not looked again by now, it does."""
        if machine.is_awake and not machine.is_stopping and (machine.ticks, self.stepped_at) == since:
            self.report(self._silent(machine, self.wall.read(), is_asleep=True, ahead_max=ahead_max))

    def began(self, machine: Machine, fire: Fire) -> None:
        self.attempts += 1
        row = self.judge.row(fire.run_id)
        node = -1 if row is None or row.owner is None else row.owner
        seen = Seen(fire.run_id, fire.schedule_id, fire.attempt, fire.idempotency_key, None, node, self.loop.now_ms)
        self.say(lambda: f"{machine.name}: {fire.slug} run {fire.run_id} attempt {fire.attempt} begins")
        self.report(self.judge.began(seen))
        self.report(laws.cancelled_does_not_begin(seen, self.cancelled))
        self.report(laws.begins_where_it_may(fire.slug, row, queue_of(run_on_for(fire.slug)), machine.labels))

    def ended(self, machine: Machine, run_id: int, attempt: int, ending: Ending) -> None:
        self.say(lambda: f"{machine.name}: run {run_id} attempt {attempt} ends {ending}")
        self.judge.ended(run_id, attempt, ending, true_time=self.loop.now_ms)

    def _left_lying(self, awake: Machine) -> Iterator[str]:
        """L6: a node that is gone loses its lease, and its runs with it, when another is awake for long enough."""
        # One lease until it is over, and one more in which a clock that came back is seen to run steadily.
        patience = 2 * self.limits.lease + 2 * self.limits.renew_every + MINUTE
        since = self.loop.now_ms - patience
        if awake.awake_since >= since:
            return
        for name, run in self.judge.running():
            died_at = next((m.gone[run.owner] for m in self._machines if run.owner in m.gone), None)
            if died_at is not None and died_at < since:
                long = format_duration(self.loop.now_ms - died_at)
                yield f"L6 {name}: {laws.describe(run)} belongs to node {run.owner}, gone for {long}"

    def _last_look(self) -> Iterator[str]:
        """At the end: what a person was told is there is there (L7), and the books are what the store says."""
        yield from self.judge.compare(self._observer.tx)
        for inhabitant in self.inhabitants:
            yield from inhabitant.last_look()
        there = self._observer.tx.schedules.by_slugs(list(self.slugs))
        for slug in self.slugs:
            if slug not in there:
                yield f"L7 {slug}: its writer was told that it is there, and it is not"

    # -- troubles -----------------------------------------------------------------------------------------------------

    def _befall(self, trouble: Trouble | Act | Holidays | Meddling | Alike | AlikeDeed) -> None:
        match trouble:
            case Alike() | AlikeDeed():
                self._befall_alike(trouble)
            case Meddling():
                self.meddlers.begin(trouble)
            case Holidays(dates=dates):
                self.calendar.change(dates)
                for machine in self._machines:
                    machine.read_settings()
            case Deed():
                self._do(trouble)
            case Act():
                self._let_act(trouble)
            case Outage(node=node, lasting=lasting):
                self._machines[node].kill(boots_after=lasting)
            case Restart(node=node, lasting=lasting):
                self._machines[node].restart(lasting)
            case Freeze(node=node, lasting=lasting):
                self._machines[node].freeze(lasting, is_suspend=False)
            case Suspend(node=node, lasting=lasting):
                self._machines[node].freeze(lasting, is_suspend=True)
            case ClockStep(by=by):
                self._steps += by
                self._set_wall(self.wall.read() + by)
            case WrongClock(says=says, lasting=lasting, with_boot=with_boot):
                self._set_wall(says)
                self.later(lasting, self._correct)
                if with_boot:
                    for machine in self._machines:
                        machine.kill(boots_after=self.machine_rng.randrange(SECOND, MINUTE))

    def _true_wall(self) -> Instant:
        """What the wall says when it is not altogether wrong."""
        return EPOCH + self.loop.now_ms + self._steps

    def _set_wall(self, now: Instant) -> None:
        self.stepped_at = self.loop.now_ms
        self.wall.set(now)

    def _correct(self) -> None:
        self._set_wall(self._true_wall())
        self.say(lambda: "the clock is corrected")

    def _let_act(self, act: Act) -> None:
        machine = self.somewhere(act.draw)
        if machine is not None:
            machine.act(act)

    def machine_of(self, node_id: int | None) -> Machine | None:
        """The machine on which a node is up."""
        return next((one for one in self._machines if node_id is not None and one.node_id == node_id), None)

    def somewhere(self, draw: float) -> Machine | None:
        """Some machine that is awake."""
        awake = [machine for machine in self._machines if machine.is_awake]
        return awake[int(draw * 7919) % len(awake)] if awake else None

    def _do(self, deed: Deed) -> None:
        """Let a person do something, on some machine that is awake; if none is, it is not done."""
        machine = self.somewhere(deed.draw)
        if machine is None:
            return
        slugs = [slug for slug in self.slugs if not is_one(slug)]
        if deed.what == "cancel":  # what runs or waits
            slugs = [slug for slug in slugs if self.judge.is_open(slug)] or slugs
        if deed.what == "resume":  # people resume what stands still, mostly
            slugs = [slug for slug in slugs if self.judge.is_halted(slug)] or slugs
        slug = slugs[int(deed.draw * len(slugs))] if slugs else None
        if deed.what == "add" and len(slugs) < self.climate.schedules:
            self._named += 1
            slug = f"s{self._named}"
        if slug is not None:
            machine.do(deed, slug)

    def _befall_alike(self, trouble: Alike | AlikeDeed) -> None:
        machine = self.somewhere(trouble.draw)
        if machine is None:
            return
        if isinstance(trouble, Alike):
            self._write_alike(trouble, machine)
        elif trouble.slug in self.slugs:
            machine.do(trouble.deed, trouble.slug)

    def _write_alike(self, alike: Alike, machine: Machine) -> None:
        slugs, written = alike.slugs, alike.definitions(self.wall.read())

        async def write(system: System) -> None:
            self.attended_at.update(dict.fromkeys(slugs, self.loop.now_ms))
            try:
                await system.put_many(written)
            except (Invalid, StoreUnavailable) as refused:  # a wrong clock: its time is over
                why = str(refused)
                self.say(lambda: f"{alike.name} is refused: {why}")
            else:
                self.slugs.update(dict.fromkeys(slugs))
                self.attended_at.update(dict.fromkeys(slugs, self.loop.now_ms))

        machine.run_errand(write)

    def _definition(self, rng: random.Random) -> dict[str, Any]:
        """What a person writes; drawn for the middle of the world, so that single instants fall into it."""
        now = EPOCH + rng.randrange(int(self.climate.days * DAY))
        return with_own_days(self.days_rng, draw_definition(rng, now=now, pace=self.climate.pace), now)


class _Calm:
    """A hook under which nothing happens."""

    def group_size(self, waiting: int) -> int:
        return waiting

    def before_commit(self) -> None: ...

    def after_commit(self) -> None: ...


@contextmanager
def _listening(world: World) -> Iterator[None]:
    """Hear what the system logs: an error is a violation, the rest is told to whoever replays."""
    logger = logging.getLogger("wakeful")
    ear = _Ear(world)
    before = (logger.propagate, logger.level)
    logger.propagate = False
    logger.setLevel(logging.WARNING)
    logger.addHandler(ear)
    try:
        yield
    finally:
        logger.removeHandler(ear)
        logger.propagate, logger.level = before


class _Ear(logging.Handler):
    def __init__(self, world: World) -> None:
        super().__init__(logging.WARNING)
        self._world = world

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno >= logging.ERROR:
            self._world.report([f"L9 the system logged: {self.format(record)}"])
        else:
            self._world.say(lambda: f"  log: {record.getMessage()}")
