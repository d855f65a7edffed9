"""No sentence that reaches people has a missing value in it: alerts, findings, `why`, Today."""

from typing import Any

from features.kit import World, virtual
from features.quota_kit import Opened, Shop, config, open_quota
from wakeful.core.time.instants import HOUR


async def said(world: World, opened: Opened) -> list[str]:
    """Everything that people are told of the slot."""
    slot = await opened.slot()
    texts = [text for (text,) in world.query("SELECT text FROM incidents UNION ALL SELECT text FROM deliveries")]
    told: Any = await opened.app.why("slot:main")
    past = [await opened.app.why("slot:main", at=row.planned_at) for row in await opened.app.runs("slot:main")]
    return [*texts, told.sentence, *(one.sentence for one in past), slot["statusReason"] or "", slot["cure"] or ""]


@virtual
async def test_a_wake_that_nobody_can_look_for_says_what_cannot_be_read(world: World) -> None:
    """The quota cannot be read after the wake and its forced retry: the row and the alert say why it is unconfirmed."""
    shop = Shop(world)
    account = shop.account("sk-main")
    account.mood, account.wake_mood = "down", "never"
    opened = await open_quota(world, shop, config(world, {"main": {"interval": "4h"}}, errors_max=1000))
    await world.until("01-01 00:40:00")
    (row,) = await opened.app.runs("slot:main")
    assert row.outcome == "unconfirmed"
    assert row.error == "a wake was sent, and the quota cannot be read: HTTP 500: out of order"
    await world.sleep(3 * HOUR)
    sentences = await said(world, opened)
    assert any("the quota cannot be read: HTTP 500" in sentence for sentence in sentences)
    assert not [sentence for sentence in sentences if "None" in sentence]


@virtual
async def test_a_disabled_slot_that_can_be_read_again_says_so(world: World) -> None:
    """A person polls it: the last error is gone, and the slot stays disabled until `resume`."""
    shop = Shop(world)
    account = shop.account("sk-main")
    account.mood = "wrong"
    opened = await open_quota(world, shop, config(world, {"main": {"poll": "1m", "interval": "24h"}}, errors_max=2))
    await world.sleep("30m")
    account.mood = "normal"
    await opened.app.slots.poll("main")
    await world.sleep("1m")
    slot = await opened.slot()
    assert slot["disabled"] is True
    assert slot["statusReason"] == "slot main was disabled after errors, and its quota can be read again"
    assert not [sentence for sentence in await said(world, opened) if "None" in sentence]
