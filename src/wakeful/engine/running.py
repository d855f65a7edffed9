"""Running: the attempts in progress on this node, their deadlines, and how each one really ended.

An attempt is one task. When its deadline passes, the task is cancelled and the action has to end what it started; only
then has the attempt timed out. If an action cannot end its work (`StillRunning`), or does not finish in time after it
was cancelled, the run is closed as unknown, and the work keeps its lane and its share of the capacity until it is
seen to end (L6).
"""

import asyncio
import heapq
import json
from collections import Counter
from collections.abc import Callable
from typing import Final, Literal, TypeAlias

from wakeful.core.run.results import Cancelled, Ending, Failed, Interrupted, StuckRunEnded, TimedOut, Unproven
from wakeful.core.run.runs import PRIORITY_BACKFILL, PRIORITY_PERSON, Run, RungName, rung_index
from wakeful.core.run.transitions import climbed
from wakeful.core.time.instants import Duration
from wakeful.engine.batch import Batcher
from wakeful.engine.claiming import Claim
from wakeful.engine.lease import Lease
from wakeful.engine.limits import TRY_AGAIN
from wakeful.ports.action import Detached, FencedOff, Process, StillRunning
from wakeful.ports.clock import Clock
from wakeful.ports.handlers import EngineHooks, Job
from wakeful.ports.store import Mark, StoreUnavailable

Why: TypeAlias = Literal["deadline", "shutdown", "fenced", "cancel"]
ERROR_MAX: Final = 4000
DEADLINES_SPARE: Final = 4096


class RunLadder:
    """Records how far one attempt got, durably, through the batch of marks."""

    __slots__ = ("_clock", "_ladder", "_lease", "_marks", "_run")

    def __init__(self, run: Run, marks: "Batcher[Mark, bool]", clock: Clock, lease: Lease) -> None:
        self._run = run
        self._lease = lease
        self._ladder = run.ladder
        self._marks = marks
        self._clock = clock

    async def climb(self, rung: RungName, *, process: Process | None = None) -> None:
        if process is None and rung_index(rung) <= rung_index(self._run.rung):
            if not self._lease.holds():
                await self._lease.confirm()
            return  # the claim already recorded it
        self._ladder = climbed(self._ladder, rung, self._clock.read().now)
        written = None if process is None else json.dumps(process._asdict())
        mark = Mark(self._run.run_id, self._run.fence, rung, self._ladder, written)
        while True:
            try:
                is_ours = await self._marks.submit(mark)
                break
            except StoreUnavailable:  # not a failure of the target: continue once the rung can be written
                await self._clock.sleep(TRY_AGAIN)
        if not is_ours:
            raise FencedOff(f"run {self._run.run_id} was taken from this node")
        await self._lease.confirm()  # what follows has outside effects: not after another node may have the run


class _Attempt:
    """One attempt in progress."""

    __slots__ = ("claim", "give_up_at", "is_stuck", "task", "why")

    def __init__(self, claim: Claim) -> None:
        self.claim = claim
        self.task: asyncio.Task[None] | None = None
        self.why: Why | None = None
        self.give_up_at = 0  # monotonic: when it is stuck, after it was cancelled
        self.is_stuck = False


