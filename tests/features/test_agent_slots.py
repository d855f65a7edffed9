"""The slot of an agent: what its program reports about its usage windows is shown, and waited for."""

import pytest

from features.kit import World, ledger, virtual
from features.money_kit import Spender
from features.quota_kit import Opened, Shop, config, open_quota
from wakeful import after_reset, every, once
from wakeful.core.refusals import Conflict
from wakeful.core.schedule.actions import Prompt
from wakeful.core.slot.windows import UsageWindow, exhausted_until, reading_of
from wakeful.core.time.instants import DAY, HOUR


def _windows(world: World, used: float, *, refused: bool = False, hours: int = 2) -> tuple[UsageWindow, ...]:
    """As a program reports them: five hours, and seven days of which a tenth is used."""
    five = UsageWindow("five_hour", used, world.now + hours * HOUR, 5 * HOUR, refused)
    return five, UsageWindow("seven_day", 10.0, world.now + 3 * DAY, 7 * DAY)


async def _open(world: World) -> tuple[Opened, Spender]:
    agent = Spender(world, 0.1)
    given = config(world, {}, slots_max=1)
    opened = await open_quota(world, Shop(world), given, actions={Prompt: agent}, agent_interval_min="0s")
    return opened, agent


@virtual
async def test_a_report_is_a_reading(world: World) -> None:
    """The window that is used most is the slot's own, and all are its limits; nothing polls or wakes it."""
    opened, _ = await _open(world)
    await opened.quota.report("default", _windows(world, 25.0))
    slot = await opened.slot("agent-default")
    assert (slot["status"], slot["percentage"], slot["source"], slot["agent"]) == ("warm", 25.0, "agent", "default")
    assert (slot["timeToReset"], slot["nextPoll"], slot["nextWake"]) == ("2h", None, None)
    assert [(limit["name"], limit["number"], limit["percentage"]) for limit in slot["limits"]] == [
        ("five_hour", 5, 25.0),
        ("seven_day", 7, 10.0),
    ]
    await opened.quota.report("default", _windows(world, 50.0))
    await world.sleep("1h")
    assert [point["percentage"] for point in (await opened.slot("agent-default"))["history"]] == [50.0]
    for change in (opened.app.slots.poll, opened.app.slots.wake):
        with pytest.raises(Conflict, match="agent default"):
            await change("agent-default")
    with pytest.raises(Conflict, match="nothing to change"):
        await opened.app.slots.patch("agent-default", {"enabled": False})
    await opened.app.slots.put("main", {"apiKey": "sk-x"})  # slots_max is 1: slots of agents do not count
    await opened.app.stop()
    opened, _ = await _open(world)
    assert (await opened.slot("agent-default"))["percentage"] == 50.0


@virtual
async def test_a_window_that_has_ended_is_not_shown(world: World) -> None:
    """Nobody reads the quota of an idle agent: afterwards only the longer window is known."""
    opened, _ = await _open(world)
    await opened.quota.report("default", _windows(world, 90.0))
    await world.sleep("2h1m")
    slot = await opened.slot("agent-default")
    assert (slot["status"], slot["percentage"], len(slot["limits"])) == ("cold", 10.0, 1)


@virtual
async def test_a_limit_is_waited_for(world: World) -> None:
    """All schedules of the agent wait for the reset, across a restart; others run, and so does a person's request."""
    opened, agent = await _open(world)
    await opened.app.add("report", every("1h"), prompt="work")
    await opened.app.add("other", every("1h"), prompt="work", agent="other")
    await world.sleep("30m")
    await opened.quota.report("default", _windows(world, 100.0, refused=True))
    assert (await opened.slot("agent-default"))["status"] == "exhausted"
    await world.sleep("40m")
    waiting = (await opened.app.runs("report"))[0]
    assert (waiting.outcome, waiting.reason) == ("waiting", "quota")
    assert "quota" in (await opened.app.why("report")).sentence
    assert [fire.slug for fire in agent.fires] == ["other"]
    await opened.app.kill()
    opened, agent = await _open(world)
    await world.sleep("10m")
    assert (await opened.app.runs("report"))[0].outcome == "waiting"
    await opened.app.add("now", once("+30d"), prompt="work")
    await opened.app.run_now("now")
    await world.sleep("5m")
    assert [fire.slug for fire in agent.fires] == ["now"]
    await world.until("01-01 02:31:00")
    assert (await ledger(opened.app, "report"))[0] == "01-01 01:00:00 succeeded"


@virtual
async def test_a_schedule_can_follow_its_reset(world: World) -> None:
    """`afterReset` knows the slot of an agent like any other."""
    opened, agent = await _open(world)
    await opened.quota.report("default", _windows(world, 25.0))
    await opened.app.add("warm", after_reset("agent-default", "1m"), prompt="hello")
    await world.sleep("2h2m")
    assert [fire.slug for fire in agent.fires] == ["warm"]


@virtual
async def test_another_slot_of_that_name_is_left_alone(world: World) -> None:
    """A person's own slot is not overwritten."""
    opened, _ = await _open(world)
    await opened.app.slots.put("agent-default", {"apiKey": "sk-x"})
    await opened.quota.report("default", _windows(world, 100.0, refused=True))
    slot = await opened.slot("agent-default")
    assert (slot["source"], slot["exhaustedUntil"]) == ("store", None)


def test_which_windows_stop_an_agent() -> None:
    """One that refuses requests and holds for all models, until the last of them ends; not one that has ended."""
    day = UsageWindow("seven_day", 100.0, 90 * HOUR, 7 * DAY, is_exhausted=True)
    five = UsageWindow("five_hour", 100.0, 3 * HOUR, 5 * HOUR, is_exhausted=True)
    paid = UsageWindow("five_hour", 100.0, 3 * HOUR, 5 * HOUR)
    one_model = UsageWindow("seven_day_opus", 100.0, 90 * HOUR, None, is_exhausted=True)
    assert exhausted_until([five, day], HOUR) == 90 * HOUR
    assert exhausted_until([five, day], 4 * HOUR) == 90 * HOUR
    assert exhausted_until([five], 3 * HOUR) is None
    assert exhausted_until([paid, one_model], HOUR) is None
    reading = reading_of([paid, day], HOUR)
    assert reading is not None and (reading.percentage, reading.reset_at) == (100.0, 90 * HOUR)
    assert reading_of([five], 3 * HOUR) is None
