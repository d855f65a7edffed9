"""People who meddle with runs: they cancel, replay and backfill, and nodes die around it.

Theory of operation
-------------------
Most runs last seconds, so a cancel at a random time finds nothing to cancel. Here such a deed waits until there is
something to do it to, and is then done at once, or a moment later. A cancel is aimed at a run that is running, at one
that waits, or at one that is held up: by a retry, a quota, a lane. With some of these deeds a node is doomed: it dies
before or after one of its next commits, the first of which is that of the deed. Over many seeds, nodes so die at every
step of a cancel, a replay and a backfill. Whoever gets no answer because of it asks again.

Everything is drawn from a generator of its own, so that whatever else is drawn in a world is the same without it. What
took effect is counted by what the store says, also if nobody was told.
"""

import random
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from wakeful.core.errors import Invalid
from wakeful.core.refusals import Conflict, NotFound
from wakeful.core.run.runs import PRIORITY_BACKFILL, Run
from wakeful.core.run.settlement import CANCELLED
from wakeful.core.time.instants import DAY, HOUR, MINUTE, SECOND, Duration
from wakeful.engine.cancels import Cancels
from wakeful.ports.store import StoreUnavailable, Tx
from worlds.faults import Climate, CommitFault
from worlds.inhabitants import Touch
from worlds.system import System

if TYPE_CHECKING:
    from worlds.machine import Machine
    from worlds.world import World

REQUEST, BACKFILL = "cancel request", "backfill request"
TOUCHES: Final = (Touch("cancels", REQUEST, "run_id"), Touch("backfills", BACKFILL, "backfill_id"))
REFUSALS: Final = (Invalid, Conflict, NotFound)
INSTANTS_MAX: Final = 8
"""How many instants one backfill has at most."""
ASKED_AGAIN_AFTER: Final = 10 * MINUTE

What: TypeAlias = Literal["cancel", "replay", "backfill"]
Aim: TypeAlias = Literal["running", "waiting", "held up", "any"]
SORTS: Final[tuple[What, ...]] = ("replay", "backfill", "cancel")


class Doom(NamedTuple):
    """A node dies soon."""

    commits: int  # of its own, before the one it dies of
    side: CommitFault
    is_elsewhere: bool  # it is the node that has the run, or any other, and not the one that was asked


class Meddling(NamedTuple):
    """A person wants to do something to a run as soon as there is one."""

    at: int  # true time
    what: What
    aim: Aim  # of a cancel
    draw: float  # picks the machine that is asked
    doom: Doom | None = None


def draw_meddling(rng: random.Random, climate: Climate) -> list[Meddling]:
    """All of it, in any order. Of each sort there are as many as the climate says, however short the world is."""
    length = int(climate.days * DAY)
    count = max(climate.meddling_min, round(climate.meddling_per_day * climate.days))
    drawn: list[Meddling] = []
    for what in SORTS:
        for _ in range(count):
            at = rng.randrange(length)
            if what == "cancel" and rng.random() < 0.3:  # of a run that is replayed or backfilled, if it comes to that
                at = rng.choice(drawn).at + rng.randrange(10 * SECOND)
            aims: tuple[Aim, ...] = ("running", "waiting", "held up")
            (aim,) = rng.choices(aims, (6, 2, 4))
            doom = _doom(rng, what) if rng.random() < 0.6 else None
            drawn.append(Meddling(at, what, aim, rng.random(), doom))
    return drawn


def _doom(rng: random.Random, what: What) -> Doom:
    """A cancel is over with the next commit or two; a backfill has many."""
    commits = rng.choice((0, 0, 0, 1, 1, 1, 2, 3) if what == "cancel" else (0, 0, 1, 1, 2, 2, 3, 4, 5, 7))
    return Doom(commits, rng.choice(("before", "after")), rng.random() < 0.5)


