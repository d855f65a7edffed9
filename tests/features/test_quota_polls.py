"""Polling slots: pace, backoff, recovery, live reload, health checks, and slots written over REST."""

import asyncio
import json
from itertools import pairwise
from typing import Any

import pytest

from features.kit import World, instant, short, virtual
from features.quota_kit import Shop, config, open_quota
from wakeful import Conflict, Invalid, NotFound
from wakeful.core.time.instants import MINUTE


def minutes(reads: list[int]) -> list[int]:
    """Distances between reads, in minutes."""
    return [round((after - before) / MINUTE) for before, after in pairwise(reads)]


@virtual
async def test_the_quota_is_read_at_the_start_and_then_at_its_own_interval(world: World) -> None:
    """One request each, independent of the wakes."""
    shop = Shop(world)
    account = shop.account("sk-main")
    account.warm("9h")
    await open_quota(world, shop, config(world, {"main": {"poll": "10m"}}))
    for step in range(6):
        account.percentage = step  # something changes, so polling is not stretched
        await world.sleep("10m")
    assert short(account.reads[0]) == "01-01 00:00:00.100"
    assert minutes(account.reads) == [10] * 5


@virtual
async def test_polling_slows_down_while_nothing_changes_and_not_near_the_limit(world: World) -> None:
    """Three equal readings double the interval, at most to four times; 80 % ends it."""
    shop = Shop(world)
    account = shop.account("sk-main")
    account.warm("48h")
    account.percentage = 7
    await open_quota(world, shop, config(world, {"main": {"poll": "10m"}}))
    await world.sleep("4h")
    assert minutes(account.reads) == [10, 10, 20, 20, 20, 40, 40, 40]
    account.percentage = 81
    await world.sleep("2h")
    assert minutes(account.reads)[-6:] == [10] * 6


@virtual
async def test_errors_back_off_and_a_reading_recovers(world: World) -> None:
    """30 minutes, then 60, 120, 240, 480, and 480 for good; one good reading ends it."""
    shop = Shop(world)
    account = shop.account("sk-main")
    account.warm("600h")
    opened = await open_quota(world, shop, config(world, {"main": {}}))
    await world.sleep("1m")
    account.mood = "wrong"
    await world.sleep("40h")
    assert minutes(account.reads) == [30, 60, 120, 240, 480, 480, 480, 480]
    slot = await opened.slot()
    assert (slot["quotaErrors"], slot["disabled"], slot["status"]) == (8, False, "failing")
    assert "HTTP 400" in slot["lastError"]
    account.mood = "normal"
    await world.sleep("9h")
    slot = await opened.slot()
    assert (slot["quotaErrors"], slot["lastError"], slot["status"]) == (0, None, "warm")
    assert minutes(account.reads)[-1] in (30, 60)


@pytest.mark.parametrize(
    ("mood", "words"),
    [
        ("wrong", "HTTP 400"),
        ("refused", "the key was refused"),
        ("broken", "not JSON"),
        ("empty", "no limit"),
        ("far", "nextResetTime is implausible"),
    ],
)
@virtual
async def test_too_many_errors_disable_one_slot_and_the_others_go_on(world: World, mood: str, words: str) -> None:
    """One clear status, an alert, and the key nowhere in it. `resume` lets it go on."""
    shop = Shop(world)
    bad, good = shop.account("sk-main"), shop.account("sk-other")
    good.warm("600h")
    slots = {"main": {"poll": "1m"}, "other": {"poll": "1m"}}
    opened = await open_quota(world, shop, config(world, slots, backoff_cap=2 * MINUTE))
    bad.mood = mood
    await world.sleep("40m")
    slot = await opened.slot()
    assert (slot["disabled"], slot["quotaErrors"], slot["nextPoll"], slot["status"]) == (True, 10, None, "disabled")
    assert words in slot["lastError"]
    assert words in slot["statusReason"]
    assert "sk-main" not in str(slot)
    other = await opened.slot("other")
    assert (other["disabled"], other["quotaErrors"], other["warm"]) == (False, 0, True)
    count = len(bad.reads)
    await world.sleep("2h")
    assert len(bad.reads) == count
    bad.mood = "normal"
    await opened.app.slots.resume("main")
    await world.sleep("5s")
    slot = await opened.slot()
    assert (slot["disabled"], slot["quotaErrors"], len(bad.reads)) == (False, 0, count + 1)


