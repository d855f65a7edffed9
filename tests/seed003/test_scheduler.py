"""The scheduler of seed 003: what its turns cost, and what no reply of theirs may do. See README.md for the rest."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from features.kit import World, short, virtual
from features.voice import OK, Voice, beating
from wakeful import every, manual
from wakeful.core.heartbeat.acknowledgement import stripped
from wakeful.core.heartbeat.heartbeat import BeatRules
from wakeful.core.run.results import Done, Failed
from wakeful.core.time.instants import MINUTE, parse_instant
from wakeful.features.heartbeat.rules import HeartbeatTerms

QUIET = HeartbeatTerms(enabled=False)
A_FEW = replace(QUIET, beats=BeatRules(turns_per_hour_max=4))


@virtual
async def test_each_time_the_budget_trips_people_are_told_and_told_when_it_is_over(world: World) -> None:
    """Two loops hours apart are two incidents: two alerts, and a note in between."""
    said: list[Any] = []
    app = await beating(world, Voice(world), A_FEW, said=said)
    for _ in range(2):
        for _ in range(6):
            await app.request_wake("manual")
            await world.sleep("1s")
        await world.sleep("3h")
        await app.request_wake("manual")  # a look at how it stands
        await world.sleep("1s")
    told = [one.text.split(";")[0] for one in said]
    assert [("had 4 turns within an hour" in text, "recovered after" in text) for text in told] == [
        (True, False),
        (True, True),
        (True, False),
        (True, True),
    ]


@virtual
async def test_a_tripped_budget_is_a_finding_of_the_doctor(world: World) -> None:
    """With since when, until when, and what to look at; and gone when it is over."""
    app = await beating(world, Voice(world), A_FEW)

    async def found() -> Any:
        return next(one for one in (await app.health()).findings if one.name == "heartbeat")

    assert (await found()).level == "ok"
    for _ in range(6):
        await app.request_wake("manual")
        await world.sleep("1s")
    seen = await found()
    assert seen.level == "warn"
    assert "used up its 4 turns of an hour at 2026-01-01T00:00:0" in seen.sentence
    assert "waits until 2026-01-01T01:00:00.250" in seen.sentence
    assert seen.cure == "see who wakes it: wakeful runs heartbeat"
    await world.sleep("3h")
    await app.request_wake("manual")
    await world.sleep("1s")
    assert (await found()).level == "ok"


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


@virtual
async def test_the_token_reaches_nobody_in_a_text_sent_by_hand_nor_in_an_alert(world: World) -> None:
    """An agent has tools to send texts with, too, and errors to say it in."""
    said: list[Any] = []
    terms = replace(QUIET, ack=replace(QUIET.ack, token="[ok]"))
    app = await beating(world, Voice(world, Failed("[ok] no")), terms, said=said)
    await app.deliver("[o[ok]k] [ok]done")
    await world.sleep("1s")
    assert [one.text for one in said] == ["done"]
    await app.message("phone", "ann", "hello?")
    await world.sleep("1m")
    assert "Your message could not be answered:  no" in [one.text for one in said]
    assert len(said) == 3  # and the alert
    assert all("[ok]" not in one.text for one in said)


@given(st.text(alphabet="[ok] \n", max_size=60))
def test_no_text_hides_a_token_in_its_halves(text: str) -> None:
    """And a deep nest of them costs no more than its length."""
    assert "[ok]" not in stripped(text, "[ok]")
    assert "[ ok ]" not in stripped(text.replace("[ok]", "[ ok ]"), "[ ok ]")


def test_a_nest_of_tokens_is_no_trap() -> None:
    """A reply of megabytes of halves: two passes, not one for each."""
    assert "[]" not in stripped("[" * 1_000_000 + "]" * 1_000_000, "[]")


@virtual
async def test_the_beats_to_come_are_listed_among_what_is_to_come(world: World) -> None:
    """In order with the schedules, inside the active hours; cut where the list is."""
    app = await beating(world, Voice(world), HeartbeatTerms(enabled=True, every=30 * MINUTE))
    await app.add("hourly", every("1h"), event="look")
    until = parse_instant("2026-01-01T02:10:00Z", "until")
    ahead = await app.upcoming(until, limit=10)
    assert [(one.slug, short(one.planned_at)) for one in ahead.instants] == [
        ("heartbeat", "01-01 00:30:00"),
        ("hourly", "01-01 01:00:00"),
        ("heartbeat", "01-01 01:00:00"),
        ("heartbeat", "01-01 01:30:00"),
        ("hourly", "01-01 02:00:00"),
        ("heartbeat", "01-01 02:00:00"),
    ]
    assert not ahead.is_cut
    cut = await app.upcoming(until, limit=3)
    assert cut.instants == ahead.instants[:3]
    assert (cut.is_cut, cut.until) == (True, ahead.instants[3].due_at - 1)
    await world.sleep("35m")
    assert (await app.upcoming(until, limit=1)).instants[0].slug == "hourly"
