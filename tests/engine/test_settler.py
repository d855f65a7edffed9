"""The capacity that ended runs keep for their successors (`engine.settler.Settler`)."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from conformance.rows import a_claim, running
from wakeful.core.run.results import DONE, Ending, StuckRunEnded, Unproven
from wakeful.core.time.instants import Instant
from wakeful.engine.claiming import ClaimRequest
from wakeful.engine.clock import SystemClock
from wakeful.engine.settler import Settler
from wakeful.engine.settling import SettleResult, Succession
from wakeful.ports.claims import Claim
from wakeful.ports.store import StoreUnavailable


class Gated:
    """A store whose writes end when the test says so, in order."""

    def __init__(self) -> None:
        self.waiting: list[asyncio.Future[Succession]] = []

    async def write(self, operation: Callable[..., Any]) -> Succession:
        count = len(operation.keywords["ended"])  # type: ignore[attr-defined]  # a partial
        future: asyncio.Future[Succession] = asyncio.get_running_loop().create_future()
        self.waiting.append(future)
        await future
        return Succession(SettleResult([True] * count, []), [], None)

    async def end_next(self, error: Exception | None = None) -> None:
        await _settle_down()
        future = self.waiting.pop(0)
        if error is None:
            future.set_result(None)  # type: ignore[arg-type]  # only that it ended
        else:
            future.set_exception(error)
        await _settle_down()


class Host:
    """An engine with room."""

    def claim_request(self, now: Instant, room: int) -> ClaimRequest:
        return ClaimRequest(1, now, room, manual_room=9)

    def start_claims(self, claims: list[Claim]) -> None: ...
    def look_by(self, due_at: Instant | None) -> None: ...
    def alert(self, alert: object, now: Instant) -> None: ...


class NoWaiting(SystemClock):
    async def sleep(self, duration: int) -> None:
        await asyncio.sleep(0)


@pytest.fixture
async def store() -> Gated:
    return Gated()


@pytest.fixture
async def settler(store: Gated) -> Settler:
    hooks: Any = None
    gated: Any = store
    return Settler(gated, NoWaiting(), hooks, Host())


async def _settle_down() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def _put(settler: Settler, run_id: int, ending: Ending = DONE, lane: str | None = "desk") -> Claim:
    claim = a_claim(running(run_id, 1, lane=lane))
    settler.put(claim, ending)
    return claim


async def test_kept_until_it_is_settled(settler: Settler, store: Gated) -> None:
    """Only runs in lanes have successors."""
    _put(settler, 1)
    _put(settler, 2, lane=None)
    assert settler.kept == 1
    await store.end_next()
    assert settler.kept == 0


async def test_kept_while_the_store_is_down(settler: Settler, store: Gated) -> None:
    """The batch is tried again with the same capacity."""
    _put(settler, 1)
    await store.end_next(StoreUnavailable("no disk"))
    assert settler.kept == 1
    await store.end_next()
    assert settler.kept == 0


async def test_kept_while_a_batch_is_settled_one_by_one(settler: Settler, store: Gated) -> None:
    """One of them is at fault; it is tried again later, without capacity."""
    _put(settler, 1)
    _put(settler, 2)
    await store.end_next(ValueError("bad row"))  # together, with successors
    await store.end_next(ValueError("bad row"))  # together, without
    assert settler.kept == 2
    await store.end_next(ValueError("bad row"))
    await store.end_next()
    assert settler.kept == 1
    settler.clear()


async def test_a_run_that_was_stuck_and_is_freed_meanwhile_keeps_its_own(settler: Settler, store: Gated) -> None:
    """The first ending has no successor; that it is settled says nothing about the second."""
    run = _put(settler, 1, Unproven("still running"))
    await _settle_down()
    settler.put(run, StuckRunEnded())
    assert settler.kept == 1
    await store.end_next()
    assert settler.kept == 1
    await store.end_next()
    assert settler.kept == 0


async def test_what_is_dropped_keeps_nothing(settler: Settler, store: Gated) -> None:
    """After a lost lease. The batch that is being written keeps its part until it is written."""
    _put(settler, 1)
    await _settle_down()
    _put(settler, 2)
    settler.clear()
    assert settler.kept == 1
    await store.end_next()
    assert settler.kept == 0
