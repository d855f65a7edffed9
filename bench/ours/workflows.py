"""Messages through producer, topic and consumer, and the cost of a tick with many idle workflows."""

import argparse
import asyncio
import time
from typing import Final

from bench.lines import emit
from bench.samples import percentile
from wakeful import Context, Prepare, Produced, Publish, Wakeful, manual
from wakeful.core.workflow.definition_json import workflow_from_json
from wakeful.features.workflows.deployment import deploy
from wakeful.features.workflows.state_rows import Handlers
from wakeful.ports.store import Tx
from wakeful.ports.workflows import ALARM_WORKFLOW, StoredWorkflows

WORKFLOWS: Final = 20
TICKS: Final = 300
FILL_STEP: Final = 500
SLEEPING: Final = {
    "producers": {
        "poll": {
            "schedule": {"type": "once", "at": "2999-01-01T00:00:00Z"},
            "publishes": ["mail"],
            "handler": {"http": {"url": "http://127.0.0.1:9/poll"}},
        }
    },
    "consumers": {"digest": {"subscribe": ["mail"], "handler": {"http": {"url": "http://127.0.0.1:9/digest"}}}},
}


def declare(app: Wakeful, name: str, count: int) -> None:
    """A producer that publishes them all, and a consumer that takes all it gets, in three phases."""
    flow = app.workflow(name)

    @flow.producer(manual(), publishes=["mail"])
    async def poll(_: Context) -> Produced:
        return Produced([Publish("mail", str(n), {"n": n}) for n in range(count)])

    @flow.consumer(subscribe=["mail"])
    async def digest(ctx: Context) -> Prepare:
        ids = [one.id for one in ctx.messages["mail"]]
        return Prepare({"mail": ids} if ids else {})

    @digest.mutate
    async def deliver(_: Context) -> None:
        return None

    @digest.next
    async def after(_: Context) -> Produced:
        return Produced()


async def messages(app: Wakeful, total: int) -> None:
    """Measure from the first producer's start until the last message is consumed."""
    names = [f"flow-{n}" for n in range(WORKFLOWS)]
    each = total // WORKFLOWS
    await asleep(app, names)
    cpu, began = time.process_time(), time.perf_counter()
    await asyncio.gather(*(app.workflows.run(name) for name in names))
    await asleep(app, names)
    took, spent = time.perf_counter() - began, time.process_time() - cpu
    for name in names:
        counts = (await app.workflows.get(name)).topics["mail"]
        if counts.consumed != each:
            raise RuntimeError(f"{name} has {counts}")
    emit("workflow messages", each * WORKFLOWS / took, cpu_us=spent / (each * WORKFLOWS) * 1e6, count=each * WORKFLOWS)


async def asleep(app: Wakeful, names: list[str]) -> None:
    """Wait until all are idle. Polls as little as possible, because it is not measured."""

    def is_asleep(tx: Tx) -> bool:
        rows = tx[StoredWorkflows].by_names(names).values()
        alarms = tx.alarms.by_refs(ALARM_WORKFLOW, [row.workflow_id for row in rows]).values()
        return all(row.open_run_id is None for row in rows) and all(alarm.due_at is None for alarm in alarms)

    give_up = time.perf_counter() + 120
    while time.perf_counter() < give_up:
        if await app._open.store.read(is_asleep):
            return
        await asyncio.sleep(0.01)
    raise TimeoutError("the workflows did not come to rest")


async def ticks(app: Wakeful, idle: int) -> None:
    """Measure one tick of the engine with that many idle workflows."""
    parts = app._open
    now = parts.clock.read().now

    def fill(tx: Tx, first: int) -> None:
        for n in range(first, min(first + FILL_STEP, idle)):
            definition, _ = workflow_from_json(SLEEPING, name=f"sleeping-{n}")
            deploy(tx, definition, "active", origin="rest", default_zone="UTC", is_tried=True, now=now)
            workflow_id = tx[StoredWorkflows].by_names([definition.name])[definition.name].workflow_id
            rows = tx[Handlers].of([workflow_id])[workflow_id]
            tx[Handlers].put_many([row._replace(is_flagged=0) for row in rows])
            tx.alarms.move_many(ALARM_WORKFLOW, [(workflow_id, now + 10**12)])

    for first in range(0, idle, FILL_STEP):
        await parts.store.write(lambda tx, first=first: fill(tx, first))  # type: ignore[misc]
    samples = []
    for _ in range(TICKS):
        began = time.perf_counter()
        await parts.engine.tick(parts.clock.read())
        samples.append(time.perf_counter() - began)
    emit("tick, idle workflows", percentile(samples, 0.5) * 1000, workflows=idle, p99=percentile(samples, 0.99) * 1000)


async def measure(options: argparse.Namespace) -> None:
    app = Wakeful(options.store, timezone="UTC")
    for n in range(WORKFLOWS):
        declare(app, f"flow-{n}", options.messages // WORKFLOWS)
    async with app:
        await messages(app, options.messages)
        await ticks(app, options.idle)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--store", required=True)
    parser.add_argument("--messages", type=int, required=True)
    parser.add_argument("--idle", type=int, required=True)
    asyncio.run(measure(parser.parse_args()))


if __name__ == "__main__":
    main()
