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
from collections.abc import Callable, Sequence
from itertools import count
from typing import Final

from wakeful.core.run.resources import is_lack
from wakeful.core.run.results import (
    Cancelled,
    Done,
    Ending,
    Failed,
    Interrupted,
    NotBegun,
    StuckRunEnded,
    TimedOut,
    Unproven,
)
from wakeful.core.run.runs import PRIORITY_BACKFILL, PRIORITY_PERSON, Run, RungName, rung_index
from wakeful.core.run.transitions import climbed
from wakeful.core.time.instants import Duration, Instant
from wakeful.engine.batch import Batcher
from wakeful.engine.lease import Lease
from wakeful.engine.limits import TRY_AGAIN
from wakeful.ports.action import (
    CANCELLED_ITSELF,
    CannotBegin,
    Detached,
    Direct,
    DirectCall,
    FencedOff,
    Process,
    StillRunning,
)
from wakeful.ports.claims import Batch, Claim, Deadline, Why
from wakeful.ports.clock import Clock
from wakeful.ports.handlers import EngineHooks, Job
from wakeful.ports.store import Mark, StoreUnavailable

ERROR_MAX: Final = 4000
DEADLINES_SPARE: Final = 4096


class RunLadder:
    """Records how far one attempt got, durably, through the batch of marks."""

    __slots__ = ("_clock", "_ladder", "_lease", "_marks", "_run", "reached")

    def __init__(self, run: Run, marks: "Batcher[Mark, bool]", clock: Clock, lease: Lease) -> None:
        self._run = run
        self.reached = run.rung  # recorded by the claim, or by a climb
        self._lease = lease
        self._ladder = run.ladder
        self._marks = marks
        self._clock = clock

    async def climb(self, rung: RungName, *, process: Process | None = None) -> None:
        if process is None and rung_index(rung) <= rung_index(self.reached):
            if not self._lease.holds():
                await self._lease.confirm()
            return  # it is already recorded
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
        self.reached = rung
        await self._lease.confirm()  # what follows has outside effects: not after another node may have the run


