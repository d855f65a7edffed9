"""What others do who share the store, on the live stream of one: once, resumable, honest about what is missing."""

from typing import Any

from features.kit import Bench, Bot, World, virtual
from wakeful import New, every
from wakeful.app.options import Host
from wakeful.core.time.instants import SECOND
from wakeful.observe import following, relay
from wakeful.observe.fan_out import FanOut
from wakeful.observe.stream import RESET, Event, Stream, Subscription
from wakeful.ports.clock import Clock
from wakeful.ports.sink import Sink
from wakeful.ports.store import Store, StoreUnavailable

POLLING = {"poll": SECOND}


class Page(Bench):
    """An app whose live stream is watched, as the daemon's is."""

    def __init__(self, world: World, **settings: Any) -> None:
        self.stream = Stream(world.clock)
        super().__init__(world, host=Host(sink=self._listened, stream=lambda: self.stream), **settings)

    def _listened(self, store: Store, clock: Clock) -> Sink:
        fan_out = FanOut()
        fan_out.listen(self.stream.listen)
        return fan_out


async def opened(world: World, name: str = "page", **settings: Any) -> Page:
    page = Page(world, name=name, is_shared=True, **settings)
    world._benches.append(page)
    page.on_due(Bot(world))
    await page.start()
    return page


async def events(world: World, watching: Subscription) -> list[Event]:
    """What it is told by now."""
    found: list[Event] = []
    while some := await watching.next(world.clock, 1):
        found += some
    return found


def words(found: list[Event]) -> list[str]:
    """Each event in a few words; the clock's own are left out."""
    return [" ".join(filter(None, (one.what, one.data.get("slug")))) for one in found if one.stream != "nodes"]


@virtual
async def test_what_others_do_is_told_once_with_the_same_words(world: World) -> None:
    """A page is watched; another process adds a schedule and runs it. Nothing of our own comes twice."""
    page = await opened(world, tick=False, limits=POLLING)
    other = await world.open(Bot(world), name="other", is_shared=True, limits=POLLING)
    await world.sleep("3s")
    watching = page.stream.subscribe()
    await world.sleep("3s")
    await page.add("mine", every("1h"))
    await other.add("theirs", every("1h"))
    await other.run_now("theirs", wait=True)
    await world.sleep("3s")
    found = await events(world, watching)
    assert sorted(words(found)) == [
        "claimed theirs",
        "created mine",
        "created theirs",
        "settled theirs",
        "waiting theirs",
    ]
    assert [one.id for one in found] == list(range(found[0].id, found[0].id + len(found)))
    settled = next(one for one in found if one.what == "settled")
    assert settled.stream == "runs"
    assert settled.data["outcome"] == "succeeded"


@virtual
async def test_an_idle_process_knows_within_a_second_that_it_is_watched(world: World) -> None:
    """Its poll for what others wrote tells it: the first thing it does is told as it is, without a reset."""
    page = await opened(world, tick=False)
    other = await world.open(Bot(world), name="other", is_shared=True, limits=POLLING)
    await world.sleep("1h")
    await world.sleep("3s")
    watching = page.stream.subscribe()
    await world.sleep("2s")
    await other.add("first", every("1h"))
    await world.sleep("1s")
    assert words(await events(world, watching)) == ["created first"]


@virtual
async def test_what_was_done_before_one_is_known_to_watch_is_a_reset(world: World) -> None:
    """A process that does not look (it never ticks) learns of it by its own write: too late to tell that one."""
    page = await opened(world)
    other = await world.open(Bot(world), name="other", is_shared=True, tick=False)
    await world.sleep("5s")
    await world.sleep("3s")
    watching = page.stream.subscribe(["schedules"])
    await world.sleep("5s")
    await other.add("unseen", every("1h"))
    await world.sleep("2s")
    await other.add("seen", every("1h"))
    await world.sleep("2s")
    assert words(await events(world, watching)) == [RESET, "created seen"]


@virtual
async def test_a_watcher_that_comes_back_finds_what_others_did_meanwhile(world: World) -> None:
    """Within the minute nothing is missing; later it is told that something may be."""
    page = await opened(world, tick=False)
    other = await world.open(Bot(world), name="other", is_shared=True, limits=POLLING)
    await world.sleep("3s")
    watching = page.stream.subscribe()
    await world.sleep("3s")
    watching.close()
    await other.add("away", every("1h"))
    await world.sleep("30s")
    back = page.stream.subscribe(last_id=watching.next_id - 1)
    assert words(await events(world, back)) == ["created away"]
    back.close()
    await world.sleep("5m")
    await other.add("unseen", every("1h"))
    late = page.stream.subscribe(last_id=back.next_id - 1)
    await world.sleep("3s")
    assert RESET in words(await events(world, late))
    fresh = page.stream.subscribe()
    await other.add("seen", every("1h"))
    await world.sleep("3s")
    assert words(await events(world, fresh)) == ["created seen"]


@virtual
async def test_nobody_pays_while_nobody_watches(world: World) -> None:
    """No row of the bus, nothing noted, and an idle process asks nothing."""
    page = await opened(world, tick=False)
    other = await world.open(Bot(world), name="other", is_shared=True)
    await world.sleep("3s")
    watching = page.stream.subscribe()
    await world.sleep("2s")
    watching.close()
    await world.sleep("3m")
    rows = world.query("SELECT count(*) FROM bus")
    await other.add("tick", every("10s"))
    await world.sleep("1m")
    assert world.query("SELECT count(*) FROM bus") == rows
    assert not other._bus.fan_out.is_heard
    await other.remove("tick")
    await world.sleep("5s")
    reads = 0
    inner = other.store.read

    async def counted(operation: Any) -> Any:
        nonlocal reads
        reads += 1
        return await inner(operation)

    other.store.read = counted  # type: ignore[method-assign]
    await world.sleep("10m")
    assert reads == 0


