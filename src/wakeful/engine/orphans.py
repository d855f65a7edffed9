"""Asking targets what became of the runs that a dead node left, beside the clock.

A run that was sent or started may have come to its end while nobody of ours was there. Where its target can tell, it is
asked before `onCrash` decides anything: an agent that has answered is not prompted a second time. The clock does not
wait for it: few are asked at once, each for a limited time, and the run stays as it is meanwhile, its lane held. A
target that is still at it is asked again from time to time, until the run's deadline; one that could not even be ended
there is asked until it has ended, for nothing may start beside it.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, TypeAlias

from wakeful.core.run.runs import Run, rung_index
from wakeful.core.schedule.policies import SECOND
from wakeful.core.time.instants import Duration, Instant
from wakeful.integrations.net.exchange import within
from wakeful.ports.action import Inquirable, StillWorking, Told
from wakeful.ports.clock import Clock
from wakeful.ports.handlers import EngineHooks, Job
from wakeful.ports.store import Store, StoreUnavailable, Tx

log = logging.getLogger("wakeful.engine")

AT_ONCE: Final = 16
ASK_WITHIN: Final[Duration] = 15 * SECOND
ASK_ALL_WITHIN: Final[Duration] = 60 * SECOND
"""Whoever was not even asked by then is taken for one that cannot tell."""
ASK_AGAIN: Final[Duration] = 5 * SECOND

_Key: TypeAlias = tuple[int, int]  # run id, fence


class OrphanInquiry:
    """Asks, and keeps what was told until it is taken. `on_told` is called when there is news."""

    def __init__(self, store: Store, hooks: EngineHooks, clock: Clock, on_told: Callable[[], None]) -> None:
        self._store = store
        self._hooks = hooks
        self._clock = clock
        self._on_told = on_told
        self._is_any = any(isinstance(action, Inquirable) for action in hooks.actions.values())
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._asking: dict[_Key, asyncio.Task[None]] = {}
        self._told: dict[_Key, Told] = {}
        self._mute: set[_Key] = set()  # there is nobody to ask
        self._again: dict[_Key, int] = {}  # still at work: the monotonic time to ask again

    async def ask(self, lost: Sequence[Run], *, now: Instant) -> frozenset[int]:
        """Begin to ask about those whose target can tell; answers the ids of those to wait for."""
        wanted = {_key(run): run for run in lost if self._is_any and rung_index(run.rung) > 0}
        for key in [key for key in self._told if key not in wanted]:
            del self._told[key]  # someone else looked after it
        self._look_again(wanted, now)
        new = [run for key, run in wanted.items() if not self._is_known(key)]
        for run, job in await self._jobs(new):
            self._begin(run, job)
        return frozenset(key[0] for key in wanted if key not in self._told)

    def take(self, runs: Sequence[Run]) -> dict[int, Told]:
        """What was told about these, by run id; those whose target nobody can ask are left out."""
        told = {run.run_id: self._told.pop(_key(run)) for run in runs if _key(run) in self._told}
        mute = {run.run_id for run in runs if _key(run) in self._mute}
        self._mute -= {_key(run) for run in runs}
        return {run_id: one for run_id, one in told.items() if run_id not in mute}

    async def close(self) -> None:
        """Stop asking: whoever ticks next will."""
        tasks = list(self._asking.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def _is_known(self, key: _Key) -> bool:
        return key in self._told or key in self._asking or key in self._again

    def _look_again(self, wanted: dict[_Key, Run], now: Instant) -> None:
        """Those that were at work: ask again, or, past the run's deadline, no more."""
        monotonic = self._clock.read().monotonic
        for key, at in list(self._again.items()):
            run = wanted.get(key)
            if run is None or monotonic >= at:
                del self._again[key]
            if run is not None and run.deadline_at is not None and now >= run.deadline_at:
                self._again.pop(key, None)
                self._told[key] = None

    async def _jobs(self, runs: Sequence[Run]) -> list[tuple[Run, Job | str]]:
        if not runs:
            return []
        try:
            return await self._store.read(partial(_read_jobs, hooks=self._hooks, runs=runs))
        except StoreUnavailable:
            raise
        except Exception:  # a run that cannot be read is nobody's to ask about, and no reason to stop (L9)
            log.exception("cannot tell whom to ask about runs of a node that is gone")
            return [(run, "") for run in runs]

    def _begin(self, run: Run, job: Job | str) -> None:
        action: object = self._hooks.actions.get(type(job.spec)) if isinstance(job, Job) else None
        if isinstance(job, Job) and isinstance(action, Inquirable):
            self._asking[_key(run)] = asyncio.create_task(self._ask(_key(run), job, action))
        else:
            self._told[_key(run)] = None
            self._mute.add(_key(run))

    async def _ask(self, key: _Key, job: Job, action: Inquirable) -> None:
        begun = self._clock.read().monotonic
        told: Told = None
        try:
            async with self._turns:
                left = begun + ASK_ALL_WITHIN - self._clock.read().monotonic
                if left > 0:
                    told = await within(self._clock, min(left, ASK_WITHIN), action.ask(job.spec, job.fire))
        except TimeoutError:
            log.warning("run %d: its target was asked what became of it, and did not answer in time", key[0])
        except Exception:
            log.exception("run %d: asking its target what became of it failed", key[0])
        finally:
            del self._asking[key]
        if isinstance(told, StillWorking):
            self._again[key] = self._clock.read().monotonic + ASK_AGAIN
        else:
            self._told[key] = told
            self._on_told()


def _key(run: Run) -> _Key:
    return run.run_id, run.fence


def _read_jobs(tx: Tx, hooks: EngineHooks, runs: Sequence[Run]) -> list[tuple[Run, Job | str]]:
    found: list[tuple[Run, Job | str]] = []
    for kind in dict.fromkeys(run.kind for run in runs):
        of_kind = [run for run in runs if run.kind == kind]
        found += zip(of_kind, hooks.keepers[kind].jobs(tx, of_kind), strict=True)
    return found
