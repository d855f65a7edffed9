"""The engine's operations go ahead of commands and queries that wait."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

from patience import PATIENCE
from postgres.cluster import cluster, once, until
from wakeful.ports.store import Store, Tx
from wakeful.stores.postgres import PostgresStore

WAITING = 100


class Gate:
    """Operations that wait at a gate, and the order in which they passed it."""

    def __init__(self) -> None:
        self._is_open = threading.Event()
        self.passed: list[str] = []

    def operation(self, name: str) -> Callable[[Tx], None]:
        def wait(tx: Tx) -> None:
            self._is_open.wait(PATIENCE)
            self.passed.append(name)

        return wait

    def note(self, name: str) -> Callable[[Tx], None]:
        return lambda tx: self.passed.append(name)

    def open(self) -> None:
        self._is_open.set()


async def _submit(store: Store, gate: Gate, n: int = WAITING) -> "asyncio.Future[list[Any]]":
    """Commands that all wait at the gate, or for a connection."""
    commands = asyncio.gather(*(store.write(gate.operation("command")) for _ in range(n)))
    await asyncio.sleep(0)
    return commands


async def test_an_urgent_write_does_not_wait_for_commands(url: str) -> None:
    """A hundred commands wait, and those in progress wait for a lock: there is still a connection for a claim."""
    store, gate = await PostgresStore.open(url), Gate()
    try:
        commands = await _submit(store, gate)
        try:
            await asyncio.wait_for(store.write(gate.note("claim"), is_urgent=True), PATIENCE)
            assert gate.passed == ["claim"]
        finally:
            gate.open()
        await commands
        assert gate.passed == ["claim"] + ["command"] * WAITING
    finally:
        await store.close()


async def test_urgent_operations_are_next_and_others_keep_their_order(url: str) -> None:
    """With one connection of each kind, the one in progress ends, then the urgent one runs, then those that waited."""
    store = await PostgresStore.open(url, writers=1, readers=1)
    try:
        for ask in (store.write, store.read):
            gate = Gate()
            asked = [ask(gate.operation("first")), *(ask(gate.note(f"waiting {n}")) for n in range(3))]
            waiting = asyncio.gather(*asked, ask(gate.note("urgent"), is_urgent=True))
            await asyncio.sleep(0)
            gate.open()
            await waiting
            assert gate.passed == ["first", "urgent", "waiting 0", "waiting 1", "waiting 2"]
    finally:
        await store.close()


async def test_what_was_submitted_is_finished_before_the_store_is_closed(url: str) -> None:
    """Urgent or not, waiting or in progress."""
    store, gate = await PostgresStore.open(url), Gate()
    commands = await _submit(store, gate, 20)
    urgent = asyncio.gather(*(store.write(gate.operation("claim"), is_urgent=True) for _ in range(20)))
    await asyncio.sleep(0)
    closing = asyncio.create_task(store.close())
    await asyncio.sleep(0)
    gate.open()
    await asyncio.wait_for(asyncio.gather(commands, urgent, closing), PATIENCE)
    assert len(gate.passed) == 40


async def test_a_run_starts_and_ends_while_commands_wait(url: str) -> None:
    """Claim, lease, progress and settlement: nothing that a run needs waits behind the commands of clients."""
    gate = Gate()
    async with cluster(url, "a") as (node,):
        await node.put([once("job", node.now + 200)])
        commands = await _submit(node.store, gate)
        try:
            await until(lambda: _has_succeeded(node.store))
            assert gate.passed == []
        finally:
            gate.open()
        await commands


async def _has_succeeded(store: Store) -> bool:
    runs = await store.read(lambda tx: tx.runs.page(limit=10))
    return [run.outcome for run in runs] == ["succeeded"]
