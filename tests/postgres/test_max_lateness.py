"""`maxLateness` on PostgreSQL: the same decision, whether a lane is passed on or compared."""

import asyncio

from postgres.cluster import until
from postgres.server import Server
from wakeful import Wakeful, manual
from wakeful.core.time.instants import HOUR
from wakeful.ports.action import Fire
from wakeful.ports.store import Tx

LATE = 5
_done: list[str] = []
_may_end = asyncio.Event()


async def holder() -> None:
    await _may_end.wait()


def work(fire: Fire) -> None:
    _done.append(fire.slug)


async def test_what_waited_too_long_for_its_lane_is_missed(url: str, server: Server) -> None:
    """Runs that are due an hour ago wait in a lane, behind one that holds it; the limit of half of them is passed."""
    since = server.log_size()
    _done.clear()
    async with Wakeful(url) as app:
        await app.add("holds", manual(), call=holder, lane="x")
        await app.run_now("holds")
        for number in range(LATE):
            await app.add(f"strict-{number}", manual(), call=work, lane="x", max_lateness="10m")
            await app.add(f"patient-{number}", manual(), call=work, lane="x", max_lateness="2h")
        slugs = [f"{kind}-{number}" for kind in ("strict", "patient") for number in range(LATE)]
        for slug in slugs:
            await app.run_now(slug)

        def make_late(tx: Tx) -> int:
            """As if their instants had been planned an hour ago."""
            rows = [run for run in tx.runs.page(limit=50) if run.outcome == "waiting" and run.reason == "lane"]
            moved = [run._replace(trigger="schedule", due_at=run.due_at - HOUR, next_attempt_at=None) for run in rows]
            tx.runs.save_many(sorted(moved))
            return len(moved)

        async def all_wait() -> bool:
            return await app._open.store.read(lambda tx: sum(r.reason == "lane" for r in tx.runs.page(limit=50))) == 10

        await until(all_wait)
        assert await app._open.store.write(make_late) == 2 * LATE
        _may_end.set()

        async def is_over() -> bool:
            return all([(await app.runs(slug))[0].outcome not in ("running", "waiting") for slug in slugs])

        await until(is_over)
        ends = {slug: ((run := (await app.runs(slug))[0]).outcome, run.reason) for slug in slugs}
    assert ends == {f"strict-{n}": ("missed", "lane") for n in range(LATE)} | {
        f"patient-{n}": ("succeeded", None) for n in range(LATE)
    }
    assert sorted(_done) == sorted(f"patient-{n}" for n in range(LATE))
    assert "ERROR" not in server.logged(since)