@virtual
async def test_a_slow_provider_is_given_up_and_counted(world: World) -> None:
    """Its answer after a minute is not waited for; the claim runs out, and nothing else suffers."""
    shop = Shop(world)
    account = shop.account("sk-main")
    account.mood = "slow"
    opened = await open_quota(world, shop, config(world, {"main": {"poll": "1m"}, "other": {"poll": "1m"}}))
    await world.sleep("5m")
    assert 3 <= len(account.reads) <= 6
    assert (await opened.slot("other"))["status"] == "cold"


@virtual
async def test_statistics_are_asked_for_at_a_slower_pace(world: World) -> None:
    """And kept for people; a failing one changes nothing."""
    shop = Shop(world)
    shop.has_statistics = True
    account = shop.account("sk-main")
    account.warm("40h")
    opened = await open_quota(world, shop, config(world, {"main": {"poll": "10m"}}))
    await world.sleep("5h")
    assert account.stats == 3
    assert (await opened.slot())["stats"] == {"day": {"calls": 12}}


@virtual
async def test_history_is_kept_for_charts(world: World) -> None:
    """Percentage and reset over time, without what came along for statistics."""
    shop = Shop(world)
    account = shop.account("sk-main")
    account.warm("9h")
    opened = await open_quota(world, shop, config(world, {"main": {"poll": "10m"}}))
    for step in range(3):
        account.percentage = step * 10
        await world.sleep("10m")
    history = (await opened.slot())["history"]
    assert [point["percentage"] for point in history] == [0, 10, 20]
    assert all(point["nextResetTime"] and "limits" not in point for point in history)


# --- live reload -----------------------------------------------------------------------------------------------------


@virtual
async def test_both_sides_follow_changed_settings_at_once(world: World) -> None:
    """Neither side waits for what it was going to do under the old ones, and nothing is sent for having been saved."""
    shop = Shop(world)
    account = shop.account("sk-main")
    account.warm("3h")
    opened = await open_quota(world, shop, config(world, {"main": {"interval": "20h", "poll": "10h"}}))
    await world.until("01-01 01:00:00")
    await opened.quota.change(config(world, {"main": {"interval": "4h", "poll": "30m"}}))
    await world.sleep("1s")
    slot = await opened.slot()
    assert (slot["nextWake"], slot["interval"], slot["poll"]) == ("2026-01-01T04:00:00.000Z", "4h", "30m")
    assert minutes(account.reads) == [60]
    await world.until("01-01 04:05:00")
    assert [at[:11] for at in account.wakes] == ["01-01 04:00"]


@virtual
async def test_slots_appear_are_switched_off_and_vanish_with_the_settings(world: World) -> None:
    """A new one is read and woken at once; one that is off does nothing; one that is gone is let go."""
    shop = Shop(world)
    opened = await open_quota(world, shop, config(world, {}))
    await opened.quota.change(config(world, {"main": {"interval": "1h"}}))
    await world.sleep("30s")
    assert len(shop.account("sk-main").woken) == 1
    await opened.quota.change(config(world, {"main": {"interval": "1h", "enabled": False}}))
    await world.sleep("12h")
    slot = await opened.slot()
    assert (len(shop.account("sk-main").tried), slot["nextPoll"], slot["nextWake"], slot["status"]) == (
        1,
        None,
        None,
        "off",
    )
    await opened.quota.change(config(world, {"main": {"interval": "1h"}}))
    await world.sleep("30s")
    assert len(shop.account("sk-main").woken) == 2
    await opened.quota.change(config(world, {}))
    with pytest.raises(NotFound):
        await opened.slot()
    await world.sleep("12h")
    assert len(shop.account("sk-main").tried) == 2