class Meddlers:
    """Those people, for a whole world."""

    def __init__(self, rng: random.Random, world: "World", climate: Climate) -> None:
        self._rng = rng
        self._world = world
        self._patience: Duration = max(HOUR, int(climate.days * DAY) // 8)  # then a cancel takes whatever is open
        self._pending: list[Meddling] = []
        self._is_trying = False
        self._unanswered: dict[Machine, list[Meddling]] = {}
        self._asked: set[int] = set()  # runs that somebody asked to cancel
        self._requested: set[int] = set()  # those whose request was written
        self._cancelled: set[int] = set()  # those that ended by it
        self._outside: dict[int, str] = {}  # runs of past instants, by their trigger
        self._backfills: set[int] = set()
        self._deaths: Counter[str] = Counter()

    # -- what they do -------------------------------------------------------------------------------------------------

    def begin(self, meddling: Meddling) -> None:
        """Do it now, or as soon as there is something to do it to."""
        self._pending.append(meddling)
        self._try_all()

    def _try_all(self) -> None:
        self._is_trying = False
        pending, self._pending = self._pending, []
        for meddling in pending:
            machine = self._world.somewhere(meddling.draw)
            if machine is None or not self._start(machine, meddling):
                self._pending.append(meddling)

    def _start(self, machine: "Machine", meddling: Meddling) -> bool:
        """Ask a machine; False if there is nothing to ask for yet."""
        run: Run | None = None
        slugs = sorted(self._world.slugs)
        if meddling.what == "cancel":
            runs = [row for _, row in self._world.judge.open_runs() if self._fits(row, meddling)]
            if not runs:
                return False
            run = self._rng.choice(runs)
            self._asked.add(run.run_id)
            ask = partial(self._cancel, run)
        elif meddling.what == "replay":
            ask = partial(self._replay, self._rng.sample(slugs, len(slugs)))
        else:
            ask = partial(self._backfill, self._rng.sample(slugs, len(slugs)))
        doomed = self._doom(machine, run, meddling.doom)
        self._unanswered.setdefault(machine, []).append(meddling)
        machine.run_errand(partial(self._carry_out, machine, meddling, ask, doomed))
        return True

    def _fits(self, run: Run, meddling: Meddling) -> bool:
        if run.run_id in self._asked or run.run_id in self._requested:
            return False
        is_late = self._world.loop.now_ms > meddling.at + self._patience
        match "any" if is_late else meddling.aim:
            case "running":
                return run.outcome == "running"
            case "waiting":
                return run.outcome == "waiting"
            case "held up":
                return run.outcome == "waiting" and run.reason is not None
            case _:
                return True

    def _doom(self, asked: "Machine", run: Run | None, doom: Doom | None) -> "Machine | None":
        """Let a machine die soon; returns which."""
        if doom is None:
            return None
        machine = asked
        if doom.is_elsewhere:
            owner = None if run is None else run.owner
            machine = self._world.machine_of(owner) or self._world.somewhere(self._rng.random()) or asked
        machine.doom = (doom.commits, doom.side)
        return machine

    async def _carry_out(
        self,
        asked: "Machine",
        meddling: Meddling,
        ask: Callable[[System], Awaitable[str | None]],
        doomed: "Machine | None",
        system: System,
    ) -> None:
        what = meddling.what
        try:
            done = await ask(system)
        except StoreUnavailable:
            return
        except REFUSALS as refused:
            done, why = None, str(refused)
            self._world.say(lambda: f"{asked.name}: {what} is refused: {why}")
        except Exception as error:
            self._world.report([f"L9 {what} raised {type(error).__name__}: {error}"])
            return
        self._unanswered[asked].remove(meddling)
        if done is None:  # nobody dies of it then, and it is tried again
            if doomed is not None:
                doomed.doom = None
            self._world.later(ASKED_AGAIN_AFTER, partial(self.begin, meddling))
        else:
            self._world.say(lambda: f"{asked.name}: {done}")

    async def _cancel(self, run: Run, system: System) -> str | None:
        slug = self._world.judge.name_of(run)
        if run.priority != PRIORITY_BACKFILL:
            self._world.attended_at[slug] = self._world.loop.now_ms
        attempt = await system.cancel_run(run.run_id)
        self._world.cancelled[run.run_id] = attempt
        if run.priority != PRIORITY_BACKFILL:
            self._world.attended_at[slug] = self._world.loop.now_ms
        return f"a person cancels run {run.run_id} of {slug} ({run.outcome}, {run.reason})"

    async def _replay(self, slugs: Sequence[str], system: System) -> str | None:
        for slug in slugs:
            try:
                await system.replay(slug)
            except REFUSALS:
                continue
            return f"a person replays a run of {slug}"
        return None

    async def _backfill(self, slugs: Sequence[str], system: System) -> str | None:
        for slug in slugs:
            self._world.judge.backfills[slug] += 1
            try:
                if not await system.backfill(slug, instants_max=INSTANTS_MAX):
                    continue
            except REFUSALS:
                continue
            return f"a person backfills {slug}"
        return None

    # -- what comes of it ---------------------------------------------------------------------------------------------

    def look(self, tx: Tx, touched: Mapping[str, frozenset[int]], runs: Mapping[int, Run]) -> None:
        """A commit wrote this."""
        asked = [run_id for run_id in touched.get(REQUEST, ()) if run_id not in self._requested]
        for run_id in tx[Cancels].among(asked) if asked else ():
            self._requested.add(run_id)
            row = runs.get(run_id) or self._world.judge.row(run_id)
            if row is not None:
                self._world.cancelled.setdefault(run_id, row.attempt)
        self._backfills |= touched.get(BACKFILL, frozenset())
        for run in runs.values():
            if run.priority == PRIORITY_BACKFILL:
                self._outside[run.run_id] = run.trigger
            if run.outcome == "cancelled" or (run.outcome == "unknown" and run.reason == CANCELLED):
                self._cancelled.add(run.run_id)
        if self._pending and runs and not self._is_trying:
            self._is_trying = True
            self._world.later(self._rng.choice((0, 0, 1, 300, 2 * SECOND)), self._try_all)

    def died(self, machine: "Machine") -> None:
        """A process is gone. Who was not answered asks again, and nobody dies of that."""
        if self._world.is_over:
            return
        self._asked = set()
        if not machine.is_stopping:  # else it ended in good order
            open_runs = [run for _, run in self._world.judge.open_runs()]
            self._deaths.update({self._outside[run.run_id] for run in open_runs if run.run_id in self._outside})
            self._deaths["cancel"] += any(run.run_id in self._requested for run in open_runs)
        for meddling in self._unanswered.pop(machine, ()):
            self._world.later(MINUTE, partial(self.begin, meddling._replace(doom=None)))

    def figures(self) -> dict[str, int]:
        """What took effect, in numbers."""
        triggers = Counter(self._outside.values())
        return {
            "cancels": len(self._requested),
            "cancelled runs": len(self._cancelled & self._requested),
            "replays": triggers["replay"],
            "backfills": len(self._backfills),
            "backfilled runs": triggers["backfill"],
            "deaths with a cancel open": self._deaths["cancel"],
            "deaths with a replay open": self._deaths["replay"],
            "deaths with a backfilled run open": self._deaths["backfill"],
        }
