"""The virtual clock keeps the clock port's promises, and can be made wrong."""

import asyncio
from collections.abc import Iterator

import pytest

from wakeful.core.time.instants import DAY, HOUR, MINUTE
from wakeful.ports.clock import Moment
from wakeful.testing.virtual_clock import EPOCH, VirtualClock, Wall
from wakeful.testing.virtual_loop import Process, VirtualLoop, drain


@pytest.fixture
def loop() -> Iterator[VirtualLoop]:
    loop = VirtualLoop()
    yield loop
    drain(loop)


def test_both_sides_run_with_true_time(loop: VirtualLoop) -> None:
    """An hour is an hour on the wall and on the monotonic side."""
    clock = VirtualClock(loop)

    async def main() -> None:
        before = clock.read()
        await clock.sleep(HOUR)
        after = clock.read()
        assert after.now - before.now == HOUR == after.monotonic - before.monotonic

    loop.run(main())


@pytest.mark.parametrize("step", [DAY, -DAY, MINUTE, -EPOCH])
def test_a_step_moves_the_wall_and_nothing_else(loop: VirtualLoop, step: int) -> None:
    """Both ways, by any amount; a sleep under way is not shortened by it."""
    clock = VirtualClock(loop)

    async def main() -> None:
        loop.call_at_ms(10_000, clock.step, step)
        await clock.sleep(MINUTE)
        assert clock.read() == (EPOCH + MINUTE + step, MINUTE, 0)

    loop.run(main())


def test_the_wall_is_set_to_an_absolute_time(loop: VirtualLoop) -> None:
    """A machine that boots in 1970 and is corrected later."""
    clock = VirtualClock(loop, 0)

    async def main() -> None:
        assert clock.read().now == 0
        await clock.sleep(MINUTE)
        clock.set(EPOCH)
        assert clock.read().now == EPOCH
        await clock.sleep(MINUTE)
        assert clock.read().now == EPOCH + MINUTE

    loop.run(main())


def test_nodes_share_a_wall_and_have_a_monotonic_side_each(loop: VirtualLoop) -> None:
    """A step is seen by all; a reboot starts the monotonic side anew."""
    wall = Wall(loop)
    first = VirtualClock(loop, wall=wall)

    async def main() -> None:
        await first.sleep(HOUR)
        second = VirtualClock(loop, wall=wall)
        first.step(DAY)
        assert second.read() == (EPOCH + HOUR + DAY, 0, 0)
        assert first.read() == (EPOCH + HOUR + DAY, HOUR, 0)

    loop.run(main())


def test_timers_fire_late_after_a_suspend(loop: VirtualLoop) -> None:
    """The monotonic side does not see a suspend, so what was to take a minute takes a minute of being awake."""
    clock = VirtualClock(loop)
    woke: list[Moment] = []

    async def sleeper() -> None:
        await clock.sleep(MINUTE)
        woke.append(clock.read())
        assert not await clock.wait(asyncio.Event(), MINUTE)
        woke.append(clock.read())

    async def main() -> None:
        process = Process(loop, "laptop")
        task = process.start(sleeper())
        for _ in range(2):
            await asyncio.sleep(30)
            process.freeze()
            await asyncio.sleep(3600)
            clock.suspend(HOUR)
            process.thaw()
            await asyncio.sleep(31)
        await task

    loop.run(main())
    assert woke == [
        (EPOCH + HOUR + MINUTE, MINUTE, HOUR),
        (EPOCH + 2 * HOUR + 2 * MINUTE, 2 * MINUTE, 2 * HOUR),
    ]


def test_a_bell_ends_the_wait(loop: VirtualLoop) -> None:
    """True for the bell, False for the time, whichever is first; a bell already set does not wait."""
    clock = VirtualClock(loop)

    async def main() -> None:
        bell = asyncio.Event()
        loop.call_at_ms(5_000, bell.set)
        assert await clock.wait(bell, MINUTE)
        assert loop.now_ms == 5_000
        assert await clock.wait(bell, MINUTE)
        assert loop.now_ms == 5_000
        bell.clear()
        assert not await clock.wait(bell, MINUTE)
        assert loop.now_ms == 65_000
        assert not await clock.wait(bell, 0)

    loop.run(main())


def test_a_drifting_wall_gains_on_true_time(loop: VirtualLoop) -> None:
    """A hundred parts per million are 8.64 s a day."""
    clock = VirtualClock(loop, drift_ppm=100)
    loop.run(asyncio.sleep(86_400))
    assert clock.read() == (EPOCH + DAY + 8_640, DAY, 0)