@virtual
async def test_a_new_key_begins_anew(world: World) -> None:
    """What was known of the old one does not count, and an answer about it that is under way is not taken."""
    shop = Shop(world, takes=5_000)
    shop.account("sk-old").mood = "refused"
    shop.account("sk-new").warm("4h")
    opened = await open_quota(world, shop, config(world, {"main": {"interval": "1h", "apiKey": "sk-old"}}))
    await world.sleep("3s")
    await opened.quota.change(config(world, {"main": {"interval": "1h", "apiKey": "sk-new"}}))
    await world.sleep("3s")  # the old key was answered, the new one not yet
    slot = await opened.slot()
    assert (slot["quotaErrors"], slot["lastError"], len(shop.account("sk-old").reads)) == (0, None, 1)
    await world.sleep("1m")
    slot = await opened.slot()
    assert (slot["warm"], slot["quotaErrors"], slot["lastError"]) == (True, 0, None)


@virtual
async def test_a_wake_that_waits_is_given_up_when_its_slot_is_switched_off(world: World) -> None:
    """Its row says so, and that the wake was sent: nobody will see whether it had an effect."""
    shop = Shop(world)
    shop.account("sk-main").mood = "never"
    opened = await open_quota(world, shop, config(world, {"main": {"interval": "1h"}}))
    await world.sleep("2m")
    await opened.quota.change(config(world, {"main": {"interval": "1h", "enabled": False}}))
    assert await opened.rows() == ["01-01 00:00:00.100 unconfirmed (disabled)"]
    assert (await opened.slot())["wakePending"] is False
    await world.sleep("1h")
    assert len(shop.account("sk-main").tried) == 1


# --- races on shared state -------------------------------------------------------------------------------------------


@virtual
async def test_both_sides_and_commands_at_once_lose_nothing(world: World) -> None:
    """Polls, wakes, resumes and reloads in the same moments: every change is made on the row as it is then."""
    shop = Shop(world, takes=50)
    account = shop.account("sk-main")
    account.window = 10 * MINUTE
    settings: dict[str, dict[str, Any]] = {"main": {"interval": "1m", "poll": "1m"}}
    opened = await open_quota(world, shop, config(world, settings))

    async def disturb(step: int) -> None:
        for n in range(40):
            await world.clock.sleep(7_000 * step + n)
            try:
                match (n + step) % 4:
                    case 0:
                        await opened.app.slots.poll("main")
                    case 1:
                        await opened.app.slots.wake("main")
                    case 2:
                        await opened.app.slots.resume("main")
                    case _:
                        settings["main"]["poll"] = f"{1 + n % 3}m"
                        await opened.quota.change(config(world, settings))
            except Conflict:
                pass  # a wake is under way

    await asyncio.gather(*(disturb(step) for step in range(1, 5)))
    await world.sleep("4m")
    slot = await opened.slot()
    assert (slot["wakePending"], slot["wakeErrors"], slot["quotaErrors"], slot["warm"]) == (False, 0, 0, True)
    rows = await opened.app.runs("slot:main", limit=1000)
    assert not [row for row in rows if row.outcome in ("running", "waiting", "unknown", "failed")]
    sent = [row for row in rows if row.outcome == "succeeded"]
    assert len(sent) == len(account.tried) == len(set(account.keys))


# --- health ----------------------------------------------------------------------------------------------------------


@virtual
async def test_what_is_stuck_is_noticed_and_started_again(world: World) -> None:
    """Alarms that vanished and a run that nobody closed: within five minutes the slot goes on."""
    shop = Shop(world)
    account = shop.account("sk-main")
    account.warm("30m")
    opened = await open_quota(world, shop, config(world, {"main": {"interval": "40m", "poll": "10m"}}))
    await world.sleep("1m")
    world.tamper("DELETE FROM alarms WHERE kind LIKE 'slot-%'")
    world.tamper("UPDATE slots SET wake_run_id = 4711")
    reads = len(account.reads)
    await world.until("01-01 00:41:00")
    assert len(account.reads) > reads
    assert len(account.woken) == 1
    assert (await opened.slot())["warm"]


