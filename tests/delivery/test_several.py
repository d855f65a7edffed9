"""One reply for several people: a delivery for each addressee, and none twice."""

from typing import Any

import pytest

from delivery.kit import Person, Refused, Unsent, prove_late, reachable
from delivery.test_routing import said
from features.kit import Bench, World, virtual
from features.voice import NO, Voice
from wakeful import Invalid, every
from wakeful.core.run.results import Done, Unconfirmed
from wakeful.core.schedule.actions import Prompt

TO_BOTH = [{"channel": "phone"}, {"channel": "mail", "to": "boss@example.org"}]


@virtual
async def test_each_addressee_gets_a_delivery_of_its_own(world: World) -> None:
    """One that fails holds up no other, and the run names them all."""
    app, people = await reachable(world, "phone", "mail")
    people["phone"].script = [Unsent("the line is busy")]
    people["mail"].script = [Refused("no such mailbox")]
    run = await said(world, app, Done(reply="done"), deliver=TO_BOTH)
    await world.sleep("1m")
    run = await app.ledger.get(run.run_id)
    phone, mail = run.to_json()["deliveries"]
    assert (phone["channel"], phone["status"], phone["attempts"], phone["purpose"]) == (
        "phone",
        "delivered",
        2,
        "message",
    )
    assert (mail["to"], mail["status"], mail["lastError"]) == ("boss@example.org", "dead", "no such mailbox")
    assert run.to_json()["delivery"] == {name: value for name, value in phone.items() if name != "purpose"}
    assert people["phone"].got[0] == "done"
    assert len({phone["id"], mail["id"]}) == 2
    assert (await app.get("report")).to_json()["deliver"] == TO_BOTH


@virtual
async def test_names_that_lead_to_one_person_are_one_delivery(world: World) -> None:
    """Judged after routing: `last` may be the channel that is named beside it, and a channel has its own recipient."""
    app, people = await reachable(world, "phone", "mail")
    await app.touch("phone", None)
    run = await said(world, app, Done(reply="done"), deliver=[{"channel": "last"}, {"channel": "phone"}])
    assert (people["phone"].got, len(run.deliveries)) == (["done"], 1)
    bot = Person(world)
    app.register_channel("bot", "42", bot)
    await app.touch("bot", "42")
    to = [{"channel": "last"}, {"channel": "bot"}, {"channel": "bot", "to": "43"}]
    run = await said(world, app, Done(reply="again"), slug="other", deliver=to)
    assert bot.got == ["again", "again"]
    assert [one.to for one in run.deliveries] == ["42", "43"]


@virtual
async def test_every_channel_of_a_list_must_be_there(world: World) -> None:
    """Refused with its place in the list."""
    app, _ = await reachable(world, "phone")
    with pytest.raises(Invalid, match=r"deliver\[1\]\.channel: there is no channel 'fone'"):
        await app.add("x", every("1h"), call="os:getpid", deliver=[{"channel": "phone"}, {"channel": "fone"}])


async def asking(world: World, *script: Any) -> tuple[Bench, dict[str, Any]]:
    """An app with two channels whose agent does this."""
    voice = Voice(world)
    voice.script = list(script)
    return await reachable(world, "phone", "mail", actions={Prompt: voice})


@virtual
async def test_a_turn_without_a_readable_reply_says_so_once_to_everyone_who_waits_for_it(world: World) -> None:
    """A failed attempt before it, output in place of a reply, and a restart after it change nothing; the run says the
    same."""
    app, people = await asking(world, NO, Done(output="what the agent printed"), "all is well")
    await app.add("daily", every("1d"), prompt="How is it?", deliver=TO_BOTH, retry={"times": 1, "delay": "10m"})
    await world.sleep("1d30m")
    (run,) = await app.runs("daily")
    words = f"daily: no reply could be read from run {run.run_id}; see: wakeful why daily"
    assert (run.outcome, run.attempt) == ("succeeded", 2)
    assert (people["phone"].got, people["mail"].got) == ([words], [words])
    assert run.to_json()["delivery"] == {"status": "suppressed", "reason": "no reply could be read"}
    assert [(one.channel, one.purpose) for one in run.deliveries] == [("phone", "note"), ("mail", "note")]
    await app.stop()
    again, others = await asking(world, "all is well")
    await world.sleep("1d")
    assert others["phone"].got == others["mail"].got == ["all is well"]
    assert len(await again.runs("daily")) == 2


@virtual
async def test_an_unconfirmed_turn_says_that_no_reply_could_be_read_and_a_late_one_follows(world: World) -> None:
    """Whoever was promised a reply is not left waiting, and gets it if it arrives after all."""
    app, people = await asking(world, Unconfirmed("the session is idle and shows no answer"))
    await app.add("daily", every("1d"), prompt="How is it?", deliver={"channel": "mail"})
    await world.sleep("1d30m")
    (run,) = await app.runs("daily")
    assert run.outcome == "unconfirmed"
    (words,) = people["mail"].got
    assert words.startswith(f"daily: no reply could be read from run {run.run_id}: the session is idle")
    await prove_late(app, run.run_id, "it is well")
    await world.settle()
    assert people["mail"].got[1:] == ["it is well"]
    (run,) = await app.runs("daily")
    assert run.delivery is not None
    assert (run.outcome, run.delivery.status) == ("succeeded", "delivered")
