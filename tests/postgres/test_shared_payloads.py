"""Two transactions let go of the last two messages with one payload at the same time."""

import asyncio
import threading

from conformance.workflows import a_handler_run, a_message
from postgres.server import Server
from wakeful.core.time.instants import Instant
from wakeful.features.workflows.message_rows import Messages
from wakeful.features.workflows.pruning import prune_runs
from wakeful.features.workflows.session_rows import Sessions
from wakeful.ports.handler_runs import HandlerRunDetails
from wakeful.ports.store import Tx
from wakeful.stores.postgres import PostgresStore

NOW: Instant = 1_700_000_000_000
WAITING = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND application_name = 'wakeful'"
WITHIN = 60


async def test_the_later_one_deletes_the_payload(url: str, server: Server) -> None:
    """One prunes what was consumed, the other publishes again what is pending; neither sees what the other removes
    until it has committed."""
    pruning, publishing = await PostgresStore.open(url), await PostgresStore.open(url)
    consumed, pending = (a_message(1, "t", "m", n, consumer=f"c{n}", payload='"first"') for n in (1, 2))

    def put(tx: Tx) -> None:
        session = tx[Sessions].start(1, "event", producers_left="[]", now=NOW)
        tx[HandlerRunDetails].add_many([a_handler_run(1, session)])
        tx[Messages].put_many([consumed, pending])
        tx[Messages].save_many([consumed._replace(status="consumed", run_id=1)])

    await pruning.write(put)
    pruned, go_on = threading.Event(), threading.Event()

    def prune(tx: Tx) -> None:
        prune_runs(tx, limit=9)
        pruned.set()
        assert go_on.wait(WITHIN)

    async with asyncio.timeout(WITHIN):
        first = asyncio.create_task(pruning.write(prune))
        await asyncio.to_thread(pruned.wait, WITHIN)
        again = pending._replace(seq=3, payload='"second"')
        second = asyncio.create_task(publishing.write(lambda tx: tx[Messages].put_many([again])))
        with server.connect() as connection:
            while not second.done() and connection.execute(WAITING.encode()).fetchone() != (1,):
                await asyncio.sleep(0.01)
        go_on.set()
        await asyncio.gather(first, second)
    assert await publishing.read(lambda tx: tx[Messages].page(1, "t", after_place=0, limit=9)) == [again]
    left = await publishing.read(lambda tx: tx[Messages]._db.rows("SELECT payload FROM payloads"))
    assert left == []
    await pruning.close()
    await publishing.close()
