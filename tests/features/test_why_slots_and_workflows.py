"""`why slot:NAME` and `why workflow:ID`: one sentence of cause for past, present and future."""

import pytest

from features.kit import Bench, World, virtual
from features.quota_kit import Shop, config, open_quota
from wakeful import Context, NotFound, Prepare
from wakeful.core.time.instants import MINUTE
from workflows.kit import Inbox, decline, mail


def _reserves_what_is_not_there(ctx: Context) -> Prepare:
    return Prepare() if ctx.dry_run else Prepare({"mail": ["not there"]})


async def told(app: Bench, slug: str, at: str | None = None) -> str:
    return (await app.why(slug, at=None if at is None else f"2026-01-01T{at}Z")).sentence


# --- slots -----------------------------------------------------------------------------------------------------------


@virtual
async def test_a_slot_that_works(world: World) -> None:
    """How it stands and what is next; what a wake did; which coming wake is sent and which is not."""
    shop = Shop(world)
    shop.account("sk-main").warm("30m")
    opened = await open_quota(world, shop, config(world, {"main": {"times": ["01:00", "02:00", "07:00"]}}))
    app = opened.app
    await world.until("01-01 00:10:00")
    assert await told(app, "slot:main") == (
        "Slot main is warm: its window is open until 2026-01-01T00:30:00.000Z; "
        "its next wake is at 2026-01-01T01:00:00.000Z (times)."
    )
    assert await told(app, "slot:main", "00:05:00") == (
        "The ledger has no entry for slot main at or before 2026-01-01T00:05:00.000Z."
    )
    assert await told(app, "slot:main", "01:00:00") == "Slot main will be woken at 2026-01-01T01:00:00.000Z (times)."
    await world.until("01-01 01:30:00")
    past = await told(app, "slot:main", "01:10:00")
    assert past.startswith("The wake of slot main planned for 2026-01-01T01:00:00.000Z was sent at 2026-01-01T01:00:00")
    assert "confirmed at 2026-01-01T01:00:00" in past
    warm = await told(app, "slot:main", "02:00:00")
    assert "02:00:00.000Z will be skipped: its window is open until 2026-01-01T06:00:00" in warm
    assert (await told(app, "slot:main", "04:00:00")).startswith(
        "Nothing is planned for 2026-01-01T04:00:00.000Z: its next wake is at 2026-01-01T07:00:00.000Z"
    )
    await world.until("01-01 02:30:00")
    assert await told(app, "slot:main", "02:10:00") == (
        "The wake of slot main planned for 2026-01-01T02:00:00.000Z was skipped because its window was open."
    )


@virtual
async def test_a_slot_that_cannot_be_reached(world: World) -> None:
    """Why it was not woken, and when it is tried again."""
    shop = Shop(world)
    shop.account("sk-main").warm("30m")
    opened = await open_quota(world, shop, config(world, {"main": {"times": ["01:00"]}}))
    await world.until("01-01 00:50:00")
    shop.is_unreachable = True
    await world.until("01-01 01:10:00")
    now = await told(opened.app, "slot:main")
    assert (
        "planned for 2026-01-01T01:00:00.000Z was tried 4 times (last error: the provider: connection refused)" in now
    )
    assert "it will be sent again at 2026-01-01T01:15:0" in now
    assert await told(opened.app, "slot:main", "01:15:00") == now
    past = await told(opened.app, "slot:main", "01:05:00")
    assert "is waiting until 2026-01-01T01:15:0" in past
    assert "(unreachable: the provider: connection refused)" in past


@virtual
async def test_a_slot_that_is_halted(world: World) -> None:
    """Switched off, disabled by errors, removed, or without modes: it says so, with the cure."""
    shop = Shop(world)
    shop.account("sk-bad").mood = "refused"
    slots = {"off": {"enabled": False, "interval": "1h"}, "bad": {"poll": "1m", "interval": "1h"}, "plain": {}}
    opened = await open_quota(world, shop, config(world, slots, backoff_cap=MINUTE))
    await opened.app.slots.put("gone", {"apiKey": "sk-gone", "interval": "1h"})
    await world.sleep("30m")
    await opened.app.slots.remove("gone")
    app = opened.app
    assert "is disabled in the settings (enabled = false)" in await told(app, "slot:off")
    bad = await told(app, "slot:bad")
    assert "is disabled after 10 errors in a row, the last: the key was refused" in bad
    assert "wakeful slots resume bad" in bad
    assert (await told(app, "slot:bad", "09:00:00")).startswith("No wake will be sent at 2026-01-01T09:00:00.000Z. ")
    assert "it has no wake mode (interval, times or after_reset)" in await told(app, "slot:plain")
    assert await told(app, "slot:gone") == "Slot gone was removed, so it is no longer woken or read."
    assert "The wake of slot gone planned for" in await told(app, "slot:gone", "00:20:00")
    with pytest.raises(NotFound, match="there is no slot 'none'"):
        await told(app, "slot:none")


# --- workflows -------------------------------------------------------------------------------------------------------


@virtual
async def test_a_workflow_that_works(world: World) -> None:
    """What is next, what ran, what will run."""
    inbox = Inbox(world, period="1h", prepare=decline)
    app = await inbox.open()
    await world.sleep("1m")
    assert await told(app, "workflow:inbox") == (
        "Workflow inbox is idle: next is producer poll at 2026-01-01T01:00:00.000Z."
    )
    assert await told(app, "workflow:inbox", "03:00:00") == (
        "Producer poll of workflow inbox will run at 2026-01-01T03:00:00.000Z."
    )
    assert await told(app, "workflow:inbox", "02:30:00") == (
        "Workflow inbox has nothing planned for 2026-01-01T02:30:00.000Z: "
        "next is producer poll at 2026-01-01T03:00:00.000Z."
    )
    await world.until("01-01 01:40:00")
    assert await told(app, "workflow:inbox", "01:30:00") == (
        "Producer poll of workflow inbox planned for 2026-01-01T01:00:00.000Z "
        "ran at 2026-01-01T01:00:00.000Z and succeeded at 2026-01-01T01:00:00.000Z."
    )
    with pytest.raises(NotFound, match="there is no workflow 'none'"):
        await told(app, "workflow:none")


@virtual
async def test_a_workflow_that_is_held_by_a_person_or_an_error(world: World) -> None:
    """It says who holds it, and how it goes on."""
    inbox = Inbox(world, period="1h", found=mail("a"), prepare=_reserves_what_is_not_there)
    app = await inbox.open()
    await world.sleep("10m")
    stopped = await told(app, "workflow:inbox")
    assert stopped.startswith("Workflow inbox has been stopped since 2026-01-01T00:")
    assert "wakeful workflows resume inbox" in stopped
    await app.workflows.pause("inbox")
    assert "Workflow inbox will not run at 2026-01-01T05:00:00.000Z." in await told(app, "workflow:inbox", "05:00:00")
