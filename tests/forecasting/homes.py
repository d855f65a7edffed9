"""Random homes: fifty schedules of all kinds with a few days of history, and a month in which something goes wrong.

A home lives twice: in a simulation, over a copy, and for real on the virtual clock: the whole app over its own file,
killed and started again where the simulation has an outage. Both use the same records and the same seed.
"""

import random
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from wakeful import Heartbeat, Wakeful
from wakeful.app import bootstrap
from wakeful.app.bootstrap.looking import looking
from wakeful.app.simulation_job import SimulationJob
from wakeful.core.run.effects import Replan
from wakeful.core.run.usage import Usage
from wakeful.core.simulation.draws import Record, Sample
from wakeful.core.simulation.request import SimulationRequest, Span, Troubles, UsedUpBudget, UsedUpSlot
from wakeful.core.time.instants import DAY, HOUR, MINUTE, SECOND, Instant, format_instant
from wakeful.integrations.agents.echo import EchoAgent
from wakeful.ports.clock import Clock
from wakeful.ports.handlers import FeatureHooks
from wakeful.ports.slots import QuotaSlots
from wakeful.ports.store import Store, Tx
from wakeful.simulation.actions import Behaviour, Meter, replaced
from wakeful.simulation.copying import Copied, read_copy
from wakeful.simulation.gates import gates_of
from wakeful.stores.sqlite.store import SqliteStore
from wakeful.testing.virtual_clock import VirtualClock, Wall
from wakeful.testing.virtual_loop import Process, VirtualLoop

BORN_AT: Final[Instant] = 1_774_000_000_000  # 2026-03-20T09:46:40Z: a change of the clocks falls into the month
HISTORY: Final = 4  # days
SCHEDULES: Final = 50
SLOT: Final = "main"
DISTURBING: Final = frozenset({"slot", "activeHours", "check"})
_CALM: Final[dict[str, Any]] = {"lease": 400 * DAY, "renew_every": 100 * DAY, "sleep_max": DAY, "prune_every": DAY}
ZONES: Final = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata")


class Commits:
    """Groups of one: the order of commits is the order of the calls."""

    def group_size(self, waiting: int) -> int:
        return waiting

    def before_commit(self) -> None: ...

    def after_commit(self) -> None: ...