class Runner:
    """All attempts of this node. `on_end` gets the ending of each exactly once, unless it was fenced off."""

    def __init__(
        self,
        hooks: EngineHooks,
        clock: Clock,
        marks: "Batcher[Mark, bool]",
        lease: Lease,
        on_end: Callable[[Run, Ending], None],
        on_room: Callable[[], None],
        *,
        ending_grace: Duration,
    ) -> None:
        self._ending_grace = ending_grace
        self._hooks = hooks
        self._clock = clock
        self._marks = marks
        self._lease = lease
        self._on_end = on_end
        self._on_room = on_room
        self._attempts: dict[int, _Attempt] = {}
        self._of_priority: Counter[int] = Counter()  # how many of the attempts have it
        self._deadlines: list[tuple[int, int, int]] = []  # monotonic time, run id, fence

    @property
    def count(self) -> int:
        """The capacity in use, by running and by stuck attempts."""
        return len(self._attempts)

    @property
    def manual_count(self) -> int:
        """The capacity in use by runs that people or programs started."""
        return self._of_priority[PRIORITY_PERSON]

    @property
    def backfill_count(self) -> int:
        """Attempts of past instants that are run on request: they use no capacity of regular runs, and are few."""
        return self._of_priority[PRIORITY_BACKFILL]

    @property
    def run_ids(self) -> list[int]:
        return list(self._attempts)

    @property
    def under_way(self) -> "dict[asyncio.Task[None], str]":
        """The tasks of the attempts that are not stuck, each with a readable name."""
        named = {a.task: _name(a.claim) for a in self._attempts.values() if not a.is_stuck}
        return {task: name for task, name in named.items() if task is not None and not task.done()}

    def start(self, claim: Claim, monotonic: int) -> None:
        """Start the attempt."""
        attempt = _Attempt(claim)
        job = claim.job
        if not isinstance(job, Job):  # decided before it started
            self._on_end(claim.run, job)
            return
        self._remove(claim.run.run_id)  # of a lost lease, if it has not ended yet
        self._attempts[claim.run.run_id] = attempt
        self._of_priority[claim.run.priority] += 1
        self._add_deadline(monotonic + job.timeout, claim.run)
        attempt.task = asyncio.get_running_loop().create_task(self._perform(attempt, job))

    def next_deadline(self) -> int | None:
        """The monotonic time at which an attempt must be cancelled or given up."""
        while self._deadlines and not self._is_current(self._deadlines[0]):
            heapq.heappop(self._deadlines)
        return self._deadlines[0][0] if self._deadlines else None

    def end_overdue(self, monotonic: int) -> None:
        """Cancel every attempt whose deadline has passed; one that was cancelled and still runs is stuck."""
        while (at := self.next_deadline()) is not None and at <= monotonic:
            _, run_id, _ = heapq.heappop(self._deadlines)
            attempt = self._attempts[run_id]
            if attempt.why is None:
                self._end_within_grace(attempt, "deadline", monotonic)
            elif at >= attempt.give_up_at:
                self._give_up(attempt, "was cancelled but is still running; let the cancellation propagate")

    def cancel(self, run_id: int, monotonic: int) -> None:
        """A person asked to cancel the run: end its attempt."""
        attempt = self._attempts.get(run_id)
        if attempt is not None and attempt.why is None:
            self._end_within_grace(attempt, "cancel", monotonic)

    def end_all(self, why: Why) -> None:
        """Cancel everything: at shutdown, or because other nodes took the runs."""
        for attempt in list(self._attempts.values()):
            self._cancel(attempt, why)

    def give_up_rest(self) -> None:
        """Mark the attempts that could not be ended as stuck: this process stops watching them."""
        for attempt in list(self._attempts.values()):
            self._give_up(attempt, "it was cancelled but is still running")

    async def wait_idle(self) -> None:
        """Return when nothing runs."""
        while tasks := [a.task for a in self._attempts.values() if a.task is not None and not a.task.done()]:
            await asyncio.wait(tasks)

    def _is_current(self, entry: tuple[int, int, int]) -> bool:
        attempt = self._attempts.get(entry[1])
        return attempt is not None and attempt.claim.run.fence == entry[2] and not attempt.is_stuck

    def _end_within_grace(self, attempt: _Attempt, why: Why, monotonic: int) -> None:
        self._cancel(attempt, why)
        attempt.give_up_at = monotonic + self._ending_grace
        self._add_deadline(attempt.give_up_at, attempt.claim.run)

    def _add_deadline(self, at: int, run: Run) -> None:
        """Attempts that have ended leave their deadlines behind. `next_deadline` drops them from the front; behind the
        deadline of a long attempt they would accumulate."""
        heapq.heappush(self._deadlines, (at, run.run_id, run.fence))
        if len(self._deadlines) > 2 * len(self._attempts) + DEADLINES_SPARE:
            self._deadlines = [entry for entry in self._deadlines if self._is_current(entry)]
            heapq.heapify(self._deadlines)

    def _cancel(self, attempt: _Attempt, why: Why) -> None:
        if attempt.why is None and attempt.task is not None:
            attempt.why = why
            attempt.task.cancel(why)

    async def _perform(self, attempt: _Attempt, job: Job) -> None:
        run = attempt.claim.run
        action = self._hooks.actions[type(job.spec)]
        ending: Ending
        try:
            if not self._lease.holds():
                await self._lease.confirm()
            ending = await action.perform(job.spec, job.fire, RunLadder(run, self._marks, self._clock, self._lease))
        except asyncio.CancelledError as cancelled:
            if attempt.why is None:
                self._forget(attempt)
                raise
            ending = _ended(attempt.why, job, is_proven=not isinstance(cancelled, Detached))
        except StillRunning as still:
            self._give_up(attempt, str(still))
            still.ended.add_done_callback(lambda end: self._finish(attempt, StuckRunEnded(not end.cancelled())))
            return
        except FencedOff:
            attempt.why = "fenced"
            ending = Interrupted("fenced off")
        except Exception as error:
            ending = Failed(f"{type(error).__name__}: {error}"[:ERROR_MAX])
        self._finish(attempt, StuckRunEnded() if attempt.is_stuck else ending)

    def _give_up(self, attempt: _Attempt, why_not: str) -> None:
        """Report the attempt as stuck, and keep its capacity until it is seen to end."""
        if attempt.is_stuck or attempt.why == "fenced":
            return
        attempt.is_stuck = True
        job = attempt.claim.job
        within = _seconds(job) if isinstance(job, Job) and attempt.why == "deadline" else "its grace period"
        self._on_end(attempt.claim.run, Unproven(f"did not end within {within}: {why_not}"))

    def _finish(self, attempt: _Attempt, ending: Ending) -> None:
        self._forget(attempt)
        if attempt.why != "fenced":
            self._on_end(attempt.claim.run, ending)

    def _forget(self, attempt: _Attempt) -> None:
        run_id = attempt.claim.run.run_id
        if self._attempts.get(run_id) is attempt:  # after a lost lease a newer attempt may have replaced it
            self._remove(run_id)
        self._on_room()

    def _remove(self, run_id: int) -> None:
        removed = self._attempts.pop(run_id, None)
        if removed is not None:
            self._of_priority[removed.claim.run.priority] -= 1


def _ended(why: Why, job: Job, *, is_proven: bool) -> Ending:
    match why:
        case "deadline":
            return TimedOut(f"did not end within {_seconds(job)} and was ended")
        case "cancel":
            return Cancelled(is_proven=is_proven)
        case _:
            return Interrupted("ended by shutdown")


def _name(claim: Claim) -> str:
    slug = claim.job.fire.slug if isinstance(claim.job, Job) else "?"
    return f"run {claim.run.run_id} of '{slug}'"


def _seconds(job: Job) -> str:
    return f"{job.timeout / 1000:g} s"
