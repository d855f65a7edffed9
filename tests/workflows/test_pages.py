"""Topics with more messages than one prepare is shown: every message is reached, and nothing spins."""

import pytest

from features.kit import World, virtual
from wakeful import Conflict, Context, NotFound, Prepare, Produced, Publish, Workflow, manual
from workflows.kit import Calls, counts, decline, named, take_all, take_one


def only(*wanted: str, topic: str = "t") -> object:
    """A prepare that can use these messages and no others."""

    def prepare(ctx: Context) -> Prepare:
        usable = [one.id for one in ctx.messages[topic] if one.id in wanted]
        return Prepare({topic: usable} if usable else {})

    return prepare


class Long:
    """A workflow with a producer that publishes many messages at once, and one consumer."""

    def __init__(self, world: World, prepare: object, *, subscribe: tuple[str, ...] = ("t",)) -> None:
        self.world = world
        self.bench = world.bench()
        self.flow: Workflow = self.bench.workflow("long")
        self.found = Calls(world, Produced())
        self.prepare = Calls(world, prepare)
        self.flow.producer(manual(), publishes=list(subscribe), name="fill")(named(self.found))
        self.flow.consumer(subscribe=list(subscribe), name="take")(named(self.prepare))

    async def start(self) -> None:
        await self.bench.start()
        await self.world.settle()

    async def fill(self, count: int, topic: str = "t") -> None:
        """Publish so many at once, `00000` and on."""
        self.found.script = [Produced([Publish(topic, f"{n:05}", n) for n in range(count)])]
        self.prepare.contexts.clear()
        await self.flow.run()
        await self.world.sleep("1s")

    def shown(self, topic: str = "t") -> list[tuple[str, str, int]]:
        """The first, the last and the number of the messages of each prepare."""
        pages = [ctx.messages[topic] for ctx in self.prepare.contexts]
        return [(page[0].id, page[-1].id, len(page)) if page else ("", "", 0) for page in pages]


@virtual
async def test_ten_thousand_messages_of_which_only_the_newest_can_be_used_are_all_reached(world: World) -> None:
    """A hundred pages, and one look at the heads after the reservation."""
    long = Long(world, only("09999"))
    await long.start()
    await long.fill(10_000)
    seen = {one.id for ctx in long.prepare.contexts for one in ctx.messages["t"]}
    assert len(seen) == 10_000
    assert await counts(long.bench, "t", "long") == {"pending": 9_999, "consumed": 1}
    assert long.prepare.count <= 110
    await world.sleep("1d")
    assert long.prepare.count <= 110


@virtual
async def test_the_payment_finds_its_order_beyond_the_first_hundred(world: World) -> None:
    """The heads of the other topic stay shown while the orders are turned page by page."""

    def match(ctx: Context) -> Prepare:
        orders = {one.id for one in ctx.messages["t"]}
        for payment in ctx.messages["payments"]:
            if payment.payload in orders:
                return Prepare({"t": [payment.payload], "payments": [payment.id]})
        return Prepare()

    long = Long(world, match, subscribe=("t", "payments"))
    await long.start()
    await long.fill(101)
    await long.flow.publish("payments", "p", "00100")
    await world.sleep("1s")
    assert await counts(long.bench, "payments", "long") == {"consumed": 1}
    assert await counts(long.bench, "t", "long") == {"pending": 100, "consumed": 1}


@virtual
async def test_each_page_is_shown_once_and_a_publish_shows_them_again(world: World) -> None:
    """Declined pages do not spin, whatever state the consumer writes meanwhile."""
    long = Long(world, decline)
    following = Calls(world, lambda ctx: Produced(state={"n": (ctx.state or {"n": 0})["n"] + 1}))
    long.flow._consumers["take"][1].next(named(following))
    await long.start()
    await long.fill(250)
    pages = [("00000", "00099", 100), ("00100", "00199", 100), ("00200", "00249", 50)]
    assert long.shown() == pages
    await world.sleep("1d")
    assert long.shown() == pages
    await long.flow.publish("t", "more")
    await world.sleep("1d")
    assert long.shown() == [*pages, *pages[:2], ("00200", "more", 51)]


