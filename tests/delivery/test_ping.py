"""The ping to a monitor, over a real HTTP server: sent while the clock works, and not otherwise."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from features.kit import World, virtual
from patience import PATIENCE
from wakeful import Wakeful
from wakeful.core.delivery.alert_rules import AlertTerms
from wakeful.core.time.instants import DAY, HOUR, MINUTE, SECOND
from wakeful.features.delivery.ping import SENT_AT
from wakeful.ports.meta import Meta
from wakeful.ports.outbox import ALARM_PING
from wakeful.ports.store import Alarm, Tx


class Monitor:
    """Counts requests."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.url = ""

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.asked.append((await reader.readline()).decode().strip())
        while (await reader.readline()).strip():
            pass
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nOK")
        await writer.drain()
        writer.close()

    async def until(self, count: int) -> None:
        async with asyncio.timeout(PATIENCE):
            while len(self.asked) < count:
                await asyncio.sleep(0.02)


@asynccontextmanager
async def monitoring() -> AsyncIterator[Monitor]:
    monitor = Monitor()
    async with await asyncio.start_server(monitor.answer, "127.0.0.1", 0) as server:
        monitor.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/id"
        yield monitor


async def test_the_monitor_is_asked_at_its_interval(tmp_path: Path) -> None:
    """A GET, again and again."""
    async with monitoring() as monitor:
        terms = AlertTerms(ping=monitor.url, ping_every=SECOND // 5)
        async with Wakeful(tmp_path / "w.db", alerts=terms):
            await monitor.until(3)
    assert set(monitor.asked) == {"GET /id HTTP/1.1"}


@virtual
async def test_nothing_is_sent_while_something_is_overdue(world: World) -> None:
    """The clock ticks, and does not get its work done: the monitor must notice. Sent again once that was rung."""
    app = await world.open(alerts=AlertTerms(ping="http://127.0.0.1:9/id"), limits={"concurrency_max": 1})
    handler = next(one for one in app.parts.hooks.alarms if one.kind == ALARM_PING)

    async def rung(overdue_by: int) -> int:
        now = world.now

        def ring(tx: Tx) -> int:
            tx[Meta].set(SENT_AT, str(now - HOUR))
            tx.alarms.set_many(
                [Alarm(ALARM_PING, 1, now, 1, None, 0), Alarm("schedule", 99, now - overdue_by, 1, None, 0)]
            )
            side_tasks = handler.ring(tx, now=now, due_by=now, limit=1, late_max=1, gap_reason="outage").side_tasks
            tx.alarms.remove_many("schedule", [99])
            return len(side_tasks)

        return await app.parts.store.write(ring)

    assert [await rung(30 * SECOND), await rung(61 * SECOND), await rung(0)] == [1, 0, 1]


@virtual
async def test_a_clock_that_was_ahead_does_not_delay_the_ping(world: World) -> None:
    """What was sent in the future counts as sent now: the next one comes one interval later."""
    app = await world.open(alerts=AlertTerms(ping="http://127.0.0.1:9/id", ping_every=MINUTE))
    handler = next(one for one in app.parts.hooks.alarms if one.kind == ALARM_PING)

    def turned_back(tx: Tx) -> list[int | None]:
        tx[Meta].set(SENT_AT, str(world.now + DAY))
        times: list[int | None] = []
        for later in (0, 20 * SECOND):  # the second time changes nothing: it is stored
            handler.turn_back(tx, now=world.now + later, after_id=0, limit=10)
            times.append(tx.alarms.by_refs(ALARM_PING, [1])[1].due_at)
        return times

    assert await app.parts.store.write(turned_back) == [world.now + MINUTE] * 2