class Home:
    """One home, made from a seed."""

    def __init__(
        self, seed: int, folder: Path, *, days: int = 30, history: int = HISTORY, is_calm: bool = False
    ) -> None:
        self.rng = random.Random(seed)
        self.seed = seed
        self.is_calm = is_calm  # most attempts are short and succeed, and nothing goes wrong around them
        self.path = folder / "wakeful.db"
        self.days = days
        self.history = history
        self.loop = VirtualLoop()
        self.wall = Wall(self.loop, BORN_AT)
        self.definitions = {f"s{n}": self._definition(n) for n in range(SCHEDULES)}
        self.synthetic = {slug: self._record() for slug in (*self.definitions, "heartbeat")}
        for slug, written in self.definitions.items():
            if "command" in written:  # a program that uses no model
                self.synthetic[slug] = _without_usage(self.synthetic[slug])
        self.heartbeat = Heartbeat(every=self.rng.choice(("2h", "6h")), enabled=self.rng.random() < 0.7)
        self._process: Process | None = None
        self._store: SqliteStore | None = None
        self._stack = ExitStack()
        self.app: Wakeful | None = None

    # --- what it consists of -----------------------------------------------------------------------------------------

    def _definition(self, n: int) -> dict[str, Any]:
        rng = self.rng
        kinds = ("command", "http", "prompt", "event")
        kind = rng.choices(kinds, weights=(5, 3, 5, 1))[0]
        written: dict[str, Any] = {"schedule": self._timing(kind), **self._action(kind)}
        options: dict[str, tuple[float, Callable[[], Any]]] = {
            "catchUp": (0.4, lambda: rng.choice(("skip", "all"))),
            "maxLateness": (0.1, lambda: "2h"),
            "overlap": (0.3, lambda: "queue"),
            "timeout": (0.4, lambda: rng.choice(("20m", "1h"))),
            "onCrash": (0.2, lambda: "unknown"),
            "maxConsecutiveErrors": (0.3, lambda: rng.choice((0, 2, 3))),
            "stagger": (0.2, lambda: "15m"),
            "slot": (0.15, lambda: SLOT),
            "retry": (0.3, lambda: {"times": rng.randrange(1, 4), "delay": rng.choice(("1m", "20m"))}),
            "activeHours": (0.15, lambda: {"start": "08:00", "end": "19:00", "timezone": rng.choice(ZONES)}),
            "expiresAt": (0.05, lambda: format_instant(BORN_AT + HISTORY * DAY + rng.randrange(30) * DAY)),
        }
        if kind != "event":
            options["lane"] = (0.3, lambda: rng.choice(("a", "b")))
        if kind == "prompt":
            options["check"] = (0.2, lambda: {"command": {"argv": ["true"]}})
            options["budget"] = (0.2, lambda: {"perDay": 0.5, "tokensPerDay": 40_000})
        if self.is_calm and kind == "prompt":
            options["budget"] = (0.3, lambda: {"perDay": rng.choice((0.5, 5.0))})
        for name, (share, value) in options.items():
            if rng.random() < (share / 4 if self.is_calm and name in DISTURBING else share):
                written[name] = value()
        return written

    def _timing(self, kind: str) -> dict[str, Any]:
        rng = self.rng
        minute, hour, zone = rng.randrange(60), rng.randrange(24), rng.choice(ZONES)
        once = BORN_AT + rng.randrange((4 + self.days) * 24) * HOUR + rng.randrange(HOUR) // SECOND * SECOND + HOUR
        return rng.choices(
            (
                {"type": "cron", "expression": f"{minute} {hour} * * *", "timezone": zone},
                {"type": "cron", "expression": f"{minute} */{rng.choice((3, 6))} * * 1-5", "timezone": zone},
                {"type": "every", "every": f"{rng.choice((3, 5, 8, 26))}h"},
                {"type": "times", "times": ["02:30", f"{4 + hour % 20:02}:15"], "timezone": zone},
                {"type": "once", "at": format_instant(once)},
                {"type": "afterReset", "slot": SLOT, "offsetMinutes": 5},
                {"type": "manual"},
                {"type": "every", "every": f"{rng.choice((61, 95))}m"},
            ),
            weights=(6, 3, 5, 2, 2, 1, 0.3, 1),
        )[0]

    def _action(self, kind: str) -> dict[str, Any]:
        match kind:
            case "command":
                return {"command": {"argv": ["true"]}}
            case "http":
                return {"http": {"method": "GET", "url": "http://127.0.0.1:9/"}}
            case "prompt":
                return {"prompt": "go on", "agent": "default"}
            case _:
                return {"event": {"text": "something happened"}}

    def _record(self) -> Record:
        """What a schedule does; milliseconds are odd, so that nothing ends in the moment in which something begins."""
        rng = self.rng
        longest = rng.choice((5 * SECOND, 10 * MINUTE, 90 * MINUTE))
        bad = rng.choice((0.0, 0.0, 0.1, 0.5))
        if self.is_calm:
            longest, bad = min(longest, 2 * MINUTE), min(bad, 0.1)
        samples: list[Sample] = []
        for _ in range(8):
            usage: Usage = {"total": rng.randrange(100, 9_000), "cost": rng.randrange(1, 200) / 1000}
            outcome = rng.choice(("failed", "timedOut", "unconfirmed")) if rng.random() < bad else "succeeded"
            took = rng.randrange(longest) * 2 + 1
            reason = rng.choice(("ok-ack", "ok-empty", "sent", "no-reply"))
            samples.append(Sample(outcome, took, usage, reason, "it broke" if outcome != "succeeded" else None))
        return Record(tuple(samples), 10, rng.choice((0, 3)))

    def troubles(self, now: Instant) -> Troubles:
        """What goes wrong in the month."""
        if self.is_calm:
            return Troubles()
        rng, slugs, names = self.rng, sorted(self.definitions), sorted((*self.definitions, "heartbeat"))

        def span(longest: int) -> Span:
            starts_at = now + rng.randrange(self.days * DAY) | 1
            return Span(starts_at, starts_at + rng.randrange(1, longest) * 2)

        outages = sorted(span(2 * DAY) for _ in range(rng.randrange(3)))
        apart = [one for n, one in enumerate(outages) if n == 0 or one.starts_at > outages[n - 1].ends_at + HOUR]
        return Troubles(
            without=tuple(rng.sample(slugs[:10], rng.randrange(3))),
            outages=tuple(apart),
            failing={slug: rng.random() for slug in rng.sample(names, 5)},
            slow={slug: rng.randrange(3 * HOUR) * 2 + 1 for slug in rng.sample(names, 5)},
            quota=tuple(UsedUpSlot(*span(8 * HOUR), SLOT) for _ in range(rng.randrange(4))),
            budgets=tuple(UsedUpBudget(*span(DAY), "agent:default") for _ in range(rng.randrange(2))),
        )

    def drafts(self) -> dict[str, dict[str, Any]]:
        """Changed and new definitions."""
        changed = {slug: self._definition(0) for slug in self.rng.sample(sorted(self.definitions)[10:], 3)}
        drafts = {**changed, "new": self._definition(0)}
        for slug, written in drafts.items():
            written["slug"] = slug
            written["schedule"] = {"type": "every", "every": f"{self.rng.choice((3, 7))}h"}
            written.pop("expiresAt", None)
        return drafts

    # --- living for real ---------------------------------------------------------------------------------------------

    @property
    def now(self) -> Instant:
        return self.wall.read()

    def boot(self, records: Mapping[str, Record], troubles: Troubles, seed: int) -> None:
        """Start the app in a process."""
        self._process = process = Process(self.loop, "home")
        self.run(self._within(process, self._start(records, troubles, seed)))

    async def _within(self, process: Process, coro: Any) -> Any:
        return await process.start(coro)

    async def _start(self, records: Mapping[str, Record], troubles: Troubles, seed: int) -> None:
        clock = VirtualClock(self.loop, wall=self.wall)
        behaviour = Behaviour(seed, records, troubles, clock, Meter())
        self._store = store = SqliteStore.open_inline(self.path, hook=Commits(), shared_clock=False)

        async def open_store(_: str) -> bootstrap.Opened:
            return bootstrap.Opened(store, clock, None)

        async def assemble(store: Store, clock: Clock, setup: bootstrap.Setup) -> bootstrap.Parts:
            setup = replace(setup, limits=replace(setup.limits, **_CALM))
            return await bootstrap.assemble(
                store, clock, replace(setup, replaced=lambda performed: replaced(performed, behaviour))
            )

        async def gates(context: bootstrap.FeatureContext) -> FeatureHooks:
            return gates_of(context.compilations, troubles.budgets)

        self.app = app = Wakeful(
            self.path,
            timezone="Europe/Berlin",
            heartbeat=self.heartbeat,
            agents=lambda clock, registry: {"default": EchoAgent()},
            features=[gates],
        )
        self._stack.enter_context(app._moved_to(clock, open_store, assemble))
        await app.start()

    def kill(self) -> None:
        """The process ends as in a power cut."""
        process, store = self._process, self._store
        if process is None or store is None:
            return
        process.kill()
        process.reap()
        self.run(store.close())
        self._stack.close()
        self._process = self._store = self.app = None

    def run(self, coro: Any) -> Any:
        return self.loop.run_until_complete(self.loop.create_task(coro))

    def pass_until(self, at: Instant) -> None:
        """Let time pass."""
        self.run(self.loop.sleep(max(at - self.now, 0)))

    def do(self, command: Callable[[Wakeful], Any]) -> Any:
        """A command of the app."""
        assert self.app is not None
        assert self._process is not None
        return self.run(self._within(self._process, command(self.app)))

    def read(self, operation: Callable[[Tx], Any]) -> Any:
        """Read its file; nobody needs to be awake."""
        with looking(str(self.path)) as look:
            return operation(look.tx)

    def make_history(self) -> SimulationJob:
        """A few days, until nothing runs. Returns what the app then hands to the process of a simulation."""
        brief = {slug: _brief(record) for slug, record in self.synthetic.items()}
        self.boot(brief, Troubles(), self.seed)
        for slug, written in self.definitions.items():
            self.do(lambda app, slug=slug, written=written: app.schedules.put(slug, written))
        for slug in self.rng.sample(sorted(self.definitions), 3):
            self.do(lambda app, slug=slug: app.pause(slug, format_instant(self.now + self.rng.randrange(20) * DAY + 1)))
        self.pass_until(BORN_AT + self.history * DAY + 7 * MINUTE + 1)
        while self.read(lambda tx: tx.runs.page(limit=1, outcome="running")):
            self.pass_until(self.now + 7 * MINUTE + 1)
        job = self._job(self.troubles(self.now), self.drafts())
        self.kill()
        return job

    def use_up(self, span: UsedUpSlot) -> None:
        """The quota of a slot is used up, as its provider says."""

        def write(tx: Tx, now: Instant) -> None:
            slot = tx[QuotaSlots].by_names([span.slot]).get(span.slot) or tx[QuotaSlots].add_new(
                span.slot, None, now=now
            )
            assert slot is not None
            tx[QuotaSlots].save_many([slot._replace(exhausted_until=span.ends_at)])
            if self.app is not None:
                self.app._open.apply(tx, Replan(span.slot, span.ends_at), now)

        if self.app is not None:
            self.do(lambda app: app._command(write))
            return
        store = SqliteStore.open_inline(self.path, hook=Commits(), shared_clock=True)
        self.run(store.write(lambda tx: write(tx, self.now)))
        self.run(store.close())

    def live_month(self, records: Mapping[str, Record], troubles: Troubles, drafts: Mapping[str, Any]) -> None:
        """The month, with everything that the simulation has."""
        now = self.now
        steps: list[tuple[Instant, Callable[[], Any]]] = [(now + self.days * DAY - 1, lambda: None)]
        for outage in troubles.outages:
            steps += [(outage.starts_at, self.kill)]
            steps += [(outage.ends_at, lambda: self.boot(records, troubles, self.seed))]
        steps += [(span.starts_at, lambda span=span: self.use_up(span)) for span in troubles.quota]
        self.boot(records, troubles, self.seed)
        for slug in troubles.without:
            self.do(lambda app, slug=slug: app.remove(slug))
        for slug, written in drafts.items():
            self.do(lambda app, slug=slug, written=written: app.schedules.put(slug, written))
        for at, step in sorted(steps, key=lambda one: one[0]):
            if at < now + self.days * DAY:
                self.pass_until(at)
                step()
        self.kill()

    # --- being simulated ---------------------------------------------------------------------------------------------

    def _job(self, troubles: Troubles, drafts: Mapping[str, Any]) -> SimulationJob:
        now, app = self.now, self.app
        assert app is not None
        return SimulationJob(
            "simulation",
            str(self.path),
            now,
            SimulationRequest(now, now + self.days * DAY, self.seed, troubles, tuple(drafts.values())),
            app._setup.limits.concurrency_max,
            app._open.terms.value,
            app._money.terms,
            app._heartbeat.terms,
            tuple(app._read(slug, written, now) for slug, written in drafts.items()),
        )

    def copy(self, job: SimulationJob) -> Copied:
        """The copy that the simulation runs on. From now on attempts take longer than in the history."""
        copied: Copied = self.read(lambda tx: read_copy(tx, job))
        assert set(copied.records) >= set(self.definitions)
        return copied._replace(records=self.synthetic)


def _without_usage(record: Record) -> Record:
    return record._replace(samples=tuple(sample._replace(usage=None) for sample in record.samples))


def _brief(record: Record) -> Record:
    """The same in a hundredth of the time, so that there are moments in which nothing runs."""
    samples = tuple(
        sample._replace(
            took=sample.took // 100 | 1, outcome="failed" if sample.outcome == "timedOut" else sample.outcome
        )
        for sample in record.samples
    )
    return record._replace(samples=samples)
