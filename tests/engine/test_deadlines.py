"""The deadlines of attempts (`engine.running.Runner`)."""

import asyncio
from types import SimpleNamespace
from typing import Any

from conformance.rows import running
from wakeful.core.run.results import DONE, Ending, Result
from wakeful.core.time.instants import HOUR
from wakeful.engine.batch import Batcher
from wakeful.engine.clock import SystemClock
from wakeful.engine.lease import Lease
from wakeful.engine.running import DEADLINES_SPARE, Runner
from wakeful.ports.action import Fire
from wakeful.ports.claims import Claim
from wakeful.ports.handlers import Job

LONG = 1


class Waiting:
    """An action that ends at once, but for one run that waits."""

    def __init__(self) -> None:
        self.end = asyncio.Event()

    async def perform(self, spec: object, fire: Fire, ladder: object) -> Result:
        if fire.run_id == LONG:
            await self.end.wait()
        return DONE


def _claim(run_id: int) -> Claim:
    run = running(run_id, 1, rung="started")
    return Claim.of(run, Job("work", Fire(run_id, run_id, "work", 0, 0, "schedule", 1, "key"), HOUR, "retry"), HOUR)


async def test_a_long_attempt_does_not_make_the_deadlines_of_others_accumulate() -> None:
    """Its deadline is the first, so those of attempts that ended meanwhile cannot be dropped from the front."""
    clock, action = SystemClock(), Waiting()
    lease = Lease(clock, HOUR, lambda: None)
    lease.renew(clock.read())
    ended: list[tuple[Claim, Ending]] = []
    hooks: Any = SimpleNamespace(actions={str: action})
    marks: Batcher[Any, Any] = Batcher(lambda batch: asyncio.sleep(0, batch))
    runner = Runner(hooks, clock, marks, lease, lambda *end: ended.append(end), lambda: None, ending_grace=HOUR)
    runner.start([_claim(LONG)], 0)
    for run_id in range(LONG + 1, 3 * DEADLINES_SPARE):
        runner.start([_claim(run_id)], 0)
        await asyncio.sleep(0)
        assert runner.next_deadline() == HOUR
    assert len(ended) > 2 * DEADLINES_SPARE and runner.run_ids[0] == LONG
    assert len(runner._deadlines) <= DEADLINES_SPARE + 2 * len(runner.run_ids) + 1
    action.end.set()
    await runner.wait_idle()
    assert runner.next_deadline() is None and ended[-1][0].run_id == LONG
