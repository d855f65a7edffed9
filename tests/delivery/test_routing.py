"""Where things go: the schedule's channel, the last interaction, the first registered, the inbox."""

from typing import Any

import pytest

from delivery.kit import Person, Unsent, reachable, statuses, target_of
from features.kit import Bench, Bot, World, virtual
from nested import top_level
from wakeful import Invalid, every
from wakeful.core.refusals import NotFound
from wakeful.core.run.results import Done, Failed
from wakeful.core.time.instants import HOUR, MINUTE, SECOND
from wakeful.features.delivery import attempts
from wakeful.testing.virtual_clock import VirtualClock


async def said(world: World, app: Bench, reply: Any, slug: str = "report", **options: Any) -> Any:
    """A schedule that ran once and gave this back; its run."""

    async def answer(fire: Any) -> Any:
        return reply

    await app.add(slug, every("1h"), call=top_level(answer), **options)
    run = await app.run_now(slug)
    await world.settle()
    return await app.ledger.get(run.run_id)


@virtual
async def test_without_channels_everything_lies_in_the_inbox(world: World) -> None:
    """It is always there."""
    app = await world.open()
    run = await said(world, app, Done(reply="all is well"), deliver={"channel": "last"})
    (item,), _, unread = await app.people.inbox()
    assert (item.text, item.slug, item.run_id, unread) == ("all is well", "report", run.run_id, 1)
    assert run.delivery.status == "delivered"
    await app.people.mark_read(item.id)
    assert (await app.people.inbox(unread=True)) == ([], None, 0)
    await app.people.remove_item(item.id)
    with pytest.raises(NotFound):
        await app.people.mark_read(item.id)


@virtual
async def test_the_first_registered_channel_is_taken_when_nobody_was_heard_of(world: World) -> None:
    """In the order of registration."""
    app, people = await reachable(world, "b", "a")
    await app.people.send("x")
    await world.settle()
    assert (people["b"].got, people["a"].got) == (["x"], [])


@virtual
async def test_the_last_interaction_counts_and_survives_a_restart(world: World) -> None:
    """Channel and recipient; the newest word, whatever came before."""
    app, _ = await reachable(world, "phone", "mail")
    await app.touch("mail", "me@example.org")
    await app.touch("phone", "7")
    await app.touch("mail", "you@example.org")
    await app.stop()
    app, people = await reachable(world, "phone", "mail")
    await app.people.send("x")
    await world.settle()
    assert people["mail"].letters[0].to == "you@example.org"
    last = (await app.people.channels()).last
    assert last is not None
    assert (last.channel, last.to) == ("mail", "you@example.org")


@virtual
async def test_a_last_interaction_on_a_channel_that_is_gone_gives_way(world: World) -> None:
    """To the one before it, then to the first there is."""
    app, people = await reachable(world, "phone", "mail")
    other = Person(world)
    unregister = app.register_channel("chat", "#ops", other)
    await app.touch("mail")
    await app.touch("chat", "#dev")
    await app.people.send("1")
    await world.settle()
    unregister()
    await app.people.send("2")
    await world.settle()
    assert other.got == ["1"]
    assert other.letters[0].to == "#dev"
    assert people["mail"].got == ["2"]
    with pytest.raises(NotFound, match="there is no channel 'chat'; write last or one of phone, mail, inbox"):
        await app.touch("chat")


@virtual
async def test_a_schedules_channel_overrides(world: World) -> None:
    """With its recipient; its run says what became of it."""
    app, people = await reachable(world, "phone", "mail")
    await app.touch("phone", "7")
    run = await said(world, app, Done(reply="done"), deliver={"channel": "mail", "to": "boss@example.org"})
    assert people["phone"].got == []
    (letter,) = people["mail"].letters
    assert (letter.text, letter.to, letter.slug, letter.run_id) == ("done", "boss@example.org", "report", run.run_id)
    assert run.to_json()["delivery"] == {
        "status": "delivered",
        "id": letter.delivery_id,
        "channel": "mail",
        "to": "boss@example.org",
        "attempts": 1,
        "lastError": None,
        "endedAt": "2026-01-01T00:00:00.000Z",
    }


