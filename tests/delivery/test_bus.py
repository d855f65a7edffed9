"""The bus: whoever subscribes hears of what was committed, in order, and harms nobody."""

from typing import Any

from delivery.kit import Unsent, reachable
from features.kit import Bot, World, virtual
from patience import PATIENCE
from wakeful import Wakeful, every
from wakeful.observe.stream import Event


@virtual
async def test_a_program_hears_every_stream_or_one(world: World) -> None:
    """Each stream numbers its own events from one on, without a gap."""
    all_of_them: list[Event] = []
    deliveries: list[Event] = []
    bench = world.bench()
    stop = bench.on(all_of_them.append)
    bench.on_stream("deliveries", deliveries.append)
    await bench.start()
    await bench.add("tick", every("1h"), call=Bot(world))
    await bench.people.send("hello")
    await world.sleep("2h30m")
    assert [event.what for event in deliveries] == ["queued", "delivered"]
    assert {event.stream for event in all_of_them} >= {"runs", "schedules", "deliveries"}
    for stream in {event.stream for event in all_of_them}:
        numbers = [event.seq for event in all_of_them if event.stream == stream]
        assert numbers == list(range(1, len(numbers) + 1))
    assert [event.id for event in all_of_them] == sorted({event.id for event in all_of_them})
    heard = len(all_of_them)
    stop()
    await world.sleep("2h")
    assert len(all_of_them) == heard


@virtual
async def test_one_may_subscribe_while_it_runs(world: World) -> None:
    """And hears of what comes from then on."""
    app, _ = await reachable(world, "phone")
    await app.people.send("before")
    await world.settle()
    heard: list[Event] = []
    app.on_stream("deliveries", heard.append)
    await app.people.send("after")
    await world.settle()
    assert [event.what for event in heard] == ["queued", "delivered"]


@virtual
async def test_a_broken_subscriber_harms_nobody(world: World) -> None:
    """Neither the others nor what is done."""
    heard: list[Event] = []
    bench = world.bench()

    def broken(event: Event) -> None:
        raise RuntimeError("I am broken")

    bench.on(broken)
    bench.on(heard.append)
    bot = Bot(world)
    await bench.start()
    await bench.add("tick", every("1h"), call=bot)
    await world.sleep("3h")
    assert len(bot.fires) == 3
    assert [event.what for event in heard if event.stream == "runs"].count("settled") == 3


@virtual
async def test_every_step_of_a_delivery_is_told_and_its_text_is_not(world: World) -> None:
    """What it says is its recipient's business."""
    app, people = await reachable(world, "phone", usual=Unsent("it is down"))
    heard: list[Event] = []
    app.on_stream("deliveries", heard.append)
    app.on_stream("incidents", heard.append)
    made = await app.people.send("my secret")
    await world.sleep("1h")
    people["phone"].usual = None
    await app.people.retry(made.id)
    await world.settle()
    assert [event.what for event in heard if event.data.get("delivery") == made.number] == [
        "queued",
        *["retrying"] * 5,
        "dead",
        "requeued",
        "delivered",
    ]
    assert [event.what for event in heard if event.stream == "incidents"] == ["opened", "closed"]
    assert "my secret" not in str(heard)


async def test_the_library_alone_has_it_too(tmp_path: Any) -> None:
    """A real store, a real clock, nothing else."""
    import asyncio

    heard: list[Event] = []
    got = asyncio.Event()

    async def deliver(text: str) -> None:
        got.set()

    app = Wakeful(tmp_path / "wakeful.db")
    app.on(heard.append)
    unregister = app.register_channel("here", None, deliver)
    async with app:
        await app.people.send("hello")
        async with asyncio.timeout(PATIENCE):
            await got.wait()
            while "delivered" not in [event.what for event in heard]:
                await asyncio.sleep(0.01)
    unregister()
    assert [event.what for event in heard if event.stream == "deliveries"] == ["queued", "delivered"]
