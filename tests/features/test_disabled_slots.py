"""A slot that is disabled sends nothing any more: whatever disabled it, and whatever its run was doing then."""

from features.kit import World, virtual
from features.quota_kit import Opened, Shop, config, open_quota
from wakeful.core.time.instants import SECOND
from wakeful.observe.stream import Event


def times_disabled(opened: Opened) -> list[int]:
    """The number of errors each time that waking is reported as disabled, from now on."""
    said: list[int] = []

    def listen(event: Event) -> None:
        if event.what == "wakeDisabled":
            said.append(event.data["wakeErrors"])

    opened.app.on_stream("slots", listen)
    return said


@virtual
async def test_the_reading_before_a_wake_may_disable_the_slot_and_then_nothing_is_sent(world: World) -> None:
    """Two errors are allowed: the forced retry was the first, the reading before the next wake is the second. Its row
    says that it sent nothing, no wake is pending, no error is counted after it, and it is reported once."""
    shop = Shop(world)
    account = shop.account("sk-main")
    account.mood = "never"
    slots = {"main": {"interval": "2h", "poll": "24h"}}
    opened = await open_quota(world, shop, config(world, slots, errors_max=2))
    said = times_disabled(opened)
    await world.until("01-01 02:20:00")
    assert [at[:11] for at in account.wakes] == ["01-01 00:00", "01-01 00:15"]
    assert await opened.rows() == ["01-01 00:00:00.100 unconfirmed", "01-01 02:15:00.400 skipped (disabled)"]
    await world.until("01-03 00:00:00")
    slot = await opened.slot()
    assert (slot["wakeDisabled"], slot["wakePending"], slot["wakeErrors"], slot["wakeRun"]) == (True, False, 2, None)
    assert len(account.tried) == 2
    assert said == [2]
    assert world.reported() == ["slot:main"]


@virtual
async def test_a_slot_that_is_switched_off_while_its_quota_is_read_is_not_woken(world: World) -> None:
    """The run was claimed, and had not sent anything yet."""
    shop = Shop(world, takes=5 * SECOND)
    shop.account("sk-main").warm("30m")
    opened = await open_quota(world, shop, config(world, {"main": {"interval": "1h", "poll": "24h"}}))
    await world.until("01-01 01:00:02")
    assert await opened.rows() == ["01-01 01:00:00 running"]
    await opened.quota.change(config(world, {"main": {"interval": "1h", "poll": "24h", "enabled": False}}))
    await world.until("01-01 02:00:00")
    assert shop.account("sk-main").tried == []
    assert await opened.rows() == ["01-01 01:00:00 skipped (disabled)"]


@virtual
async def test_a_wake_that_is_being_sent_when_its_slot_is_switched_off_ends_unconfirmed(world: World) -> None:
    """It arrived, and nothing will read the quota to see its effect: the row does not say that it was skipped."""
    shop = Shop(world, takes=5 * SECOND)
    shop.account("sk-main").warm("30m")
    opened = await open_quota(world, shop, config(world, {"main": {"interval": "1h", "poll": "24h"}}))
    await world.until("01-01 01:00:07")
    await opened.quota.change(config(world, {"main": {"interval": "1h", "poll": "24h", "enabled": False}}))
    await world.until("01-01 02:00:00")
    assert len(shop.account("sk-main").woken) == 1
    (row,) = await opened.app.runs("slot:main")
    assert (row.outcome, row.reason, row.rung) == ("unconfirmed", "disabled", "accepted")
    assert row.error == "a wake was sent, and its slot was disabled before it was confirmed"
    assert (await opened.slot())["wakePending"] is False
    assert world.reported() == []  # a person switched it off


@virtual
async def test_a_wake_by_hand_is_sent_although_the_slot_is_disabled_and_changes_nothing_about_that(
    world: World,
) -> None:
    """Without effect, refused, and then with effect: what disabled the slot stays said, and is not said again."""
    shop = Shop(world)
    account = shop.account("sk-main")
    account.mood = "never"
    slots = {"main": {"interval": "2h", "poll": "24h"}}
    opened = await open_quota(world, shop, config(world, slots, errors_max=2))
    said = times_disabled(opened)
    await world.until("01-01 03:00:00")
    await opened.app.slots.wake("main")
    await world.sleep("20m")
    slot = await opened.slot()
    assert (len(account.woken), slot["wakeErrors"], slot["wakeDisabled"]) == (3, 2, True)
    assert (await opened.rows())[-1].endswith("unconfirmed")
    account.wake_mood = "wrong"
    await opened.app.slots.wake("main")
    await world.sleep("20m")
    slot = await opened.slot()
    assert (len(account.tried), slot["wakeErrors"], slot["wakePending"], slot["wakeRun"]) == (4, 2, False, None)
    assert (await opened.rows())[-1].endswith("failed")
    account.mood, account.wake_mood = "normal", None
    await opened.app.slots.wake("main")
    await world.sleep("20m")
    slot = await opened.slot()
    assert (slot["warm"], slot["wakePending"], slot["wakeErrors"], slot["wakeDisabled"]) == (True, False, 2, True)
    assert slot["statusReason"] == (
        "slot main is no longer woken after 2 wake errors: a wake was sent but had no effect: nextResetTime is missing"
    )
    assert (await opened.rows())[-1].endswith("succeeded")
    assert said == [2]
    await opened.app.slots.resume("main")
    slot = await opened.slot()
    assert (slot["wakeErrors"], slot["wakeDisabled"], slot["statusReason"]) == (0, False, None)