@virtual
async def test_a_process_that_tells_stops_when_nobody_watches_any_more(world: World) -> None:
    """The row that says so runs out, and the next thing it does is not told."""
    page = await opened(world, tick=False)
    other = await world.open(Bot(world), name="other", is_shared=True, limits=POLLING)
    await world.sleep("3s")
    watching = page.stream.subscribe()
    await world.sleep("2s")
    assert other._bus.fan_out.is_heard
    watching.close()
    await world.sleep("5m")
    await other.add("unwatched", every("1h"))
    await world.sleep("2s")
    assert not other._bus.fan_out.is_heard
    assert world.query("SELECT count(*) FROM bus WHERE events LIKE '%unwatched%'") == [(0,)]


@virtual
async def test_a_flood_is_told_as_a_reset(world: World) -> None:
    """More at a time than anybody could read is not told one by one."""
    page = await opened(world, tick=False)
    other = await world.open(Bot(world), name="other", is_shared=True, limits=POLLING)
    await world.sleep("3s")
    watching = page.stream.subscribe()
    await world.sleep("3s")
    for start in range(0, 3 * relay.EVENTS_MAX, 100):
        await other.add_many([New(f"s{n}", every("1h")) for n in range(start, start + 100)])
    await world.sleep("5s")
    found = words(await events(world, watching))
    assert RESET in found
    assert len(found) <= 2 * relay.EVENTS_MAX + 2
    await other.add("after", every("1h"))
    await world.sleep("2s")
    assert words(await events(world, watching)) == ["created after"]


@virtual
async def test_trouble_with_the_store_is_a_reset_afterwards(world: World) -> None:
    """While the teller's disk is full nothing can be told; what it did is not passed over in silence."""
    page = await opened(world, tick=False)
    other = await world.open(Bot(world), name="other", is_shared=True, limits=POLLING)
    await world.sleep("3s")
    watching = page.stream.subscribe()
    await world.sleep("3s")
    await other.add("first", every("1h"))
    await world.settle()
    await other.add("lost", every("1h"))
    other.store.is_down = True
    await world.sleep("3s")
    other.store.is_down = False
    await world.sleep("3s")
    assert words(await events(world, watching)) == ["created first", RESET]


@virtual
async def test_a_gap_in_the_numbers_is_a_reset(world: World) -> None:
    """What was told is no longer kept: the reader was held up for longer than rows live."""
    page = await opened(world, tick=False)
    other = await world.open(Bot(world), name="other", is_shared=True, limits=POLLING)
    await world.sleep("3s")
    watching = page.stream.subscribe()
    await world.sleep("3s")
    page.store.read = _unavailable  # type: ignore[method-assign]
    await other.add("gone", every("1h"))
    await world.sleep("2s")
    world.tamper("DELETE FROM bus")
    await other.add("kept", every("1h"))
    await world.sleep("2s")
    del page.store.read
    await world.sleep("2s")
    assert words(await events(world, watching)) == [RESET, "created kept"]


@virtual
async def test_a_node_that_dies_is_a_reset(world: World) -> None:
    """It may have committed something and died before telling of it; whoever takes its lease tells."""
    page = await opened(world, limits={**POLLING, "lease": 30 * SECOND, "renew_every": 10 * SECOND})
    other = await world.open(
        Bot(world), name="other", is_shared=True, limits={**POLLING, "lease": 30 * SECOND, "renew_every": 10 * SECOND}
    )
    await world.sleep("3s")
    watching = page.stream.subscribe(["runs"])
    await world.sleep("3s")
    await other.kill()
    await world.sleep("1m")
    assert words(await events(world, watching)) == [RESET]


@virtual
async def test_a_process_that_stops_tells_the_last_of_it(world: World) -> None:
    """What it did right before is told before it goes."""
    page = await opened(world, tick=False)
    other = await world.open(Bot(world), name="other", is_shared=True, limits=POLLING)
    await world.sleep("3s")
    watching = page.stream.subscribe(["schedules"])
    await world.sleep("3s")
    await other.add("last", every("1h"))
    await other.add("very-last", every("1h"))
    await other.stop()
    await world.sleep("1s")
    assert [word for word in words(await events(world, watching)) if word != RESET] == [
        "created last",
        "created very-last",
    ]


@virtual
async def test_rows_do_not_pile_up(world: World) -> None:
    """Ten minutes of telling leaves what was told in the last minute or so."""
    page = await opened(world, tick=False)
    other = await world.open(Bot(world), name="other", is_shared=True, limits=POLLING)
    await world.sleep("3s")
    watching = page.stream.subscribe()
    await world.sleep("3s")
    await other.add("tick", every("10s"))
    for _ in range(10):
        await world.sleep("1m")
        await events(world, watching)
    ((kept,),) = world.query("SELECT count(*) FROM bus")
    assert 0 < kept < 6 * 2 * 2
    assert following.WATCH_FOR > following.RENEW_EVERY


async def _unavailable(_: Any) -> Any:
    raise StoreUnavailable("the disk is away")