@virtual
async def test_pages_are_turned_in_one_topic_after_the_other(world: World) -> None:
    """While one is turned, the head of the other stays shown."""
    long = Long(world, decline, subscribe=("t", "u"))
    await long.start()
    await long.flow.pause()
    for n in range(150):
        for topic in ("t", "u"):
            await long.flow.publish(topic, f"{n:05}", n)
    await long.flow.resume()
    long.prepare.contexts.clear()
    await world.sleep("1d")
    head, rest = ("00000", "00099", 100), ("00100", "00149", 50)
    assert list(zip(long.shown("t"), long.shown("u"), strict=True)) == [(head, head), (rest, head), (head, rest)]


@virtual
async def test_a_publish_in_the_middle_of_a_lap_goes_on_from_there(world: World) -> None:
    """Else a topic that gets messages all the time would never be shown to its end."""
    long = Long(world, decline)
    await long.start()
    long.prepare.script = [1_000] * 6
    await long.fill(300)
    assert long.prepare.count == 2  # the first page is declined, the second is being looked at
    await long.flow.publish("t", "more")
    await world.sleep("1h")
    starts = [page[0] for page in long.shown()]
    assert starts == ["00000", "00100", "00200", "more", "00000", "00100"]


@virtual
async def test_a_restart_goes_on_with_the_page_that_is_due(world: World) -> None:
    """The page is a stored fact; a start shows the heads as well, like any start with pending messages."""
    long = Long(world, decline)
    await long.start()
    long.prepare.script = [decline, 600_000]
    await long.fill(250)
    assert [page[0] for page in long.shown()] == ["00000", "00100"]
    await long.bench.kill()
    again = Long(world, decline)
    await again.start()
    await world.sleep("1h")
    seen = {one.id for ctx in again.prepare.contexts for one in ctx.messages["t"]}
    assert len(seen) == 250


@virtual
async def test_first_in_first_out_over_many_pages(world: World) -> None:
    """A reservation turns back to the heads: the oldest is always next, and one run follows another."""
    long = Long(world, take_one)
    taken = Calls(world, None)
    long.flow._consumers["take"][1].mutate(named(taken))
    await long.start()
    await long.fill(210)
    assert [ctx.prepared["data"] for ctx in taken.contexts] == list(range(210))
    assert long.prepare.count == 210


@virtual
async def test_a_reservation_in_the_middle_leaves_the_later_pages_to_be_shown(world: World) -> None:
    """Behind it come the heads once more, and then the pages that were not shown yet."""
    long = Long(world, only("00150", "00350"))
    await long.start()
    await long.fill(400)
    assert [page[0] for page in long.shown()] == ["00000", "00100", "00000", "00200", "00300", "00000"]
    assert await counts(long.bench, "t", "long") == {"pending": 398, "consumed": 2}


@virtual
async def test_show_asks_again_with_exactly_these_once(world: World) -> None:
    """What is not pending is left out; a second `show` has no effect."""

    def ask(ctx: Context) -> Prepare:
        if len(ctx.messages["t"]) > 2:
            return Prepare(show={"t": ["00180", "00170", "none"]}, wake_at="2026-01-01T00:10:00Z")
        return Prepare({"t": [one.id for one in ctx.messages["t"]]}, show={"t": ["00001"]})

    long = Long(world, ask)
    await long.start()
    await long.fill(200)
    assert [ctx.messages["t"][0].id for ctx in long.prepare.contexts[:2]] == ["00000", "00170"]
    assert [one.id for one in long.prepare.contexts[1].messages["t"]] == ["00170", "00180"]
    assert await counts(long.bench, "t", "long") == {"pending": 198, "consumed": 2}


