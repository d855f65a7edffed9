"""What never began is not an attempt: a run that finds no descriptors, memory or disk space waits for them."""

import errno
from typing import Any

import pytest

from features.kit import Bench, Bot, World, instant, virtual
from wakeful import every, once
from wakeful.core.run.results import Result
from wakeful.core.time.instants import MINUTE, SECOND
from wakeful.features.schedules.health import health
from wakeful.features.schedules.why import why
from wakeful.integrations.actions.call import CallAction
from wakeful.ports.action import CannotBegin

FULL = "it cannot be started: Too many open files"


class Machine:
    """A machine that has no room for the runs of some schedules."""

    def __init__(self, world: World, patch: pytest.MonkeyPatch) -> None:
        self.refuses: set[str] = set()
        self.refused: list[int] = []  # when
        perform = CallAction.perform

        async def performed(action: CallAction, spec: Any, fire: Any, ladder: Any) -> Result:
            if fire.slug in self.refuses:
                self.refused.append(world.now)
                raise CannotBegin(FULL)
            return await perform(action, spec, fire, ladder)

        patch.setattr(CallAction, "perform", performed)
        patch.setattr(CallAction, "direct", lambda action, spec: None)  # a direct call needs nothing of the machine


@pytest.fixture
def patch(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    return monkeypatch


async def sentence(app: Bench, slug: str) -> str:
    now = app.clock.read().now
    return (await app.store.read(lambda tx: why(tx, slug, at=None, now=now))).sentence


@virtual
async def test_it_waits_longer_each_time_and_none_of_it_is_an_attempt(world: World, patch: pytest.MonkeyPatch) -> None:
    """With `maxConsecutiveErrors: 1`, one counted error would disable it."""
    machine, bot = Machine(world, patch), Bot(world)
    app = await world.open(bot)
    await app.add("tick", every("1h"), max_consecutive_errors=1)
    machine.refuses = {"tick"}
    await world.until("01-01 01:11:00")
    begun = instant("01-01 01:00:00")
    assert [(at - begun) // SECOND for at in machine.refused] == [0, 5, 15, 35, 75, 155, 315, 615]
    (run,) = await app.runs("tick")
    assert (run.outcome, run.reason, run.attempt, run.started_at, list(run.attempts)) == (
        "waiting", "resources", 0, None, [],
    )  # fmt: skip
    assert run.error == FULL
    view = await app.get("tick")
    assert (view.status, view.health, view.last_error, view.consecutive_errors) == ("waiting", "late", None, 0)
    assert await sentence(app, "tick") == (
        "The run of tick planned for 2026-01-01 01:00 (UTC) is waiting for resources until 01:15:15; it could not "
        f"begin, which is not an attempt: {FULL}; it runs next at 02:00."
    )
    machine.refuses = set()
    await world.until("01-01 01:16:00")
    (run,) = await app.runs("tick")
    assert (run.outcome, run.attempt, run.reason, len(run.attempts)) == ("succeeded", 1, None, 1)
    assert (await app.get("tick")).health == "ok"
    assert bot.planned == ["01-01 01:00:00"]


@virtual
async def test_the_pauses_start_again_after_an_attempt(world: World, patch: pytest.MonkeyPatch) -> None:
    """What was refused before an attempt says nothing about the next one."""
    machine, bot = Machine(world, patch), Bot(world)
    bot.script = [RuntimeError("no")]
    app = await world.open(bot)
    await app.add("tick", every("6h"), retry={"times": 1, "delay": "1h"})
    machine.refuses = {"tick"}
    await world.until("01-01 06:01:00")
    machine.refuses = set()
    await world.until("01-01 06:02:00")
    machine.refuses, machine.refused = {"tick"}, []
    await world.until("01-01 07:01:50")
    assert [b - a for a, b in zip(machine.refused, machine.refused[1:], strict=False)][:3] == [
        5 * SECOND, 10 * SECOND, 20 * SECOND,
    ]  # fmt: skip
    (run,) = await app.runs("tick")
    assert (run.outcome, run.reason, run.attempt, len(run.attempts)) == ("waiting", "resources", 1, 1)


@virtual
async def test_its_lane_is_free_while_it_waits(world: World, patch: pytest.MonkeyPatch) -> None:
    """Another run of the lane begins."""
    machine, bot = Machine(world, patch), Bot(world)
    app = await world.open(bot)
    await app.add("first", once("2026-01-01T01:00:00Z"), lane="db")
    await app.add("second", once("2026-01-01T01:00:01Z"), lane="db")
    machine.refuses = {"first"}
    await world.until("01-01 01:00:10")
    assert [run.outcome for run in await app.runs("second")] == ["succeeded"]
    assert [run.outcome for run in await app.runs("first")] == ["waiting"]


@virtual
async def test_after_an_hour_it_fails_if_others_began(world: World, patch: pytest.MonkeyPatch) -> None:
    """Then the machine has room, and it is the run that needs too much."""
    machine, bot = Machine(world, patch), Bot(world)
    app = await world.open(bot)
    await app.add("big", every("12h"))
    await app.add("small", every("10m"))
    machine.refuses = {"big"}
    await world.until("01-01 12:59:00")
    assert [run.outcome for run in await app.runs("big")] == ["waiting"]
    await world.until("01-01 13:06:00")
    (run,) = await app.runs("big")
    assert (run.outcome, run.reason, run.attempt) == ("failed", "resources", 1)
    assert (await app.get("big")).consecutive_errors == 1
    assert "had no resources for it for an hour, while other runs began" in await sentence(app, "big")


@virtual
async def test_after_an_hour_it_still_waits_if_none_began(world: World, patch: pytest.MonkeyPatch) -> None:
    """What is missing is missing for all: nothing of it is the fault of this schedule."""
    machine, bot = Machine(world, patch), Bot(world)
    app = await world.open(bot)
    await app.add("big", every("12h"))
    await app.add("small", every("10m"))
    await world.until("01-01 11:55:00")
    machine.refuses = {"big", "small"}
    await world.until("01-01 16:00:00")
    assert [run.outcome for run in await app.runs("big")] == ["waiting"]
    machine.refuses = set()
    await world.until("01-01 16:06:00")
    assert [run.outcome for run in await app.runs("big")] == ["succeeded"]


@virtual
async def test_people_are_told_after_an_hour_and_when_it_is_over(world: World, patch: pytest.MonkeyPatch) -> None:
    """Late at once, an incident when the instant is still waiting an hour after its time."""
    machine, bot, told = Machine(world, patch), Bot(world), []

    async def deliver(_to: str | None, message: Any) -> None:
        told.append(message.text)

    app = await world.open(bot, {"phone": deliver})
    await app.add("tick", every("1d"))
    await world.sleep("23h")
    machine.refuses = {"tick"}
    await world.sleep("90m")
    now = app.clock.read().now
    found = await app.store.read(lambda tx: health(tx, now=now))
    assert (found.late, found.failing) == (1, 0)
    shown = [item for item in (await app.people.today()).attention if item.slug == "tick"]
    assert [item.kind for item in shown] == ["late"]
    assert FULL in shown[0].sentence
    assert told == []
    await world.sleep("40m")
    assert len(told) == 1
    assert told[0].startswith(
        "tick: it cannot begin. The run of tick planned for 2026-01-02 00:00 (UTC) is waiting for"
    )
    assert FULL in told[0]
    machine.refuses = set()
    await world.sleep("10m")
    assert len(told) == 2


@virtual
async def test_a_manual_run_waits_too(world: World, patch: pytest.MonkeyPatch) -> None:
    """It has not begun either."""
    machine, bot = Machine(world, patch), Bot(world)
    app = await world.open(bot)
    await app.add("tick", every("12h"))
    machine.refuses = {"tick"}
    await app.run_now("tick")
    await world.sleep(20 * SECOND)
    assert [(run.outcome, run.reason) for run in await app.runs("tick")] == [("waiting", "resources")]
    machine.refuses = set()
    await world.sleep(MINUTE)
    assert [run.outcome for run in await app.runs("tick")] == ["succeeded"]


@virtual
async def test_a_pause_while_it_could_not_begin_leaves_no_attempt(world: World, patch: pytest.MonkeyPatch) -> None:
    """L8: it is skipped as if it had not been claimed, although a call is claimed as started."""
    app = await world.open(Bot(world))

    async def refused(action: CallAction, spec: Any, fire: Any, ladder: Any) -> Result:
        await app.pause("tick")
        raise CannotBegin(FULL)

    patch.setattr(CallAction, "perform", refused)
    patch.setattr(CallAction, "direct", lambda action, spec: None)
    await app.add("tick", every("1h"))
    await world.until("01-01 01:00:30")
    (run,) = await app.runs("tick")
    assert (run.outcome, run.reason, run.attempt, run.reached, run.started_at) == ("skipped", "paused", 0, None, None)


@virtual
async def test_what_the_functions_of_users_raise_is_an_attempt(world: World) -> None:
    """Also if it is the same error: it may have done half of its work."""
    app = await world.open(Bot(world, usual=OSError(errno.EMFILE, "Too many open files")))
    await app.add("tick", every("1h"))
    await world.until("01-01 01:01:00")
    assert [(run.outcome, run.attempt) for run in await app.runs("tick")] == [("failed", 1)]