@virtual
async def test_a_channel_nobody_has_is_refused_with_its_cure_and_accepted_once_it_is_there(world: World) -> None:
    """When the definition is written, not when its reply is lost."""
    app, _ = await reachable(world, "phone")
    with pytest.raises(Invalid, match=r"deliver\.channel: there is no channel 'fone'; write last or one of phone"):
        await app.add("x", every("1h"), call="os:getpid", deliver={"channel": "fone"})
    unregister = app.register_channel("fone", None, Person(world))
    await app.add("x", every("1h"), call="os:getpid", deliver={"channel": "fone"})
    unregister()
    with pytest.raises(Invalid, match=r"deliver\.channel"):
        await app.update("x", deliver={"channel": "fone", "to": "7"})


@virtual
async def test_no_reply_is_not_an_empty_reply(world: World) -> None:
    """Nothing is delivered, and the run says why; one that asked for nothing says nothing (note 34)."""
    app, people = await reachable(world, "phone")
    silent = await said(world, app, Done(), slug="silent", deliver={"channel": "last"})
    empty = await said(world, app, Done(reply=" \n"), slug="empty", deliver={"channel": "last"})
    unasked = await said(world, app, Done(reply="hello"), slug="unasked")
    failed = await said(world, app, Failed("no"), slug="failed", deliver={"channel": "last"})
    assert people["phone"].letters == []
    assert silent.to_json()["delivery"] == {"status": "suppressed", "reason": "there was no reply"}
    assert empty.to_json()["delivery"] == {"status": "suppressed", "reason": "the reply was empty"}
    assert "delivery" not in unasked.to_json()
    assert "delivery" not in failed.to_json()
    assert (silent.outcome, empty.outcome) == ("succeeded", "succeeded")


@virtual
async def test_what_a_target_gave_back_is_its_reply(world: World) -> None:
    """A command's output, say; a person reads it as it is."""
    app, people = await reachable(world, "phone")
    await said(world, app, Done(output="3 files changed"), deliver={"channel": "last"})
    assert people["phone"].got == ["3 files changed"]


@virtual
async def test_a_delivery_never_changes_its_runs_outcome_nor_the_other_way_round(world: World) -> None:
    """The run is green although nothing arrived, and says both; its row of errors stays empty (notes 32, 33)."""
    app, _ = await reachable(world, "phone", usual=RuntimeError("boom"))
    run = await said(world, app, Done(reply="x"), deliver={"channel": "phone"})
    await world.sleep("25m")
    run = await app.ledger.get(run.run_id)
    assert (run.outcome, run.error, run.delivery.status) == ("succeeded", None, "dead")
    assert run.delivery.error == "RuntimeError: boom"
    assert (await app.get("report")).consecutive_errors == 0


@virtual
async def test_the_reply_is_durable_with_the_outcome(world: World) -> None:
    """One transaction: a process killed right after the run has settled still delivers."""
    app, _ = await reachable(world, "phone", usual=3_600_000)
    await said(world, app, Done(reply="x"), deliver={"channel": "phone"})
    await app.kill()
    _, people = await reachable(world, "phone")
    await world.settle()
    assert people["phone"].got == ["x"]


@virtual
async def test_deliveries_for_a_channel_that_vanished_wait_and_are_told_of(world: World) -> None:
    """They go out when it is back; until then their error names the cure."""
    app, people = await reachable(world, "mail")
    unregister = app.register_channel("chat", None, Person(world))
    await app.add("x", every("1h"), call=Bot(world, Done(reply="hello")), deliver={"channel": "chat"})
    unregister()
    await app.run_now("x")
    await world.sleep("10m")
    (row,) = [one for one in (await app.people.deliveries()).deliveries if one.channel == "chat"]
    assert (row.status, row.attempts) == ("pending", 0)
    assert "there is no channel 'chat'; add [channels.chat]" in (row.last_error or "")
    assert [text for text in people["mail"].got if "'chat'" in text] != []
    (view,) = [one for one in (await app.people.channels()).channels if one.name == "chat"]
    assert (view.source, view.pending) == ("missing", 1)
    back = Person(world)
    app.register_channel("chat", None, back)
    await world.sleep("30s")
    assert len(back.got) == 1
    await world.settle()
    assert "recovered after" in people["mail"].got[-1]


