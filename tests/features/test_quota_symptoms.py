"""Each common problem of a slot has a chapter in docs/troubleshooting.md, and Wakeful says what it quotes."""

from pathlib import Path

import pytest

from features.kit import Bot, World, virtual
from features.quota_kit import Shop, config, open_quota
from wakeful import after_reset, every
from wakeful.core.time.instants import MINUTE

pytestmark = pytest.mark.promise

PAGE = (Path(__file__).parents[2] / "docs" / "troubleshooting.md").read_text()
WORDS = " ".join(PAGE.split())


@pytest.mark.parametrize(
    "symptom", ["AfterReset never fires", "Wake fires twice", "Config changes ignored", "Slot auto-disabled"]
)
def test_every_common_issue_has_a_chapter(symptom: str) -> None:
    """With what `why` or `doctor` says, and a cure."""
    chapter = PAGE.split(f"### {symptom}\n")[1].split("\n##")[0]
    assert "says**" in chapter
    assert "**Cure**" in chapter


@virtual
async def test_after_reset_never_fires(world: World) -> None:
    """Nothing was told yet; the sentence and its cure are on the page."""
    shop = Shop(world)
    shop.account("sk-main").mood = "never"
    opened = await open_quota(
        world, shop, config(world, {"main": {"afterReset": "1m"}}, errors_max=1000), on_due=Bot(world)
    )
    await opened.app.add("digest", after_reset("main"))
    for phrase in ("no reset of quota slot", "is known yet"):
        assert phrase in (await opened.app.why("digest")).sentence
        assert phrase in WORDS


@virtual
async def test_a_slot_without_a_reset_says_so(world: World) -> None:
    """Its first reading found it cold, and nothing is wrong with it."""
    shop = Shop(world)
    shop.account("sk-main").wake_mood = "refused"
    opened = await open_quota(world, shop, config(world, {"main": {"afterReset": "1m"}}, errors_max=1000))
    await world.sleep("1s")
    assert "wake errors" in (await opened.slot())["statusReason"]
    await opened.app.slots.resume("main")
    sentence = (await opened.slot())["statusReason"]
    phrase = "has not reported a nextResetTime yet, so its wake after the reset cannot be planned"
    assert phrase in sentence
    assert phrase in WORDS


@virtual
async def test_wake_fires_twice(world: World) -> None:
    """One run with two attempts: the forced retry."""
    shop = Shop(world)
    shop.account("sk-main").mood = "never"
    opened = await open_quota(world, shop, config(world, {"main": {"interval": "4h"}}, errors_max=1000))
    await world.sleep("10m")
    assert "a wake was sent but had no effect: nextResetTime is missing" in (await opened.slot())["statusReason"]
    assert "a wake was sent but had no effect: nextResetTime is missing" in WORDS
    await world.sleep("20m")
    (run,) = await opened.app.runs("slot:main")
    assert (run.attempt, run.outcome) == (2, "unconfirmed")
    assert [attempt.outcome for attempt in run.attempts] == ["sent", "unconfirmed"]


@virtual
async def test_slot_auto_disabled(world: World) -> None:
    """Both kinds, each with its last error."""
    shop = Shop(world)
    shop.account("sk-main").mood = "refused"
    shop.account("sk-other").wake_mood = "wrong"
    slots = {"main": {"poll": "1m"}, "other": {"interval": "1h"}}
    opened = await open_quota(world, shop, config(world, slots, backoff_cap=MINUTE))
    await world.sleep("30m")
    said = (await opened.slot())["statusReason"]
    assert "is disabled after 10 errors in a row, the last: the key was refused" in said
    assert "is no longer woken after 10 wake errors: " in (await opened.slot("other"))["statusReason"]
    for phrase in ("is disabled after 10 errors in a row, the last: ", "is no longer woken after"):
        assert phrase in WORDS


@virtual
async def test_a_schedule_waits_for_quota(world: World) -> None:
    """`why` names the slot."""
    shop = Shop(world)
    shop.account("sk-main").warm("5h")
    shop.account("sk-main").percentage = 100
    opened = await open_quota(world, shop, config(world, {"main": {}}), on_due=Bot(world))
    await opened.app.add("job", every("1h"), slot="main")
    await world.until("01-01 01:10:00")
    sentence = (await opened.app.why("job")).sentence
    for phrase in ("because the quota of slot '", "is used up until its reset"):
        assert phrase in sentence
        assert phrase in WORDS