@virtual
async def test_prepare_can_skip_messages_it_will_never_use(world: World) -> None:
    """With or without reserving others; they are not shown again."""

    def choose(ctx: Context) -> Prepare:
        bad = [one.id for one in ctx.messages["t"] if one.payload % 2]
        good = [one.id for one in ctx.messages["t"] if not one.payload % 2]
        return Prepare({"t": good[:1]}, skip={"t": bad})

    long = Long(world, choose)
    await long.start()
    await long.fill(6)
    assert await counts(long.bench, "t", "long") == {"consumed": 3, "skipped": 3}
    listed = await long.bench.workflows.messages("long", "t", status="skipped")
    assert [one.id for one in listed.messages] == ["00001", "00003", "00005"]


@virtual
async def test_a_skip_of_what_is_not_pending_is_a_wrong_answer(world: World) -> None:
    """It stops the workflow, and says which message."""
    long = Long(world, lambda ctx: Prepare(skip={"t": ["none"]}) if ctx.messages["t"] else Prepare())
    await long.start()
    await long.flow.publish("t", "a", 1)
    await world.sleep("1s")
    assert "but there is no such message" in (await long.flow.get())["error"]
    assert await counts(long.bench, "t", "long") == {"pending": 1}


@virtual
async def test_a_person_skips_messages(world: World) -> None:
    """All of those named, or none: what was consumed cannot be skipped."""
    long = Long(world, only("00001"))
    await long.start()
    await long.fill(4)
    with pytest.raises(Conflict, match="is consumed; only pending"):
        await long.flow.skip("t", "00000", "00001")
    with pytest.raises(NotFound, match="has no message"):
        await long.flow.skip("t", "00000", "none")
    assert await counts(long.bench, "t", "long") == {"pending": 3, "consumed": 1}
    assert await long.flow.skip("t", "00000", "00002") == 2
    assert await long.flow.skip("t", "00000") == 0
    assert await counts(long.bench, "t", "long") == {"pending": 1, "consumed": 1, "skipped": 2}


@virtual
async def test_a_person_replays_what_was_skipped(world: World) -> None:
    """Only counted unless it is applied; all of those named, or all that are skipped; the consumer runs for them."""
    long = Long(world, decline)
    await long.start()
    await long.fill(4)
    await long.flow.skip("t", "00000", "00001", "00002")
    assert await long.flow.replay("t") == 3
    assert await counts(long.bench, "t", "long") == {"pending": 1, "skipped": 3}
    with pytest.raises(Conflict, match="is pending; only skipped"):
        await long.flow.replay("t", "00000", "00003", apply=True)
    with pytest.raises(NotFound, match="has no message"):
        await long.flow.replay("t", "00000", "none", apply=True)
    long.prepare.usual = take_all
    assert await long.flow.replay("t", "00001", apply=True) == 1
    await world.sleep("1m")
    assert await counts(long.bench, "t", "long") == {"consumed": 2, "skipped": 2}, "its consumer ran for it"
    assert await long.flow.replay("t", apply=True) == 2
    await world.sleep("1m")
    assert await counts(long.bench, "t", "long") == {"consumed": 4}
    assert await long.flow.replay("t", apply=True) == 0


@pytest.mark.parametrize("is_committed", [False, True])
@virtual
async def test_a_node_that_dies_while_it_replays_does_all_or_nothing(world: World, is_committed: bool) -> None:
    """L7: before the commit nothing has changed, after it everything has, and each message is consumed once."""
    long = Long(world, decline)
    await long.start()
    await long.fill(4)
    await long.flow.skip("t", "00000", "00001")
    await world.sleep("1s")
    tap = long.bench.store
    tap.last = tap.writes + int(is_committed)
    long.bench.machine.start(long.flow.replay("t", apply=True))
    await world.settle()
    await long.bench.kill()
    after = Long(world, take_all)
    await after.start()
    await world.sleep("1m")
    expected = {"consumed": 4} if is_committed else {"consumed": 2, "skipped": 2}
    assert await counts(after.bench, "t", "long") == expected