@virtual
async def test_one_whose_channel_never_comes_back_is_a_dead_letter(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the age limit, with its text."""
    monkeypatch.setattr(attempts, "MISSING_WAIT", HOUR)
    app, _ = await reachable(world, "mail")
    unregister = app.register_channel("chat", None, Person(world))
    made = await app.people.send("precious", channel="chat")
    unregister()
    await world.sleep("25h")
    seen = await app.people.delivery(made.id)
    assert (seen.status, seen.text) == ("dead", "precious")
    assert "there is no channel 'chat'" in (seen.last_error or "")


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("a\x1b[31mred\x1b[0m\x07", "a[31mred[0m"),
        ("line\r\nbreak\rhere", "line\nbreak\nhere"),
        ("<b>*bold*</b> & [x](y)", "<b>*bold*</b> & [x](y)"),
        ("right\u202etfel\u2066", "righttfel"),
        ("nul\0 and half \ud800", "nul\ufffd and half ?"),
        ("tab\tstays, 👩‍👩‍👧 too", "tab\tstays, 👩‍👩‍👧 too"),
    ],
)
@virtual
async def test_texts_are_inert(world: World, text: str, plain: str) -> None:
    """Control characters are removed, markup is text."""
    app, people = await reachable(world, "phone")
    await app.people.send(text)
    await world.settle()
    assert people["phone"].got == [plain]


@virtual
async def test_a_reply_of_ten_megabytes_is_bounded_with_a_note(world: World) -> None:
    """Its beginning and its end arrive, and how much is missing."""
    app, people = await reachable(world, "phone")
    await said(world, app, Done(reply="begin" + "x" * 10_000_000 + "end"), deliver={"channel": "last"})
    (text,) = people["phone"].got
    assert len(text) < 70_000
    assert text.startswith("begin")
    assert text.endswith("end")
    assert "bytes left out" in text


@virtual
async def test_a_text_that_says_nothing_is_refused(world: World) -> None:
    """And so is a channel nobody has."""
    app, _ = await reachable(world, "phone")
    with pytest.raises(Invalid, match="text: is empty"):
        await app.people.send(" \x07\n")
    with pytest.raises(Invalid, match="channel: there is no channel 'x'"):
        await app.people.send("hello", channel="x")
    for name in ("last", "inbox", "", "x" * 65):
        with pytest.raises(Invalid, match="name"):
            app.register_channel(name, None, Person(world))


@virtual
async def test_channels_are_there_before_anything_rings(world: World) -> None:
    """A schedule that is due at the start, and a delivery left over, both find their channel."""
    app, _ = await reachable(world, "phone", usual=RuntimeError("down"))
    await said(world, app, Done(reply="1"), deliver={"channel": "phone"})
    await world.sleep("1s")
    await app.stop()
    await world.sleep("2h")
    order: list[str] = []

    async def report(fire: Any) -> Any:
        order.append("schedule")
        return Done(reply="2")

    bench = world.bench()
    phone = Person(world, lambda letter: order.append(f"delivery {letter.text}"))
    bench.register_channel("phone", None, phone)
    bench._registry.register(target_of(world, "report"), report)
    await bench.start()
    await world.settle()
    assert sorted(order) == ["delivery 1", "delivery 2", "schedule"]
    assert phone.got == ["1", "2"]


SHARED: dict[str, Any] = {"is_shared": True, "limits": {"poll": 1_000}}


@virtual
async def test_a_channel_that_only_another_node_has_is_left_to_that_node(world: World) -> None:
    """However often a node without it looks, it touches nothing: the other sends as soon as it can."""
    without, others = await reachable(world, "mail", name="without", **SHARED)
    having = world.bench(name="having", **SHARED)
    await having.start()
    unregister = having.register_channel("chat", None, Person(world))
    await having.people.send("letter", channel="chat")
    unregister()
    await world.sleep("90s")
    assert {(row.status, row.attempts, row.last_error) for row in (await without.people.deliveries()).deliveries} == {
        ("pending", 0, None)
    }
    people = Person(world)
    having.register_channel("chat", None, people)
    await world.sleep("2s")
    assert people.got == ["letter"]
    assert others["mail"].got == []


@virtual
async def test_a_node_that_wakes_during_a_send_begins_no_second_one_to_the_same_person(world: World) -> None:
    """Asleep past its claim, it lost the delivery to another node; its own send is still in progress all the same."""
    slept, people = await reachable(world, "chat", name="slept", usual=40 * SECOND, **SHARED)
    await slept.people.send("first", to="7")
    await world.sleep("5s")
    slept.machine.freeze()
    other = world.bench(name="other", clock=VirtualClock(world.loop, wall=world.wall), **SHARED)
    phone = Person(world)
    other.register_channel("chat", None, phone)
    await other.start()
    await world.sleep("5m")
    assert phone.got == ["first"]
    other.machine.freeze()
    slept.clock.suspend(5 * MINUTE)
    slept.machine.thaw()
    await slept.people.send("second", to="7")
    await slept.people.send("to another", to="8")
    await world.sleep("2m")
    other.machine.thaw()
    assert people["chat"].under_way_max == 2  # one to each person
    assert [letter.text for letter in people["chat"].letters] == ["first", "to another", "second"]
    assert people["chat"].got == ["first", "to another", "second"]
    assert statuses(world)[1] == ("second", "delivered", 1)


@virtual
async def test_what_waits_for_another_node_holds_up_nothing_here(world: World) -> None:
    """Deliveries by a channel this node has go out on time, and the clock does not spin meanwhile."""
    without, people = await reachable(world, "mail", name="without", **SHARED)
    having = world.bench(name="having", **SHARED)
    unregister = having.register_channel("chat", None, Person(world))
    await having.start()
    await having.people.send("waits", channel="chat")
    unregister()
    await world.sleep("5s")
    people["mail"].script = [Unsent("later")]
    await without.people.send("goes", channel="mail")
    writes = without.store.writes
    await world.sleep("10s")
    assert people["mail"].got == ["goes"]
    assert without.store.writes - writes < 40


@virtual
async def test_a_channel_that_no_node_has_is_said_to_be_missing(world: World) -> None:
    """After two minutes in which nobody took it, once, with the cure; it goes out when a node has it again."""
    without, people = await reachable(world, "mail", name="without", **SHARED)
    having = world.bench(name="having", **SHARED)
    unregister = having.register_channel("chat", None, Person(world))
    await having.start()
    made = await having.people.send("waits", channel="chat")
    unregister()
    await world.sleep("119s")
    assert (await without.people.delivery(made.id)).last_error is None
    await world.sleep("5s")
    seen = await without.people.delivery(made.id)
    assert "no running node has a channel 'chat'; add [channels.chat]" in (seen.last_error or "")
    await world.sleep("10m")
    assert len([text for text in people["mail"].got if "no running node" in text]) == 1
    back = Person(world)
    having.register_channel("chat", None, back)
    await world.sleep("31s")
    assert back.got[0] == "waits"


@virtual
async def test_a_missing_channel_is_reported_in_the_inbox_if_no_node_has_another(world: World) -> None:
    """Each node leaves the report to the other, which might have a channel, but not for ever."""
    first = world.bench(name="first", **SHARED)
    second = world.bench(name="second", **SHARED)
    unregister = first.register_channel("chat", None, Person(world))
    await first.start()
    await second.start()
    await first.people.send("waits", channel="chat")
    unregister()
    await world.sleep("239s")
    assert [row.text for row in (await first.people.deliveries()).deliveries] == ["waits"]
    await world.sleep("5s")
    alerts = [row for row in (await first.people.deliveries()).deliveries if "no running node" in row.text]
    assert [(row.channel, row.status) for row in alerts] == [("inbox", "delivered")]


@virtual
async def test_the_last_node_says_at_once_that_a_channel_is_missing(world: World) -> None:
    """Nobody else is alive who could have it."""
    having = world.bench(name="having", **SHARED)
    unregister = having.register_channel("chat", None, Person(world))
    await having.start()
    made = await having.people.send("waits", channel="chat")
    unregister()
    await world.sleep("5s")
    assert "no running node has a channel 'chat'" in ((await having.people.delivery(made.id)).last_error or "")
