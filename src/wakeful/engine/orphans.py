"""Inquiries: asking targets for the result of runs that a dead node left, in the background.

A run that was sent or started may have finished while no node was watching. If its target can report the result, it is
asked before `onCrash` decides anything: an agent that has replied is not prompted a second time. The engine does not
wait for it: only a few inquiries run in parallel, each with a time limit, and until then the run stays as it is, with
its lane held. A target that is still working is asked again from time to time, until the run's deadline. If the target
could not stop the work either, it is asked until it has ended, because nothing may start next to it.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, TypeAlias

from wakeful.core.run.runs import Run, rung_index
from wakeful.core.time.instants import SECOND, Duration, Instant
from wakeful.integrations.net.exchange import within
from wakeful.ports.action import Inquirable, StillWorking, Told
from wakeful.ports.clock import Clock
from wakeful.ports.handlers import EngineHooks, Job
from wakeful.ports.store import Store, StoreUnavailable, Tx

log = logging.getLogger("wakeful.engine")

AT_ONCE: Final = 16
ASK_WITHIN: Final[Duration] = 15 * SECOND
ASK_ALL_WITHIN: Final[Duration] = 60 * SECOND
"""If a target could not be asked within this time, it counts as unable to report."""
ASK_AGAIN: Final[Duration] = 5 * SECOND

_Key: TypeAlias = tuple[int, int]  # run id, fence


class OrphanInquiry:
    """Runs the inquiries and keeps each result until it is taken. `on_result` is called when a result arrives."""

    def __init__(self, store: Store, hooks: EngineHooks, clock: Clock, on_result: Callable[[], None]) -> None:
        self._store = store
        self._hooks = hooks
        self._clock = clock
        self._on_result = on_result
        self._is_any = any(isinstance(action, Inquirable) for action in hooks.actions.values())
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._asking: dict[_Key, asyncio.Task[None]] = {}
        self._results: dict[_Key, Told] = {}
        self._mute: set[_Key] = set()  # runs whose target cannot be asked
        self._again: dict[_Key, int] = {}  # still working: the monotonic time to ask again

    async def ask(self, lost: Sequence[Run], *, now: Instant) -> frozenset[int]:
        """Start inquiries for runs whose target can report; returns the ids of the runs to wait for."""
        wanted = {_key(run): run for run in lost if self._is_any and rung_index(run.rung) > 0}
        for key in [key for key in self._results if key not in wanted]:
            del self._results[key]  # another node settled it
        self._look_again(wanted, now)
        new = [run for key, run in wanted.items() if not self._is_known(key)]
        for run, job in await self._jobs(new):
            self._begin(run, job)
        return frozenset(key[0] for key in wanted if key not in self._results)

    def take(self, runs: Sequence[Run]) -> dict[int, Told]:
        """The results for these runs, by run id. Runs whose target cannot be asked are left out."""
        results = {run.run_id: self._results.pop(_key(run)) for run in runs if _key(run) in self._results}
        mute = {run.run_id for run in runs if _key(run) in self._mute}
        self._mute -= {_key(run) for run in runs}
        return {run_id: result for run_id, result in results.items() if run_id not in mute}

    async def close(self) -> None:
        """Stop asking; the next node that ticks starts over."""
        tasks = list(self._asking.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def _is_known(self, key: _Key) -> bool:
        return key in self._results or key in self._asking or key in self._again

    def _look_again(self, wanted: dict[_Key, Run], now: Instant) -> None:
        """Handle runs that were still working: ask again, or stop asking after the run's deadline."""
        monotonic = self._clock.read().monotonic
        for key, at in list(self._again.items()):
            run = wanted.get(key)
            if run is None or monotonic >= at:
                del self._again[key]
            if run is not None and run.deadline_at is not None and now >= run.deadline_at:
                self._again.pop(key, None)
                self._results[key] = None

    async def _jobs(self, runs: Sequence[Run]) -> list[tuple[Run, Job | str]]:
        if not runs:
            return []
        try:
            return await self._store.read(partial(_read_jobs, hooks=self._hooks, runs=runs))
        except StoreUnavailable:
            raise
        except Exception:  # a run that cannot be read has no target to ask, which must not stop the others (L9)
            log.exception("cannot read which targets to ask about the runs of a dead node")
            return [(run, "") for run in runs]

    def _begin(self, run: Run, job: Job | str) -> None:
        action: object = self._hooks.actions.get(type(job.spec)) if isinstance(job, Job) else None
        if isinstance(job, Job) and isinstance(action, Inquirable):
            self._asking[_key(run)] = asyncio.create_task(self._ask(_key(run), job, action))
        else:
            self._results[_key(run)] = None
            self._mute.add(_key(run))

    async def _ask(self, key: _Key, job: Job, action: Inquirable) -> None:
        started_at = self._clock.read().monotonic
        result: Told = None
        try:
            async with self._turns:
                left = started_at + ASK_ALL_WITHIN - self._clock.read().monotonic
                if left > 0:
                    result = await within(self._clock, min(left, ASK_WITHIN), action.ask(job.spec, job.fire))
        except TimeoutError:
            log.warning("run %d: its target did not report the result in time", key[0])
        except Exception:
            log.exception("run %d: asking its target for the result failed", key[0])
        finally:
            del self._asking[key]
        if isinstance(result, StillWorking):
            self._again[key] = self._clock.read().monotonic + ASK_AGAIN
        else:
            self._results[key] = result
            self._on_result()


def _key(run: Run) -> _Key:
    return run.run_id, run.fence


def _read_jobs(tx: Tx, hooks: EngineHooks, runs: Sequence[Run]) -> list[tuple[Run, Job | str]]:
    jobs: list[tuple[Run, Job | str]] = []
    for kind in dict.fromkeys(run.kind for run in runs):
        of_kind = [run for run in runs if run.kind == kind]
        jobs += zip(of_kind, hooks.keepers[kind].jobs(tx, of_kind), strict=True)
    return jobs
