"""The payload of a message is stored once, however many consumers its topic has, and each gets what is its own."""

from features.kit import World, virtual
from wakeful import Workflow
from workflows.kit import Calls, decline, named, rows, take_all


def texts(world: World) -> list[str]:
    """Every payload that the database has, of messages and shared."""
    found = rows(world, "SELECT payload FROM messages UNION ALL SELECT payload FROM payloads")
    return sorted(row["payload"] for row in found if row["payload"])


def payloads(calls: Calls) -> list[object]:
    """The payloads shown by the last call."""
    return [one.payload for one in calls.contexts[-1].messages["t"]]


@virtual
async def test_three_consumers_share_one_payload_as_long_as_it_is_the_same(world: World) -> None:
    """One has consumed it; publishing again, changed or not, concerns the others. Skipping and replaying change
    nothing, and what is deleted leaves nothing behind."""
    bench, flow = world.bench(), Workflow("w")
    quick, slow, last = Calls(world, take_all), Calls(world, decline), Calls(world, decline)
    for name, calls in {"quick": quick, "slow": slow, "last": last}.items():
        flow.consumer(subscribe=["t"], name=name)(named(calls))
    bench.workflows.add(flow)
    await bench.start()
    await world.settle()
    await flow.publish("t", "m", "first")
    await world.sleep("1s")
    assert [payloads(calls) for calls in (quick, slow, last)] == 3 * [["first"]]
    assert texts(world) == ['"first"']
    assert await flow.publish("t", "m", "first") == "updated"
    await world.sleep("1s")
    assert texts(world) == ['"first"']
    await flow.publish("t", "m", "second")
    await world.sleep("1s")
    assert [payloads(calls) for calls in (slow, last)] == 2 * [["second"]]
    assert texts(world) == ['"first"', '"second"']
    await bench.workflows.skip("w", "t", ["m"], consumer="slow")
    assert (await bench.workflows.replay_skipped("w", "t", ["m"], consumer="slow")).messages == 1
    await world.sleep("1s")
    assert payloads(slow) == ["second"]
    listed = (await bench.workflows.messages("w", "t")).messages
    assert {(one.consumer, one.payload) for one in listed} == {
        ("quick", "first"), ("slow", "second"), ("last", "second"),
    }  # fmt: skip
    slow.usual = last.usual = take_all
    await flow.publish("t", "m", "third")
    await world.sleep("1s")
    assert [payloads(calls) for calls in (slow, last)] == 2 * [["third"]]
    assert texts(world) == ['"first"', '"third"']
    world.tamper("UPDATE workflows SET origin = 'rest'")
    await bench.workflows.remove("w")
    await world.sleep("7h")
    assert texts(world) == []


@virtual
async def test_a_consumer_that_is_added_reads_the_payload_of_those_before(world: World) -> None:
    """What was published before is in the row of the first one, and is shared once it is published again."""
    bench, flow = world.bench(), Workflow("w")
    first = Calls(world, decline)
    flow.consumer(subscribe=["t"], name="first")(named(first))
    bench.workflows.add(flow)
    await bench.start()
    await world.settle()
    await flow.publish("t", "m", "text")
    await bench.stop()
    bench, flow, second = world.bench(), Workflow("w"), Calls(world, take_all)
    flow.consumer(subscribe=["t"], name="first")(named(first))
    flow.consumer(subscribe=["t"], name="second")(named(second))
    bench.workflows.add(flow)
    await bench.start()
    await world.settle()
    await flow.publish("t", "m", "text")
    await world.sleep("1s")
    assert payloads(first) == payloads(second) == ["text"]
    assert texts(world) == ['"text"']