@virtual
async def test_troubles_name_each_cause_and_its_cure(world: World) -> None:
    """What `doctor` says of slots: the common issues."""
    shop = Shop(world)
    slots = {
        "cold": {"afterReset": "1m"},
        "key": {"interval": "1h"},
        "sends": {"interval": "1h"},
        "fine": {"interval": "1h"},
    }
    shop.account("sk-cold").mood = "never"
    shop.account("sk-key").mood = "refused"
    shop.account("sk-sends").wake_mood = "wrong"
    opened = await open_quota(world, shop, config(world, slots, slots_max=4))
    await world.sleep("30m")
    troubles = {slot["name"]: slot for slot in await opened.slots() if slot["statusReason"] is not None}
    assert set(troubles) == {"cold", "key", "sends"}
    assert "no longer woken" in troubles["sends"]["statusReason"]
    assert "wakeful slots resume sends" in troubles["sends"]["cure"]
    assert "cannot be read" in troubles["key"]["statusReason"]
    assert "refused" in troubles["key"]["statusReason"]


# --- written over REST -----------------------------------------------------------------------------------------------


@virtual
async def test_a_slot_can_be_written_changed_and_removed(world: World) -> None:
    """It lives in the store, survives a restart, and its key is never shown."""
    shop = Shop(world)
    given = config(world, {"main": {}})
    opened = await open_quota(world, shop, given)
    assert (await opened.app.slots.put("mine", {"apiKey": "sk-mine", "interval": "1h"})).is_created
    await world.sleep("30s")
    assert len(shop.account("sk-mine").woken) == 1
    slot = await opened.slot("mine")
    assert (slot["source"], slot["apiKey"], slot["interval"]) == ("store", "••••", "1h")
    assert not (await opened.app.slots.put("mine", {"apiKey": "••••", "interval": "2h"})).is_created
    await opened.app.slots.patch("mine", {"poll": "5m", "interval": None, "times": ["09:00"], "apiKey": "••••"})
    slot = await opened.slot("mine")
    assert (slot["poll"], slot.get("interval"), slot["times"], slot["version"]) == ("5m", None, ["09:00"], 3)
    await opened.app.stop()
    opened = await open_quota(world, shop, given)
    await world.sleep("30s")
    slot = await opened.slot("mine")
    assert (slot["warm"], slot["lastError"], slot["poll"]) == (True, None, "5m")
    assert "sk-mine" not in str(await opened.slots())
    await opened.app.slots.remove("mine")
    with pytest.raises(NotFound):
        await opened.slot("mine")


@virtual
async def test_a_patch_merges_an_environment_and_replaces_a_key(world: World) -> None:
    """RFC 7396, but for a key: half of one reference and half of another would be neither."""
    shop = Shop(world)
    opened = await open_quota(world, shop, config(world, {}))
    await opened.app.slots.put("mine", {"apiKey": {"env": "PATH"}})
    await opened.app.slots.patch("mine", {"apiKey": "sk-plain"})
    program = {"provider": "command", "quotaArgv": ["true"], "env": {"A": "one", "B": "two"}, "enabled": False}
    await opened.app.slots.put("program", program)
    await opened.app.slots.patch("program", {"env": {"A": None, "C": "three"}})
    kept = {name: json.loads(text) for name, text in world.query("SELECT name, definition FROM slots")}
    assert kept["mine"] == {"apiKey": "sk-plain"}
    assert kept["program"]["env"] == {"B": "two", "C": "three"}
    assert (await opened.slot("program"))["env"] == {"B": "••••", "C": "••••"}


@virtual
async def test_what_the_settings_define_is_read_only(world: World) -> None:
    """409 names the file."""
    opened = await open_quota(world, Shop(world), config(world, {"main": {}}))
    for attempt in (
        opened.app.slots.put("main", {"apiKey": "x"}),
        opened.app.slots.patch("main", {"poll": "5m"}),
        opened.app.slots.remove("main"),
    ):
        with pytest.raises(Conflict, match=r"defined in wakeful\.toml"):
            await attempt


