"""Several nodes on one PostgreSQL send: each delivery once, each recipient's in order."""

import asyncio
from collections import defaultdict

from postgres.server import emptied_url as url
from postgres.server import server
from wakeful import Wakeful

__all__ = ["server", "url"]


async def test_two_nodes_share_one_outbox(url: str) -> None:
    """Claims by alarm and row: nobody sends what another has."""
    got: dict[str, list[str]] = defaultdict(list)
    under_way: dict[str, int] = defaultdict(int)
    most: dict[str, int] = defaultdict(int)
    by_node: dict[str, int] = defaultdict(int)

    def node(name: str) -> Wakeful:
        app = Wakeful(url, name=name, shutdown_grace="5s")

        async def deliver(text: str, letter: object) -> None:
            to = letter.to  # type: ignore[attr-defined]
            under_way[to] += 1
            most[to] = max(most[to], under_way[to])
            await asyncio.sleep(0.002)
            got[to].append(text)
            by_node[name] += 1
            under_way[to] -= 1

        app.register_channel("phone", None, deliver)
        return app

    async with node("a") as first, node("b") as second:
        for n in range(8):
            sender = (first, second)[n % 2]
            await asyncio.gather(*(sender.people.send(str(n), channel="phone", to=f"r{r}") for r in range(6)))
        async with asyncio.timeout(120):
            while (await first.people.deliveries(status="pending", limit=1)).deliveries:
                await asyncio.sleep(0.05)
        rows = (await second.people.deliveries(limit=1_000)).deliveries
    assert {row.status for row in rows} == {"delivered"}
    assert {row.attempts for row in rows} == {1}
    assert dict(got) == {f"r{r}": [str(n) for n in range(8)] for r in range(6)}
    assert set(most.values()) == {1}
    assert sum(by_node.values()) == 48
