"""The virtual loop: time is free, order is fixed, and hanging is an error."""

import asyncio
import gc
import time
from collections.abc import Iterator

import pytest

from wakeful.testing.virtual_loop import Deadlock, Livelock, Process, RealTime, VirtualLoop, current_process, drain, run


@pytest.fixture
def loop() -> Iterator[VirtualLoop]:
    loop = VirtualLoop()
    yield loop
    drain(loop)


def test_a_year_passes_in_no_time(loop: VirtualLoop) -> None:
    """Sleeping costs no real time, and time says exactly how long it was."""
    loop.run(asyncio.sleep(365 * 86400))
    assert loop.now_ms == 365 * 86_400_000


def test_timers_fire_in_order_and_at_their_millisecond(loop: VirtualLoop) -> None:
    """Whatever the order they were set in, and at the same instant in the order they were set."""
    seen: list[tuple[str, int]] = []

    async def sleeper(name: str, ms: int) -> None:
        await asyncio.sleep(ms / 1000)
        seen.append((name, loop.now_ms))

    async def main() -> None:
        await asyncio.gather(sleeper("c", 1_234_567), sleeper("a", 1), sleeper("b", 333), sleeper("b2", 333))

    loop.run(main())
    assert seen == [("a", 1), ("b", 333), ("b2", 333), ("c", 1_234_567)]


def test_time_does_not_wander_over_many_odd_steps(loop: VirtualLoop) -> None:
    """Whole milliseconds stay whole: a hundred thousand sleeps of 333 ms are exactly that long."""

    async def main() -> None:
        for _ in range(10_000):
            await asyncio.sleep(0.333)

    loop.run(main())
    assert loop.now_ms == 10_000 * 333


def test_waiting_for_nothing_is_a_deadlock(loop: VirtualLoop) -> None:
    """Nothing ready and no timer: said at once instead of hanging."""
    with pytest.raises(Deadlock, match="nothing will ever happen"):
        loop.run(asyncio.Event().wait())


def test_spinning_is_a_livelock(loop: VirtualLoop) -> None:
    """A loop that goes round while time stands still is stopped."""

    async def spin() -> None:
        while True:
            await asyncio.sleep(0)

    with pytest.raises(Livelock, match="time does not advance"):
        loop.run(spin())


def test_real_time_is_refused(loop: VirtualLoop) -> None:
    """Threads and sockets would wait in real time."""

    async def main() -> None:
        with pytest.raises(RealTime, match="thread"):
            await asyncio.to_thread(time.monotonic)
        with pytest.raises(RealTime, match="socket"):
            loop.add_reader(0, print)

    loop.run(main())


def test_until_ends_a_run_that_would_go_on(loop: VirtualLoop) -> None:
    """`until` is the loop's own time; the answer is then None."""
    assert loop.run(asyncio.sleep(1000, "late"), until=5_000) is None
    assert loop.now_ms == 5_000
    assert run(asyncio.sleep(1, "early"), until=5_000) == "early"


def test_two_runs_of_the_same_code_take_the_same_steps() -> None:
    """Determinism: the trace of a small crowd is the same every time."""

    def trace() -> list[tuple[int, int]]:
        seen: list[tuple[int, int]] = []
        loop = VirtualLoop()

        async def one(n: int) -> None:
            for step in range(5):
                await asyncio.sleep(((n * 7 + step * 13) % 11) / 1000)
                seen.append((n, loop.now_ms))

        async def main() -> None:
            await asyncio.gather(*(one(n) for n in range(20)))

        loop.run(main())
        drain(loop)
        return seen

    assert trace() == trace()


