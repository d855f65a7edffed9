"""A page for `prepare` has a limit in bytes: large messages are shown in smaller pages, and none is left out."""

import json

from features.kit import World, virtual
from wakeful import Context, Prepare
from wakeful.core.workflow.answers import PAGE_BYTES_MAX
from workflows.kit import Calls, counts, named, take_all


def shown(calls: Calls) -> list[int]:
    """How many bytes of payloads each call got."""
    return [
        sum(len(json.dumps(one.payload).encode()) for listed in ctx.messages.values() for one in listed)
        for ctx in calls.contexts
    ]


@virtual
async def test_large_messages_come_in_smaller_pages(world: World) -> None:
    """Ninety of a quarter of a megabyte, and one that is larger than a page alone."""
    bench, taking = world.bench(), Calls(world, take_all)
    flow = bench.workflow("large")
    flow.consumer(subscribe=["mail"], name="digest")(named(taking))
    await bench.start()
    await flow.pause()
    for n in range(90):
        await flow.publish("mail", f"m{n:02}", "ü" * 120_000)
    await flow.publish("mail", "huge", "x" * (PAGE_BYTES_MAX + 1000))
    await flow.resume()
    await world.sleep("5m")
    assert await counts(bench, name="large") == {"consumed": 91}
    sizes = [size for size in shown(taking) if size]
    assert max(sizes[:-1]) <= 6 * PAGE_BYTES_MAX and sizes[-1] > PAGE_BYTES_MAX  # \u00fc is longer as ASCII
    assert max(len(ctx.messages["mail"]) for ctx in taking.contexts) == 17
    assert len(taking.contexts[-1].messages["mail"]) <= 1
    await bench.stop()


@virtual
async def test_a_consumer_that_declines_sees_every_large_message(world: World) -> None:
    """Page after page, until it finds the one it can use; two topics share the limit."""
    bench = world.bench()

    def pick(ctx: Context) -> Prepare:
        found = [one.id for one in ctx.messages["mail"] if one.payload["n"] == 59]
        return Prepare({"mail": found}) if found else Prepare()

    looking = Calls(world, pick)
    flow = bench.workflow("large")
    flow.consumer(subscribe=["mail", "other"], name="digest")(named(looking))
    await bench.start()
    await flow.pause()
    for n in range(60):
        await flow.publish("mail", f"m{n:02}", {"n": n, "text": "x" * 200_000})
        await flow.publish("other", f"o{n:02}", {"n": n, "text": "x" * 200_000})
    await flow.resume()
    await world.sleep("10m")
    assert await counts(bench, name="large") == {"pending": 59, "consumed": 1}
    assert max(shown(looking)) <= PAGE_BYTES_MAX + 1000
    seen = {one.id for ctx in looking.contexts for one in ctx.messages["other"]}
    assert len(seen) >= 10
    await bench.stop()


@virtual
async def test_what_is_asked_for_by_id_has_the_same_limit(world: World) -> None:
    """A `show` of more than fits gets the first of them."""
    bench = world.bench()

    def show(ctx: Context) -> Prepare:
        if len(ctx.messages["mail"]) == 17 and not showing.script:
            return Prepare(show={"mail": [f"m{n:02}" for n in range(30)]})
        return Prepare({"mail": [one.id for one in ctx.messages["mail"]]} if ctx.messages["mail"] else {})

    showing = Calls(world, show)
    flow = bench.workflow("large")
    flow.consumer(subscribe=["mail"], name="digest")(named(showing))
    await bench.start()
    await flow.pause()
    for n in range(30):
        await flow.publish("mail", f"m{n:02}", "x" * 240_000)
    await flow.resume()
    await world.sleep("5m")
    assert max(shown(showing)) <= PAGE_BYTES_MAX
    await bench.stop()
