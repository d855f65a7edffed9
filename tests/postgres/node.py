"""One node as a process of its own: `python node.py URL NAME FILE [LABEL,…]`. It ticks until SIGTERM.

Its target writes a line to FILE when it begins and one when it ends. Every line is one appending write, so the file has
them in the order in which they happened, whoever wrote them.
"""

import asyncio
import os
import random
import signal
import sys
import time
from dataclasses import replace
from typing import Any

from wakeful.app import bootstrap
from wakeful.core.schedule.actions import Call
from wakeful.engine.limits import Limits
from wakeful.engine.membership import Identity
from wakeful.integrations.actions.call import CallAction
from wakeful.integrations.actions.registry import CallRegistry
from wakeful.ports.action import OrphanFate, Process
from wakeful.stores.postgres import PostgresStore, Timeouts

LIMITS = Limits(concurrency_max=100, lease=4_000, renew_every=500, shutdown_grace=5_000, ending_grace=1_000, poll=100)
PATIENCE = Timeouts(frozen=2_000)


class NoOrphans:
    """This target starts no processes."""

    async def end(self, process: Process) -> OrphanFate:
        return "gone"


async def main(url: str, name: str, path: str, labels: str = "") -> None:
    """Tick until told to stop."""
    file = os.open(path, os.O_WRONLY | os.O_APPEND)

    def write(word: str, fire: Any, at: int) -> None:
        os.write(file, f"{word} {fire.slug} {fire.attempt} {name} {at}\n".encode())

    async def target(fire: Any) -> None:
        write("begin", fire, time.monotonic_ns())
        await asyncio.sleep(random.uniform(0, 0.02))
        write("end", fire, time.monotonic_ns())

    registry = CallRegistry()
    registry.register("target", target)
    store = await PostgresStore.open(url, timeouts=PATIENCE)
    identity = Identity(name, "here", os.getpid())
    actions: dict[type[Any], Any] = {Call: CallAction(registry)}
    limits = replace(LIMITS, labels=frozenset(labels.split(",")) - {""})
    setup = bootstrap.Setup(limits=limits)
    parts = await bootstrap.assemble_with(store, store.clock, setup, actions, NoOrphans().end, identity)
    told = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, told.set)
    await parts.engine.start()
    os.write(file, f"up - 0 {name} 0\n".encode())
    await told.wait()
    await parts.engine.stop()
    await store.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