def test_a_frozen_process_stands_still_and_goes_on(loop: VirtualLoop) -> None:
    """Its code does not run while it is frozen; the timer that passed meanwhile fires when it thaws."""
    seen: list[int] = []

    async def beat() -> None:
        while True:
            await asyncio.sleep(1)
            seen.append(loop.now_ms)

    async def main() -> None:
        process = Process(loop, "node")
        process.start(beat())
        await asyncio.sleep(2.5)
        process.freeze()
        await asyncio.sleep(10)
        process.thaw()
        await asyncio.sleep(1.2)
        process.kill()
        await asyncio.sleep(10)
        process.reap()

    loop.run(main())
    assert seen == [1000, 2000, 12_500, 13_500]


def test_what_is_ready_when_a_process_is_killed_does_not_run(loop: VirtualLoop) -> None:
    """Not even one more step, and what its buried coroutines could complain of is complained of nowhere."""
    said: list[object] = []
    loop.set_exception_handler(lambda _, context: said.append(context))
    steps: list[int] = []

    async def spin() -> None:
        while True:
            steps.append(1)
            await asyncio.sleep(0)

    async def main() -> int:
        process = Process(loop, "p")
        process.start(spin())
        for _ in range(3):
            await asyncio.sleep(0)
        process.kill()
        before = len(steps)
        process.reap()
        for _ in range(3):
            await asyncio.sleep(0)
        return len(steps) - before

    assert loop.run(main()) == 0
    gc.collect()
    assert said == []


def test_what_is_ready_when_a_process_freezes_runs_when_it_thaws(loop: VirtualLoop) -> None:
    """The step that was next is next, and none is lost."""
    steps: list[int] = []

    async def spin() -> None:
        for number in range(100):
            steps.append(number)
            await asyncio.sleep(0)

    async def main() -> tuple[int, int]:
        process = Process(loop, "p")
        process.start(spin())
        for _ in range(3):
            await asyncio.sleep(0)
        process.freeze()
        frozen = len(steps)
        for _ in range(50):
            await asyncio.sleep(0)
        still = len(steps)
        process.thaw()
        for _ in range(200):
            await asyncio.sleep(0)
        return frozen, still

    frozen, still = loop.run(main()) or (0, 1)
    assert frozen == still < 100
    assert steps == list(range(100))


def test_a_timer_that_passed_during_a_freeze_can_still_be_cancelled(loop: VirtualLoop) -> None:
    """As on a real loop: what was waited for came first, so the time limit no longer matters."""
    came = asyncio.Event()
    ended: list[str] = []

    async def wait() -> None:
        async with asyncio.timeout(5):
            await came.wait()
        ended.append("in time")

    async def main() -> None:
        process = Process(loop, "node")
        process.start(wait())
        await asyncio.sleep(1)
        process.freeze()
        came.set()
        await asyncio.sleep(10)
        process.thaw()
        await asyncio.sleep(1)
        process.reap()

    faults: list[object] = []
    loop.set_exception_handler(lambda _, about: faults.append(about))
    loop.run(main())
    assert (ended, faults) == (["in time"], [])


def test_a_killed_process_has_no_last_word(loop: VirtualLoop) -> None:
    """No `finally`, no `except` and no child task of it runs once it was killed."""
    seen: list[str] = []

    async def child() -> None:
        await asyncio.sleep(5)
        seen.append("child")

    async def parent() -> None:
        task = asyncio.create_task(child())
        try:
            await task
        finally:
            seen.append("finally")

    async def main() -> None:
        process = Process(loop, "node")
        process.start(parent())
        await asyncio.sleep(1)
        process.kill()
        await asyncio.sleep(60)
        assert seen == []
        process.reap()

    loop.run(main())
    assert "child" not in seen


def test_tasks_know_their_process(loop: VirtualLoop) -> None:
    """Whatever a process starts belongs to it, and nothing else does."""

    async def who() -> Process | None:
        return await asyncio.create_task(_who())

    async def _who() -> Process | None:
        return current_process()

    async def main() -> None:
        process = Process(loop, "node")
        assert await process.start(who()) is process
        assert current_process() is None

    loop.run(main())
