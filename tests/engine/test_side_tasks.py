"""Errands: work an alarm asks for that has no line in the ledger, and features that plug in."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from features.kit import Bench, World, virtual
from wakeful.app.bootstrap import FeatureContext
from wakeful.core.time.instants import MINUTE, SECOND, Instant
from wakeful.ports import events
from wakeful.ports.event_data import RunNamed
from wakeful.ports.handlers import FeatureHooks, Note, RingResult, SideTask
from wakeful.ports.store import Alarm, Report, Tx

KIND = "poll"


class Polls:
    """One alarm that asks for an errand each minute; its claim runs out after ten seconds."""

    kind = KIND
    brings_runs = False

    def __init__(self, context: FeatureContext, perform: Callable[[int], object]) -> None:
        self._clock = context.clock
        self._perform = perform
        self.rung: list[Instant] = []
        self.noted: list[int] = []

    def ring(self, tx: Tx, *, now: Instant, due_by: Instant, limit: int, late_max: int, gap_reason: str) -> RingResult:
        alarm = tx.alarms.by_refs(KIND, [1])[1]
        if alarm.due_at is None or alarm.due_at > due_by:
            return RingResult((), 0)
        tx.alarms.move_many(KIND, [(1, now + 10 * SECOND)])
        self.rung.append(now)
        number = len(self.rung)

        async def perform() -> Note | None:
            answer = self._perform(number)
            if asyncio.iscoroutine(answer):
                await answer
            return lambda tx: self._note(tx, number)

        return RingResult((), 1, [SideTask(f"poll {number}", perform, 5 * SECOND)])

    def _note(self, tx: Tx, number: int) -> None:
        tx.alarms.move_many(KIND, [(1, self._clock.read().now + MINUTE)])
        tx.report(Report(events.RUN_VOIDED, RunNamed(number)))
        self.noted.append(number)

    def turn_back(self, tx: Tx, *, now: Instant, after_id: int, limit: int) -> int | None:
        return None

    def recover(self, tx: Tx, *, now: Instant) -> None:
        """The first time it begins to poll; later, what was under way is nobody's."""
        known = tx.alarms.by_refs(KIND, [1])
        tx.alarms.set_many([Alarm(KIND, 1, now if known else now + MINUTE, 1, None, 0)])


async def start(world: World, perform: Callable[[int], object]) -> tuple[Polls, Bench]:
    """An app with the feature plugged in."""
    made: list[Polls] = []

    async def feature(context: FeatureContext) -> FeatureHooks:
        made.append(Polls(context, perform))
        return FeatureHooks(alarms=made)

    made_app = await world.open(features=[feature])
    return made[0], made_app


@virtual
async def test_an_errand_is_run_after_its_claim_and_what_it_answers_is_written(world: World) -> None:
    """Once a minute, without a row in the ledger."""
    polls, _ = await start(world, lambda _: None)
    await world.sleep("3m30s")
    assert polls.noted == [1, 2, 3]


@virtual
async def test_one_that_fails_rings_again_when_its_claim_runs_out(world: World) -> None:
    """The clock goes on, and so does its alarm."""

    def perform(number: int) -> None:
        if number == 1:
            raise RuntimeError("no")

    polls, _ = await start(world, perform)
    await world.sleep("1m20s")
    assert polls.noted == [2]
    assert polls.rung[1] - polls.rung[0] == 10 * SECOND


@virtual
async def test_one_that_takes_too_long_is_ended(world: World) -> None:
    """At its deadline, before its claim runs out: it never overlaps itself."""
    ended: list[Instant] = []

    async def perform(number: int) -> None:
        try:
            if number == 1:
                await world.clock.sleep(MINUTE)
        except asyncio.CancelledError:
            ended.append(world.clock.read().now)
            raise

    polls, _ = await start(world, perform)
    await world.sleep("1m20s")
    assert [at - polls.rung[0] for at in ended] == [5 * SECOND]
    assert polls.noted == [2]


@virtual
async def test_a_new_process_takes_up_what_was_under_way(world: World) -> None:
    """On a store that only one process can tick on, a claim need not run out first."""
    polls, app = await start(world, lambda _: world.clock.sleep(MINUTE))
    await world.sleep("1m1s")
    assert polls.rung
    await app.kill()
    again, _ = await start(world, lambda _: None)
    await world.sleep("1s")
    assert again.noted == [1]


async def test_two_features_cannot_claim_the_same_effect() -> None:
    """A mistake in the composition is said, not hidden by order."""
    from wakeful.app.bootstrap.effect_appliers import merged

    with pytest.raises(ValueError, match="int"):
        merged([{int: 1}, {int: 2}])


@virtual
async def test_an_errand_is_not_begun_after_its_claim_ran_out(world: World) -> None:
    """DESIGN 8.8: the process was frozen between the claim and the errand's first step; by now it rings elsewhere."""
    begun: list[int] = []
    polls, app = await start(world, begun.append)
    ring = polls.ring

    def ring_and_freeze(tx: Tx, **asked: Any) -> RingResult:
        rung = ring(tx, **asked)
        if rung.side_tasks and len(polls.rung) == 1:
            app.machine.freeze()
        return rung

    polls.ring = ring_and_freeze  # type: ignore[method-assign]
    await world.sleep("2m")
    assert (len(polls.rung), begun) == (1, [])
    app.machine.thaw()
    await world.sleep("1s")
    assert begun == [2]  # the claim ran out, so the alarm rang again
