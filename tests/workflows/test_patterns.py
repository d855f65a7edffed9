"""The patterns of docs/workflows.md do what the page says: its own code is what runs here."""

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from features.kit import Bench, World, short, virtual
from wakeful import Workflow
from workflows.kit import counts, state_of

PAGE = (Path(__file__).parents[2] / "docs" / "workflows.md").read_text(encoding="utf-8")
BLOCKS: dict[str, str] = dict(re.findall(r"^##+ ([^\n]+)\n+(?:(?!```)[^#])*?```python\n(.*?)```", PAGE, re.M | re.S))


class Outside:
    """What the page calls `send` and `now`."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.sent: list[tuple[str, Any]] = []

    async def send(self, what: Any, **_: Any) -> None:
        self.sent.append((short(self._world.now), what))

    def now(self) -> datetime:
        return datetime.fromtimestamp(self._world.now / 1000, UTC)


async def run(world: World, title: str) -> tuple[Outside, Workflow, Bench]:
    """The code under a title, deployed and looked at once."""
    outside = Outside(world)
    known: dict[str, Any] = {"send": outside.send, "now": outside.now}
    exec(compile(BLOCKS[title], f"docs/workflows.md, {title}", "exec"), known)
    (flow,) = [one for one in known.values() if isinstance(one, Workflow)]
    bench = world.bench()
    bench.workflows.add(flow)
    await bench.start()
    await world.settle()
    return outside, flow, bench


def test_the_page_has_the_five_usual_patterns() -> None:
    """And nothing of it is left untried."""
    assert set(BLOCKS) == {
        "In Python",
        "First in, first out",
        "Correlation",
        "Time window",
        "Batch or timeout",
        "Daily digest",
    }


@virtual
async def test_first_in_first_out(world: World) -> None:
    """One a run, in order, without a pause in between, and no run more."""
    outside, flow, bench = await run(world, "First in, first out")
    for n in range(5):
        await flow.publish("orders", f"o{n}", n)
    await world.sleep("1s")
    assert [what for _, what in outside.sent] == [0, 1, 2, 3, 4]
    assert await counts(bench, "orders", "fifo") == {"consumed": 5}
    assert len(await bench.runs("workflow:fifo", limit=100)) == 6  # one after the deploy, one for each message


@virtual
async def test_correlation(world: World) -> None:
    """Pairs are taken when they are whole, whichever half comes last; the others wait and do not spin."""
    outside, flow, bench = await run(world, "Correlation")
    await flow.publish("orders", "a", {})
    await flow.publish("orders", "b", {})
    await flow.publish("payments", "p1", {"order": "c"})
    await world.sleep("1h")
    assert outside.sent == []
    writes = bench.store.writes
    await world.sleep("10m")
    assert bench.store.writes - writes <= 30  # it sleeps
    await flow.publish("payments", "p2", {"order": "b"})
    await flow.publish("orders", "c", {})
    await world.sleep("1s")
    assert sorted(what for _, what in outside.sent) == ["b", "c"]
    assert await counts(bench, "orders", "correlation") == {"pending": 1, "consumed": 2}
    assert await counts(bench, "payments", "correlation") == {"consumed": 2}


@virtual
async def test_correlation_finds_the_order_however_many_wait(world: World) -> None:
    """The 101st of them, and the last of a thousand."""
    outside, flow, bench = await run(world, "Correlation")
    await flow.pause()
    for n in range(1000):
        await flow.publish("orders", f"o{n:04}", {})
    await flow.resume()
    await world.sleep("1h")
    for order in ("o0100", "o0999"):
        await flow.publish("payments", f"for-{order}", {"order": order})
        await world.sleep("1h")
    assert [what for _, what in outside.sent] == ["o0100", "o0999"]
    assert await counts(bench, "orders", "correlation") == {"pending": 998, "consumed": 2}
    assert await counts(bench, "payments", "correlation") == {"consumed": 2}


@virtual
async def test_a_time_window(world: World) -> None:
    """It closes ten minutes after its first click, and what comes later opens another."""
    outside, flow, bench = await run(world, "Time window")
    for n, pause in enumerate(("0s", "4m", "5m", "5m")):
        await world.sleep(pause)
        await flow.publish("clicks", f"c{n}", {"at": outside.now().isoformat()})
    await world.sleep("1h")
    assert outside.sent == [("01-01 00:10:00", 3), ("01-01 00:24:00", 1)]
    assert await counts(bench, "clicks", "window") == {"consumed": 4}
    assert (await flow.get())["nextRun"] is None


@virtual
async def test_a_batch_or_a_timeout(world: World) -> None:
    """Ten rows at once, or fewer after five minutes."""
    outside, flow, bench = await run(world, "Batch or timeout")
    for n in range(13):
        await flow.publish("rows", f"r{n:02}", {"at": outside.now().isoformat()})
    await world.sleep("1h")
    assert outside.sent == [("01-01 00:00:00", 10), ("01-01 00:05:00", 3)]
    assert await counts(bench, "rows", "batch") == {"consumed": 13}
    assert (await flow.get())["nextRun"] is None


@virtual
async def test_a_daily_digest(world: World) -> None:
    """At nine each day, with what came since; news in between wake it early and are left alone, a restart included."""
    outside, flow, bench = await run(world, "Daily digest")
    await world.until("01-01 08:00:00")
    await flow.publish("news", "n1", 1)
    await world.until("01-01 10:00:00")
    assert outside.sent == [("01-01 09:00:00", 1)]
    await flow.publish("news", "n2", 1)
    await flow.publish("news", "n3", 1)
    await world.sleep("1h")
    assert await counts(bench, "news", "daily") == {"pending": 2, "consumed": 1}
    await bench.stop()
    bench = world.bench()
    bench.workflows.add(flow)
    await bench.start()
    await world.until("01-02 12:00:00")
    assert outside.sent == [("01-01 09:00:00", 1), ("01-02 09:00:00", 2)]
    assert await counts(bench, "news", "daily") == {"consumed": 3}
    consumer = (await flow.get())["consumers"]["digest"]
    assert (consumer["state"], consumer["wakeAt"]) == ({"day": "2026-01-02"}, "2026-01-03T09:00:00.000Z")


@virtual
async def test_the_first_example(world: World) -> None:
    """As the page begins, in this world's app. Each message costs one run, and the state is what the page says."""
    outside = Outside(world)
    bench = world.bench()
    code = BLOCKS["In Python"].replace('Wakeful("wakeful.db")', "bench")
    exec(compile(code, "docs/workflows.md", "exec"), {"send": outside.send, "bench": bench})
    await bench.start()
    await world.sleep("6m")
    assert outside.sent == [("01-01 00:00:00", "1 new"), ("01-01 00:05:00", "1 new")]
    view = await state_of(bench, "inbox")
    assert view["consumers"]["digest"]["state"] == {"last": "applied"}
    assert view["producers"]["poll"]["state"] == {"last": 2}
    assert view["topics"]["mail"] == {"pending": 0, "reserved": 0, "consumed": 2, "skipped": 0}
    assert len(await bench.runs("workflow:inbox", limit=100)) == 4


@pytest.mark.parametrize("word", ["prepare", "mutate", "next", "wakeAt", "resolve"])
def test_the_page_speaks_of(word: str) -> None:
    """What a reader looks for."""
    assert word in PAGE
