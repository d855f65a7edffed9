"""Simulated actions: what attempts do is drawn, and that they did it is seen.

Three sorts, after what a real action can leave behind when its node dies. A *call* lives inside the node and dies with
it. A *request* is work elsewhere: on its way it says `sent` and `accepted`, and waits for the answer. A *program* is a
process of its own: it outlives its node until it ends by itself or somebody ends it, so that a rescue that forgets the
orphan is seen to run the same thing twice at once.
"""

import asyncio
import random
from collections.abc import Callable
from typing import Final, Literal, Protocol, TypeAlias

from wakeful.core.run.results import Busy, Done, Failed, Result, Throttled
from wakeful.core.run.runs import RungName
from wakeful.core.schedule.actions import ActionSpec
from wakeful.core.time.instants import MINUTE, Instant
from wakeful.ports.action import CannotBegin, Fire, Ladder, OrphanFate, Process, StillRunning
from wakeful.ports.clock import Clock
from wakeful.testing.virtual_loop import VirtualLoop
from worlds.alike import draw_behaviour_of_one, is_one
from worlds.faults import Behaviour, draw_behaviour
from worlds.laws import Ending
from worlds.shortages import Shortages
from worlds.system import is_silent

HOST: Final = "simulated"
REMAINS: Final = 0.1
"""How often a process cannot be ended, whatever one does."""
Sort: TypeAlias = Literal["call", "request", "program"]


def output_of(run_id: int) -> str:
    """What an attempt at a run gives back: whoever gets it knows which run it is of."""
    return f"output of run {run_id}"


def reply_of(run_id: int) -> str:
    """What an agent says in a turn: whoever gets it knows which run it is of."""
    return f"reply of run {run_id}"


class Witness(Protocol):
    """Who is told what really happened."""

    def began(self, fire: Fire) -> None: ...

    def ended(self, run_id: int, attempt: int, ending: Ending) -> None: ...

    def refused(self, fire: Fire, at: Instant) -> None: ...


class SimulatedError(Exception):
    """What a simulated handler raises."""


class Programs:
    """The processes of one simulated machine; the Orphans port of its nodes."""

    def __init__(self, rng: random.Random, remains: Callable[[int, int], None]) -> None:
        self._rng = rng
        self._remains = remains
        self._alive: dict[int, tuple[tuple[int, int], Callable[[], None]]] = {}
        self._next_pid = 100

    def begin(self, key: tuple[int, int], end: Callable[[], None]) -> Process:
        """A new process of an attempt; `end` is called when it is killed."""
        self._next_pid += 1
        self._alive[self._next_pid] = (key, end)
        return Process(HOST, self._next_pid, str(self._next_pid))

    def exit(self, process: Process) -> None:
        """It ended by itself."""
        self._alive.pop(process.pid, None)

    async def end(self, process: Process) -> OrphanFate:
        if process.pid not in self._alive:
            return "gone"
        key, end = self._alive[process.pid]
        if self._rng.random() < REMAINS:
            self._remains(*key)
            return "remains"
        end()
        return "gone"


class SimAction:
    """The Action port for one sort of action on one node."""

    def __init__(
        self,
        sort: Sort,
        rng: random.Random,
        loop: VirtualLoop,
        clock: Clock,
        witness: Witness,
        programs: Programs,
        shortages: Shortages,
    ) -> None:
        self._shortages = shortages
        self._sort = sort
        self._rng = rng
        self._loop = loop
        self._clock = clock
        self._witness = witness
        self._programs = programs
        self.under_way: dict[tuple[int, int], Process | None] = {}  # what runs, and its process if it has one
        self.deaf: set[tuple[int, int]] = set()  # what goes on although it was told to end

    @property
    def is_local(self) -> bool:
        return self._sort == "call"

    def proves(self, spec: ActionSpec) -> RungName:
        return "finished"

    def check(self, spec: ActionSpec) -> str | None:
        return None

    async def close(self) -> None: ...

    async def perform(self, spec: ActionSpec, fire: Fire, ladder: Ladder) -> Result:
        if self._shortages.refuses(fire.run_id, self._loop.now_ms):
            if self._sort == "request":
                await ladder.climb("sent")  # recorded before the connection was refused
            self._witness.refused(fire, self._clock.read().now)
            raise CannotBegin("no room")
        behaviour = draw_behaviour_of_one(self._rng) if is_one(fire.slug) else draw_behaviour(self._rng)
        key = (fire.run_id, fire.attempt)
        self.under_way[key] = None
        self._witness.began(fire)
        ending: Ending | None = "cancelled"
        try:
            await self._set_out(key, ladder)
            result = await self._act(behaviour, key)
            if isinstance(result, Done) and is_silent(fire.slug):
                result = Done()
            ending = "done" if isinstance(result, Done) else "failed"
            return result
        except SimulatedError:
            ending = "raised"
            raise
        except StillRunning:
            ending = None  # told when it really ends
            raise
        finally:
            if ending is not None:
                self._end(key, ending)

    async def _set_out(self, key: tuple[int, int], ladder: Ladder) -> None:
        """Report how far it got, as each sort does."""
        if self._sort == "request":
            await ladder.climb("sent")
            await self._clock.sleep(self._rng.randrange(300))
            await ladder.climb("accepted")
        elif self._sort == "program":
            process = self._programs.begin(key, lambda: self._end(key, "died"))
            self.under_way[key] = process
            await ladder.climb("started", process=process)

    async def _act(self, behaviour: Behaviour, key: tuple[int, int]) -> Result:
        manner, takes, lingers = behaviour
        if manner == "endless":
            await self._until_told(lingers)
        elif manner == "stubborn":
            await self._against_being_told(lingers, key)
        await self._clock.sleep(takes)
        match manner:
            case "fails":
                return Failed("it did not work", permanent=self._rng.random() < 0.2)
            case "raises":
                raise SimulatedError("it broke")
            case "busy":
                return Busy("the target is busy")
            case "throttled":
                return Throttled("too many requests", self._clock.read().now + self._rng.randrange(10 * MINUTE))
            case "cancels":
                await self._cancel_itself()
        return Done(output=output_of(key[0]))

    async def _cancel_itself(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.Event().wait()

    async def _until_told(self, lingers: int) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await self._clock.sleep(lingers)
            raise

    async def _against_being_told(self, lingers: int, key: tuple[int, int]) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended: asyncio.Future[None] = self._loop.create_future()

            self.deaf.add(key)

            def finish() -> None:
                self.deaf.discard(key)
                self._end(key, "cancelled")
                ended.set_result(None)

            self._loop.call_later(lingers / 1000, finish)
            raise StillRunning("it does not listen", ended) from None

    def outlive(self, key: tuple[int, int]) -> None:
        """A program that its node left behind has come to its end by itself."""
        if key in self.under_way:
            self._end(key, "died")

    def _end(self, key: tuple[int, int], ending: Ending) -> None:
        process = self.under_way.pop(key, None)
        if process is not None:
            self._programs.exit(process)
        self._witness.ended(*key, ending)