@pytest.mark.parametrize(
    ("data", "field", "words"),
    [
        ({}, "apiKey", "is missing"),
        ({"apiKey": "sk-secret", "interval": "30s"}, "interval", "1m"),
        ({"apiKey": "sk-secret", "interval": "25h"}, "interval", "24h"),
        ({"apiKey": "sk-secret", "times": ["9:00"]}, "times", "9:00"),
        ({"apiKey": "sk-secret", "times": ["01:00", "02:00", "03:00", "04:00", "05:00", "06:00"]}, "times", "5"),
        ({"apiKey": "sk-secret", "poll": "48h"}, "poll", "24h"),
        ({"apiKey": "sk-secret", "provider": "gml"}, "provider", "glm"),
        ({"apiKey": "sk-secret", "intervall": "1h"}, "intervall", "interval"),
        ({"apiKey": "sk-secret", "baseUrl": "http://example.com"}, "baseUrl", "unencrypted"),
        (
            {"provider": "http", "quotaUrl": "https://x.example", "interval": "1h"},
            "wakeUrl",
            "needs it to wake the slot",
        ),
        ({"apiKey": {"env": "NO_SUCH_VARIABLE_HERE"}}, "apiKey", "NO_SUCH_VARIABLE_HERE"),
    ],
)
@virtual
async def test_ranges_are_checked_with_field_and_cure(
    world: World, data: dict[str, Any], field: str, words: str
) -> None:
    """In JSON names; nothing is written, and the key is not quoted."""
    opened = await open_quota(world, Shop(world), config(world, {}))
    with pytest.raises(Invalid) as refused:
        await opened.app.slots.put("mine", data)
    assert field in [error.field.partition("[")[0].partition(".")[0] for error in refused.value.errors], refused.value
    assert words in str(refused.value)
    assert "sk-secret" not in str(refused.value)
    assert (await opened.app.slots.list()).slots == []


@virtual
async def test_there_are_at_most_as_many_slots_as_the_settings_say(world: World) -> None:
    """Both kinds count; the cure is named."""
    opened = await open_quota(world, Shop(world), config(world, {"one": {}, "two": {}}, slots_max=3))
    await opened.app.slots.put("three", {"apiKey": "sk-3"})
    with pytest.raises(Invalid, match=r"slots_max is 3; raise it, or remove one"):
        await opened.app.slots.put("four", {"apiKey": "sk-4"})
    await opened.app.slots.put("three", {"apiKey": "sk-3", "poll": "5m"})


@virtual
async def test_a_stored_slot_that_cannot_be_read_harms_only_itself(world: World) -> None:
    """Its variable is gone: invalid, said so, and the others go on."""
    shop = Shop(world)
    given = config(world, {"main": {"interval": "1h"}})
    opened = await open_quota(world, shop, given)
    await opened.app.slots.put("mine", {"apiKey": "sk-mine"})
    await opened.app.stop()
    world.tamper("""UPDATE slots SET definition = '{"apiKey": {"env": "GONE_FOR_GOOD"}}' WHERE name = 'mine'""")
    opened = await open_quota(world, shop, given)
    await world.sleep("1m")
    slot = await opened.slot("mine")
    assert (slot["status"], slot["enabled"]) == ("invalid", False)
    assert "GONE_FOR_GOOD" in slot["statusReason"]
    assert (await opened.slot())["warm"]
    assert instant("01-01 00:00:00") < world.now


@virtual
async def test_a_node_without_a_slot_leaves_its_chores_to_others(world: World) -> None:
    """Its settings do not have the slot. When they do, or on a node whose settings do, both go on within a minute."""
    shop = Shop(world)
    shop.has_statistics = True
    account = shop.account("sk-main")
    account.warm("600h")
    given = config(world, {"main": {}})
    opened = await open_quota(world, shop, given)
    await world.sleep("1m")
    opened.quota.registry.change(config(world, {}))
    polls, statistics = len(account.reads), account.stats
    await world.sleep("5h")
    assert (len(account.reads), account.stats) == (polls, statistics)
    opened.quota.registry.change(given)
    await world.sleep("2m")
    assert len(account.reads) > polls
    assert account.stats > statistics
