"""What people say on a channel: a turn of its own, answered to who asked."""

from typing import Any

from delivery.kit import prove_late
from features.kit import Bench, World, virtual
from features.voice import BUSY, NO, OK, Voice, beating
from wakeful.core.heartbeat.conversations import conversation
from wakeful.core.run.effects import TakeMessage
from wakeful.core.run.results import Done, Throttled, Unconfirmed
from wakeful.core.time.instants import HOUR, SECOND
from wakeful.features.heartbeat.rules import HeartbeatTerms

QUIET = HeartbeatTerms(enabled=False)


async def say(app: Bench, channel: str, to: str, text: str) -> None:
    """As a channel does that heard something: the effect is applied in a transaction of its own."""
    parts = app.parts
    assert await parts.store.write(lambda tx: parts.apply(tx, TakeMessage(channel, to, text), parts.clock.read().now))
    parts.engine.ring_bell()


@virtual
async def test_a_message_is_answered_to_its_sender(world: World) -> None:
    """In the conversation's own session, in order, one at a time; the bare words, and no heartbeat."""
    said: list[Any] = []
    voice = Voice(world)
    voice.script = [lambda _: "hello Ann", 3 * SECOND, lambda _: "hello Ben"]
    app = await beating(world, voice, QUIET, said=said)
    await say(app, "phone", "ann", "hi, it is Ann")
    await world.sleep("1s")
    assert voice.heard == ["hi, it is Ann"]
    last = (await app.people.channels()).last
    assert last is not None
    assert (last.channel, last.to) == ("phone", "ann")
    assert [(one.text, one.channel, one.to) for one in said] == [("hello Ann", "phone", "ann")]
    await say(app, "phone", "ann", "still there?")
    await say(app, "phone", "ben", "hi, it is Ben")
    await world.sleep("10s")
    assert voice.heard[1:] == ["still there?", "hi, it is Ben"]
    assert [fire.slug for fire in voice.fires] == ["message:phone:ann", "message:phone:ann", "message:phone:ben"]
    assert (said[-1].text, said[-1].to) == ("hello Ben", "ben")
    verdicts = [run.reason for run in await app.runs("message:phone:ann")]
    assert verdicts == ["ok-ack", "sent"]  # the token alone says nothing to anybody
    sessions = world.query("SELECT session_id FROM cadences WHERE session_id IS NOT NULL ORDER BY 1")
    assert sessions == [("session-message:phone:ann",), ("session-message:phone:ben",)]


@virtual
async def test_a_message_survives_a_crash_and_is_answered(world: World) -> None:
    """It was taken, so it is not lost (L7)."""
    said: list[Any] = []
    voice = Voice(world)
    app = await beating(world, voice, QUIET)
    await say(app, "phone", "ann", "remember the milk")
    await app.kill()
    voice.usual = f"I will. {OK}"
    await beating(world, voice, QUIET, said=said)
    await world.sleep("1s")
    assert [one.text for one in said] == ["I will."]


@virtual
async def test_who_cannot_be_answered_is_told_so(world: World) -> None:
    """After two more tries; silence would be worse."""
    said: list[Any] = []
    voice = Voice(world, NO)
    app = await beating(world, voice, QUIET, said=said)
    await say(app, "phone", "ann", "hello?")
    await world.sleep("1m")
    assert len(voice.heard) == 3
    assert [(one.text, one.to) for one in said if one.text.startswith("Your message")] == [
        ("Your message could not be answered: the model is down", "ann")
    ]


def test_the_name_of_a_conversation_is_plain() -> None:
    """Whatever a channel calls its people: it goes into file names and addresses."""
    assert conversation("phone", "12345") == "message:phone:12345"
    odd = conversation("phone", "../../etc/passwd\n")
    assert odd.startswith("message:phone:~")
    assert "/" not in odd
    assert odd != conversation("phone", "../../etc/passwd")


@virtual
async def test_a_message_to_a_busy_agent_is_answered_soon_or_its_sender_is_told(world: World) -> None:
    """Not asked again in an hour, for a day, as a schedule would: somebody waits for the answer."""
    said: list[Any] = []
    voice = Voice(world)
    voice.script = [BUSY, BUSY, lambda _: "hello Ann"]
    app = await beating(world, voice, QUIET, said=said)
    await say(app, "phone", "ann", "hi")
    await world.sleep("2m")
    assert [one.text for one in said] == ["hello Ann"]
    voice.usual = BUSY
    await say(app, "phone", "ann", "and now?")
    await world.sleep("25m")
    answers = [one.text for one in said[1:] if one.to == "ann"]
    assert answers[0] == "Your message could not be answered: Session busy"
    assert len(voice.heard) == 3 + 5


@virtual
async def test_a_message_that_got_no_reply_is_answered_with_that_once(world: World) -> None:
    """No readable reply, or an empty one: its asker waits. A failed attempt and a restart in between do not repeat it.
    The bare token is silence that the agent chose."""
    said: list[Any] = []
    voice = Voice(world)
    voice.script = [NO, Done(), Done(reply=" "), OK]
    app = await beating(world, voice, QUIET, said=said)
    for words in ("first", "second", "third"):
        await say(app, "phone", "ann", words)
        await world.sleep("1m")
    await app.stop()
    await beating(world, voice, QUIET, said=said)
    await world.sleep("1h")
    assert [(one.text, one.to) for one in said] == [
        ("The agent's turn for your message ended, but no reply could be read.", "ann"),
        ("The agent's reply to your message was empty.", "ann"),
    ]
    runs = world.query("SELECT reason, attempt FROM runs ORDER BY run_id")
    assert runs == [("no-reply", 2), ("ok-empty", 1), ("ok-ack", 1)]


@virtual
async def test_late_proof_of_a_message_brings_its_reply_after_the_word_that_there_was_none(world: World) -> None:
    """The person was told that there is no answer; the answer that arrives after all is not held back."""
    said: list[Any] = []
    voice = Voice(world, Unconfirmed("no sign of an answer"))
    app = await beating(world, voice, QUIET, said=said)
    await say(app, "phone", "ann", "hello?")
    await world.sleep("1m")
    told = "Your message could not be answered: no sign of an answer"
    assert [one.text for one in said].count(told) == 1
    (run,) = await app.runs("message:phone:ann")
    await prove_late(app, run.run_id, "here I am")
    await world.sleep("1m")
    assert [one.text for one in said if one.run_id == run.run_id] == [told, "here I am"]
    (run,) = await app.runs("message:phone:ann")
    assert run.delivery is not None
    assert [(one.purpose, one.status) for one in run.deliveries] == [("note", "delivered"), ("message", "delivered")]
    assert run.delivery.id == run.deliveries[1].id


@virtual
async def test_a_person_whose_agent_is_out_of_quota_is_told_at_once(world: World) -> None:
    """With the time of the reset; nobody is alerted, because that is over by itself."""
    said: list[Any] = []
    limit = Throttled("claude: its usage limit is used up, and resets at 10:00", world.now + HOUR, reason="quota")
    voice = Voice(world, limit)
    app = await beating(world, voice, QUIET, said=said)
    await say(app, "phone", "ann", "hello?")
    await world.sleep("2h")
    assert [(one.text, one.to) for one in said] == [(f"Your message could not be answered: {limit.error}", "ann")]
    assert len(voice.heard) == 1
    assert world.query("SELECT outcome, reason FROM runs") == [("failed", "quota")]
