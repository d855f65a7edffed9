"""A process that ends between the claim of a delivery and the `sending` mark has sent nothing: that is no attempt."""

import asyncio
import sqlite3
from contextlib import closing
from typing import Any

import pytest

from delivery.kit import reachable, statuses
from features.kit import AllTogether, Bench, World, short, virtual
from wakeful.core.delivery.retries import DeliveryLimits
from wakeful.core.time.instants import HOUR, MINUTE


class DiesAtTheClaim(AllTogether):
    """Nothing of a process happens any more after the commit that claims a delivery."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.app: Bench | None = None

    def after_commit(self) -> None:
        with closing(sqlite3.connect(self._world.path)) as connection:
            claimed = connection.execute("SELECT 1 FROM addressees WHERE claimed_until IS NOT NULL").fetchall()
        if claimed and self.app is not None:
            self.app.store.last = self.app.store.writes


async def doomed(world: World, **settings: Any) -> Bench:
    """A process that dies as soon as it has claimed a delivery."""
    hook = DiesAtTheClaim(world)
    app, _ = await reachable(world, "phone", hook=hook, **settings)
    hook.app = app
    return app


@pytest.mark.promise
@virtual
async def test_a_crash_loop_dead_letters_nothing_that_was_never_sent(world: World) -> None:
    """Seven starts, each killed right after it: two messages are still waiting, without an attempt. The start that
    lives sends both, in order, once it has been up for ten minutes."""
    for start in range(7):
        app = await doomed(world)
        if start == 0:
            await asyncio.gather(app.people.send("first"), app.people.send("second"))
        await world.sleep("10s")
        await app.kill()
    assert statuses(world) == [("first", "pending", 0), ("second", "pending", 0)]
    app, people = await reachable(world, "phone")
    began = world.now
    await world.sleep("9m59s")
    assert people["phone"].letters == []
    (first, second) = reversed((await app.people.deliveries(status="pending")).deliveries)
    assert short(first.next_attempt_at) == short(began + 10 * MINUTE)
    assert first.last_error is not None
    assert first.last_error.startswith("the process ended 3 times in a row before this was sent")
    assert first.last_error.endswith(f"wakeful outbox retry {first.id}")
    assert second.last_error is None
    await world.sleep("1s")
    assert people["phone"].got == ["first", "second"]
    assert statuses(world) == [("first", "delivered", 1), ("second", "delivered", 1)]


@virtual
async def test_up_to_three_times_it_is_sent_right_after_the_next_start(world: World) -> None:
    """And what is sent once begins to count again from one."""
    for _ in range(2):
        app = await doomed(world)
        if not statuses(world):
            await app.people.send("hello")
        await world.sleep("10s")
        await app.kill()
    _, people = await reachable(world, "phone")
    await world.sleep("1s")
    assert people["phone"].got == ["hello"]
    assert statuses(world) == [("hello", "delivered", 1)]


@virtual
async def test_a_person_need_not_wait_for_the_ten_minutes(world: World) -> None:
    """`outbox retry` sends it now."""
    for _ in range(3):
        app = await doomed(world)
        if not statuses(world):
            await app.people.send("hello")
        await world.sleep("10s")
        await app.kill()
    app, people = await reachable(world, "phone")
    await world.sleep("3m")
    assert people["phone"].got == []
    (waiting,) = (await app.people.deliveries(status="pending")).deliveries
    await app.people.retry(waiting.id)
    await world.settle()
    assert people["phone"].got == ["hello"]


@virtual
async def test_it_is_given_up_when_it_is_too_old_and_says_why_it_was_never_sent(world: World) -> None:
    """Not before: a crash loop that lasts longer than a message may wait."""
    limits = DeliveryLimits(age_max=HOUR)
    for start in range(14):
        app = await doomed(world, delivery=limits)
        if start == 0:
            await app.people.send("hello")
        await world.sleep("5m")
        await app.kill()
    ((error, attempts, ended, expires),) = world.query(
        "SELECT last_error, attempts, ended_at, expires_at FROM deliveries WHERE channel = 'phone'"
    )
    assert (attempts, ended >= expires) == (0, True)
    assert error.startswith("not delivered within 1h; the last error: the process ended 3 times in a row")