class Runner:
    """All attempts of this node. `on_end` gets the ending of each exactly once, unless it was fenced off."""

    def __init__(
        self,
        hooks: EngineHooks,
        clock: Clock,
        marks: "Batcher[Mark, bool]",
        lease: Lease,
        on_end: Callable[[Claim, Ending], None],
        on_room: Callable[[], None],
        is_loop_closing: Callable[[], bool] = lambda: False,
        *,
        ending_grace: Duration,
    ) -> None:
        self._ending_grace = ending_grace
        self._is_loop_closing = is_loop_closing
        self._hooks = hooks
        self._direct_actions = {kind: action for kind, action in hooks.actions.items() if isinstance(action, Direct)}
        self._clock = clock
        self._marks = marks
        self._lease = lease
        self._on_end = on_end
        self._on_room = on_room
        self._attempts: dict[int, Claim] = {}
        self._of_priority: Counter[int] = Counter()  # how many of the attempts have it
        self._began: list[tuple[int, Instant]] = []  # the last two runs of which an attempt began, with the times
        self._together: set[Batch] = set()  # those that were started last
        self._noted: set[Batch] = set()  # those that were started together, and of which one was noted there
        self._deadlines: list[tuple[int, int, Deadline]] = []  # monotonic time, a number, and what it concerns
        self._numbers = count()

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
        named = {claim.task: _name(claim) for claim in self._attempts.values() if not claim.is_stuck}
        return {task: name for task, name in named.items() if task is not None and not task.done()}

    def start(self, claims: Sequence[Claim], monotonic: int) -> None:
        """Start the attempts. Those with the same timeout have one deadline."""
        create_task = asyncio.get_running_loop().create_task
        batch: Batch | None = None
        deadlines: dict[Duration, Deadline] = {}
        self._together = {claim.batch for claim in claims}
        for claim in claims:
            if claim.batch is not batch:
                batch = claim.batch
                direct = self._direct(batch) if batch.is_plain else None
                batch.claims = []  # a long attempt must not keep the others
            job = claim.job if direct is None else None
            if job is not None and not isinstance(job, Job):  # decided before it started
                self._on_end(claim, job)
                continue
            if claim.run_id in self._attempts:  # of a lost lease, and it has not ended yet
                self._remove(claim.run_id)
            self._attempts[claim.run_id] = claim
            self._of_priority[batch.priority] += 1
            deadline = deadlines.get(claim.timeout)
            if deadline is None:
                deadline = deadlines[claim.timeout] = Deadline(monotonic + claim.timeout, 0)
                self._add_deadline(deadline)
            claim.deadline = deadline
            deadline.left += 1
            claim.task = create_task(self._perform(claim, direct))

    def _direct(self, batch: Batch) -> DirectCall | None:
        """How to call what a batch calls, if nothing has to be recorded before."""
        action = self._direct_actions.get(type(batch.spec))
        if action is None or batch.rung != "started":
            return None
        try:
            return action.direct(batch.spec)
        except (
            Exception
        ):  # looking it up runs users' code; `perform` then fails the same way, for its own run alone (L9)
            return None

    def next_deadline(self) -> int | None:
        """The monotonic time at which an attempt must be cancelled or given up."""
        while self._deadlines and not self._deadlines[0][2].left:
            heapq.heappop(self._deadlines)
        return self._deadlines[0][0] if self._deadlines else None

    def end_overdue(self, monotonic: int) -> None:
        """Cancel every attempt whose deadline has passed; one that was cancelled and still runs is stuck."""
        while (at := self.next_deadline()) is not None and at <= monotonic:
            passed: set[Deadline | None] = set()
            while self._deadlines and self._deadlines[0][0] <= monotonic:
                passed.add(heapq.heappop(self._deadlines)[2])
            for claim in [claim for claim in self._attempts.values() if claim.deadline in passed]:
                if claim.why is None:
                    self._end_within_grace(claim, "deadline", monotonic)
                else:
                    self._give_up(claim, "was cancelled but is still running; let the cancellation propagate")

    def cancel(self, run_id: int, monotonic: int) -> None:
        """A person asked to cancel the run: end its attempt."""
        claim = self._attempts.get(run_id)
        if claim is not None and claim.why is None:
            self._end_within_grace(claim, "cancel", monotonic)

    def end_all(self, why: Why) -> None:
        """Cancel everything: at shutdown, or because other nodes took the runs."""
        for claim in list(self._attempts.values()):
            self._cancel(claim, why)

    def give_up_rest(self) -> None:
        """Mark the attempts that could not be ended as stuck: this process stops watching them."""
        for claim in list(self._attempts.values()):
            self._give_up(claim, "it was cancelled but is still running")

    async def wait_idle(self) -> None:
        """Return when nothing runs."""
        while tasks := [c.task for c in self._attempts.values() if c.task is not None and not c.task.done()]:
            await asyncio.wait(tasks)

    def _end_within_grace(self, claim: Claim, why: Why, monotonic: int) -> None:
        self._cancel(claim, why)
        self._leave_deadline(claim)
        claim.deadline = Deadline(monotonic + self._ending_grace, 1)
        self._add_deadline(claim.deadline)

    def _add_deadline(self, deadline: Deadline) -> None:
        """Attempts that have ended leave their deadlines behind. `next_deadline` drops them from the front; behind the
        deadline of a long attempt they would accumulate."""
        heapq.heappush(self._deadlines, (deadline.at, next(self._numbers), deadline))
        if len(self._deadlines) > 2 * len(self._attempts) + DEADLINES_SPARE:
            self._deadlines = [entry for entry in self._deadlines if entry[2].left or entry[2] is deadline]
            heapq.heapify(self._deadlines)

    @staticmethod
    def _leave_deadline(claim: Claim) -> None:
        if claim.deadline is not None:
            claim.deadline.left -= 1
            claim.deadline = None

    def _cancel(self, claim: Claim, why: Why) -> None:
        if claim.why is None and claim.task is not None:
            claim.why = why
            claim.task.cancel(why)

    async def _perform(self, claim: Claim, direct: DirectCall | None) -> None:
        """Perform the job of a claim; `direct` is how to call it, if it calls a function of this process."""
        reached: RungName | None = "started"
        ladder: RunLadder | None = None
        ending: Ending
        try:
            if not self._lease.holds():
                await self._lease.confirm()
            if direct is not None:
                ending = await direct(claim.fire)
                if claim.why is not None:  # it swallowed the cancellation, and still was ended by us
                    ending = _ended(claim.why, claim, is_proven=True)
            else:
                ladder = RunLadder(claim.run, self._marks, self._clock, self._lease)
                job = claim.performed
                ending = await self._hooks.actions[type(job.spec)].perform(job.spec, job.fire, ladder)
        except asyncio.CancelledError as cancelled:
            if claim.why is not None:
                ending = _ended(claim.why, claim, is_proven=not isinstance(cancelled, Detached))
            elif self._is_loop_closing():  # nothing can be settled any more: the run is rescued, as after a crash
                self._forget(claim)
                raise
            else:  # not by us: what it performs cancelled the task it runs in
                ending = CANCELLED_ITSELF
        except StillRunning as still:
            self._give_up(claim, str(still))
            still.ended.add_done_callback(lambda end: self._finish(claim, StuckRunEnded(not end.cancelled())))
            return
        except FencedOff:
            claim.why = "fenced"
            ending = Interrupted("fenced off")
        except CannotBegin as refusal:
            ending = self._not_begun(claim, str(refusal))
        except Exception as error:
            ending = Failed(f"{type(error).__name__}: {error}"[:ERROR_MAX])
            if is_lack(error) and ladder is not None and ladder.reached == "claimed":  # user code does not raise here
                ending = self._not_begun(claim, ending.error)
        if ladder is not None:
            reached = ladder.reached
        if isinstance(ending, Done) or rung_index(reached) > rung_index("claimed"):
            self._note_begin(claim, ending)
        self._finish(claim, StuckRunEnded() if claim.is_stuck else ending)

    def _not_begun(self, claim: Claim, error: str) -> NotBegun:
        """The run waits; it fails in the end if other runs could begin here."""
        others = [at for run_id, at in self._began if run_id != claim.run_id]
        return NotBegun(error[:ERROR_MAX], self._clock.read().now, max(others, default=None))

    def _note_begin(self, claim: Claim, ending: Ending) -> None:
        """One of those that were started together is enough: reading the clock takes as long as the rest of an
        attempt."""
        if claim.batch in self._noted or isinstance(ending, NotBegun):
            return
        self._noted = self._together if claim.batch in self._together else {claim.batch}
        others = [known for known in self._began if known[0] != claim.run_id]
        self._began = [*others[-1:], (claim.run_id, self._clock.read().now)]

    def _give_up(self, claim: Claim, why_not: str) -> None:
        """Report the attempt as stuck, and keep its capacity until it is seen to end."""
        if claim.is_stuck or claim.why == "fenced":
            return
        claim.is_stuck = True
        self._leave_deadline(claim)
        within = _seconds(claim) if claim.why == "deadline" else "its grace period"
        self._on_end(claim, Unproven(f"did not end within {within}: {why_not}"))

    def _finish(self, claim: Claim, ending: Ending) -> None:
        self._forget(claim)
        if claim.why != "fenced":
            self._on_end(claim, ending)

    def _forget(self, claim: Claim) -> None:
        if self._attempts.get(claim.run_id) is claim:  # after a lost lease a newer attempt may have replaced it
            self._remove(claim.run_id)
        self._on_room()

    def _remove(self, run_id: int) -> None:
        removed = self._attempts.pop(run_id, None)
        if removed is not None:
            self._of_priority[removed.batch.priority] -= 1
            self._leave_deadline(removed)


def _ended(why: Why, claim: Claim, *, is_proven: bool) -> Ending:
    match why:
        case "deadline":
            return TimedOut(f"did not end within {_seconds(claim)} and was ended")
        case "cancel":
            return Cancelled(is_proven=is_proven)
        case _:
            return Interrupted("ended by shutdown")


def _name(claim: Claim) -> str:
    slug = claim.job.fire.slug if isinstance(claim.job, Job) else "?"
    return f"run {claim.run_id} of '{slug}'"


def _seconds(claim: Claim) -> str:
    return f"{claim.timeout / 1000:g} s"
