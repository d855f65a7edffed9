"""Pruning goes on beside the clock."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from features.kit import Bench, Bot, World, virtual
from wakeful import every
from wakeful.core.time.instants import HOUR, MINUTE, Instant

OFTEN = {"prune_every": 10 * MINUTE}


class BatchStore:
    """The store as pruning sees it: something happens before each batch."""

    def __init__(self, app: Bench, before: Callable[[], Awaitable[None]]) -> None:
        self.began: list[Instant] = []
        self._app = app
        self._before = before
        engine: Any = app.engine
        engine._pruner._store = self

    async def write(self, operation: Any) -> Any:
        self.began.append(self._app.clock.read().now)
        await self._before()
        return await self._app.store.write(operation)


@virtual
async def test_what_is_due_starts_while_a_batch_is_pruned(world: World) -> None:
    """A batch that takes an hour: meanwhile the clock goes on, and there is no second batch beside it."""
    bot = Bot(world)
    app = await world.open(bot, limits=OFTEN)
    batches = BatchStore(app, lambda: world.clock.sleep(HOUR))
    await app.add("job", every("1m"))
    await world.until("01-01 00:59:30")
    assert len(bot.fires) == 59
    assert len(batches.began) == 1
    await world.until("01-01 01:10:30")
    assert len(bot.fires) == 70
    assert len(batches.began) == 2


@virtual
async def test_a_batch_that_fails_does_not_stop_the_clock(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """Any exception: it is logged, runs start on time, and the next batch is tried when it is due (L9)."""

    async def fail() -> None:
        raise ZeroDivisionError("a fault of ours")

    bot = Bot(world)
    app = await world.open(bot, limits=OFTEN)
    batches = BatchStore(app, fail)
    await app.add("job", every("1m"))
    await world.until("01-01 00:29:30")
    assert len(bot.fires) == 29
    assert len(batches.began) == 3
    assert "the ledger cannot be pruned" in caplog.text
