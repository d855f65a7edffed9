"""The ack token of the heartbeat: no text that goes to a person contains it."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delivery.kit import reachable
from features.kit import Bot, World, virtual
from features.voice import OK, Voice, beating
from wakeful import every, manual
from wakeful.core.heartbeat.acknowledgement import stripped
from wakeful.core.run.results import Done, Failed
from wakeful.features.heartbeat.rules import HeartbeatTerms

QUIET = HeartbeatTerms(enabled=False)


@pytest.mark.promise
@virtual
async def test_a_reply_that_is_only_the_token_is_suppressed_and_says_so(world: World) -> None:
    """34, 39, OC#111851: silence that the agent chose is no delivery that was lost, and nobody sees the token."""
    app, people = await reachable(world, "phone")
    bot = Bot(world, Done(reply=f" {OK}\n"))
    await app.add("check", every("1h"), call=bot, deliver={"channel": "phone"})
    await world.until("01-01 01:30:00")
    bot.usual = Done(reply=f"{OK} take your pills")
    await world.until("01-01 02:30:00")
    assert people["phone"].got == ["take your pills"]
    told, quiet = await app.runs("check")
    assert quiet.to_json()["delivery"] == {"status": "suppressed", "reason": "the reply was only the ack token"}
    assert quiet.reply == f" {OK}\n"
    assert told.delivery is not None
    assert told.delivery.status == "delivered"


@pytest.mark.promise
@pytest.mark.parametrize(
    "reply",
    [
        OK,
        f"{OK} all is quiet",
        f"all is {OK} quiet",
        "HEART\x07BEAT_OK, all is quiet",  # what is removed from a text may have parted the token
        "\u202eHEARTBEAT\u202c_OK",
    ],
)
@virtual
async def test_the_token_reaches_nobody_in_the_reply_of_a_schedule(world: World, reply: str) -> None:
    """Not only the heartbeat's own turns: whatever goes to a person goes without it."""
    said: list[Any] = []
    voice = Voice(world, lambda _: Done(reply=reply))
    app = await beating(world, voice, QUIET, said=said)
    stream: list[Any] = []
    app.on_stream("deliveries", stream.append)
    await app.add("report", manual(), prompt="anything new?", deliver={"channel": "phone"})
    run = await app.run_now("report", wait=True)
    await world.sleep("1s")
    assert run.outcome == "succeeded"
    assert all(OK not in one.text for one in said)
    left = "quiet" in reply
    assert len(said) == left
    assert [event.what for event in stream] == (["queued", "delivered"] if left else ["suppressed"])


@pytest.mark.promise
@virtual
async def test_the_token_reaches_nobody_in_a_text_sent_by_hand_nor_in_an_alert(world: World) -> None:
    """An agent has tools to send texts with, too, and errors to say it in."""
    said: list[Any] = []
    terms = replace(QUIET, ack=replace(QUIET.ack, token="[ok]"))
    app = await beating(world, Voice(world, Failed("[ok] no")), terms, said=said)
    await app.people.send("[o[ok]k] [ok]done")
    await world.sleep("1s")
    assert [one.text for one in said] == ["done"]
    await app.people.receive("phone", "ann", "hello?")
    await world.sleep("1m")
    assert "Your message could not be answered:  no" in [one.text for one in said]
    assert len(said) == 3  # and the alert
    assert all("[ok]" not in one.text for one in said)


@pytest.mark.promise
@given(st.text(alphabet="[ok] \n", max_size=60))
def test_no_text_hides_a_token_in_its_halves(text: str) -> None:
    """And a deep nest of them costs no more than its length."""
    assert "[ok]" not in stripped(text, "[ok]")
    assert "[ ok ]" not in stripped(text.replace("[ok]", "[ ok ]"), "[ ok ]")


@pytest.mark.promise
def test_a_nest_of_tokens_is_no_trap() -> None:
    """A reply of megabytes of halves: two passes, not one for each."""
    assert "[]" not in stripped("[" * 1_000_000 + "]" * 1_000_000, "[]")
