"""The order of locks: the owners of all runs, before any run."""

import asyncio
from typing import Any

from postgres.cluster import make_node, until
from postgres.server import Server, schema_of
from wakeful.core.run.results import Done, Failed
from wakeful.core.schedule.actions import Call
from wakeful.core.schedule.definition import Definition
from wakeful.core.time.instants import DAY, HOUR
from wakeful.core.time.timing import Every
from wakeful.engine.claiming import ClaimRequest, claim
from wakeful.engine.settling import Ended, settle

WAITING = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND application_name = 'wakeful'"


async def test_a_settlement_waits_for_a_schedule_before_it_locks_any_other(url: str, server: Server) -> None:
    """One run fails and one succeeds by the plain path. While the schedule of the first is locked elsewhere, the second
    is free: two nodes cannot wait for each other."""
    node = await make_node(url, "a")
    now, hooks = node.now, node.parts.hooks
    await node.put([Definition(slug, Every(DAY, now + HOUR), Call("f", {})) for slug in ("fails", "works")])
    due = now + HOUR

    def enter(tx: Any) -> int:
        return int(tx.nodes.register(name="a", host="h", pid=1, now=due, lease_until=due + DAY, capacity=9))

    node_id = await node.store.write(enter)
    request = ClaimRequest(node_id, due, 9, "outage", True, due + DAY)
    claims = (await node.store.write(lambda tx: claim(tx, hooks, request))).claims
    endings = {"fails": Failed("no"), "works": Done()}
    ended = [Ended(item, endings[item.job.fire.slug]) for item in claims]  # type: ignore[union-attr]
    fails, works = (item.claim.schedule_id for item in ended)
    assert fails < works
    query = "SELECT 1 FROM cadences WHERE schedule_id = %s FOR UPDATE"
    with server.connect() as other, other.transaction():
        other.execute(f"SET LOCAL search_path = {schema_of(url)}".encode())
        other.execute(query, (fails,))
        settling = asyncio.create_task(
            node.store.write(lambda tx: settle(tx, hooks, ended, node_id=node_id, now=due + 5))
        )
        await until(lambda: _is_waiting(server))
        assert other.execute(f"{query} NOWAIT".encode(), (works,)).fetchall() == [(1,)]
    assert (await settling).counted == [True, True]
    outcomes = {run.schedule_id: run.outcome for run in await node.store.read(lambda tx: tx.runs.page(limit=9))}
    assert outcomes == {fails: "failed", works: "succeeded"}
    await node.store.close()


async def _is_waiting(server: Server) -> bool:
    def look() -> bool:
        with server.connect() as connection:
            return connection.execute(WAITING.encode()).fetchone() == (1,)

    return await asyncio.to_thread(look)
