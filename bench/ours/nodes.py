"""A burst shared by several processes on one store: this one adds the schedules and observes, the others tick."""

import argparse
import asyncio
import json
import sys
import time
from asyncio.subprocess import PIPE, Process

from bench.cpu import seconds_of
from bench.lines import emit
from bench.ours.burst import BULK_RATE_MIN, LEAD
from bench.ours.setup import make_app, schedules, settled, soon
from wakeful import once

READY_WITHIN = 20
BURST_WITHIN = 120


class Crew:
    """The ticking processes, and their total number of calls."""

    def __init__(self, processes: list[Process]) -> None:
        self._processes = processes
        self._calls = [-1] * len(processes)
        self._heard = asyncio.Event()
        self._listeners = [asyncio.create_task(self._listen(i)) for i in range(len(processes))]

    @classmethod
    async def start(cls, store: str, count: int) -> "Crew":
        return cls([await _start(store, f"node-{i}") for i in range(count)])

    async def wait(self, calls: int, within: float) -> None:
        """Wait until all are ready and have made that many calls in total."""
        async with asyncio.timeout(within):
            while min(self._calls) < 0 or sum(self._calls) < calls:
                self._heard.clear()
                await self._heard.wait()

    def cpu(self) -> float:
        """Seconds of processor time that they have used together."""
        return sum(seconds_of(process.pid) for process in self._processes)

    async def end(self) -> list[int]:
        """Stop them; returns the number of calls of each."""
        for process in self._processes:
            if process.stdin is not None:
                process.stdin.close()
        await asyncio.gather(*self._listeners, *(process.wait() for process in self._processes))
        return self._calls

    async def _listen(self, index: int) -> None:
        output = self._processes[index].stdout
        while output is not None and (line := await output.readline()):
            self._calls[index] = json.loads(line)["calls"]
            self._heard.set()


async def _start(store: str, name: str) -> Process:
    argv = (sys.executable, "-m", "bench.ours.node", "--store", store, "--name", name)
    return await asyncio.create_subprocess_exec(*argv, stdin=PIPE, stdout=PIPE)


async def measure(options: argparse.Namespace) -> None:
    async with make_app(options.store, lambda: None, tick=False) as app:
        crew = await Crew.start(options.store, options.nodes)
        try:
            await crew.wait(0, READY_WITHIN)
            due_at = soon(LEAD + options.fires / BULK_RATE_MIN)
            timing = once(due_at)
            await app.add_many(schedules(options.fires, "fire", lambda _: timing))
            due, cpu = time.perf_counter() + (due_at - soon(0)).total_seconds(), crew.cpu()
            await crew.wait(options.fires, BURST_WITHIN)
            took = await settled(app, 30) - due
            spent = (crew.cpu() - cpu) / options.fires * 1e6
        finally:
            calls = await crew.end()
    plural = "" if options.nodes == 1 else "s"
    shares = {f"node_{i}": count for i, count in enumerate(calls)}
    emit(f"fires, {options.nodes} node{plural}", options.fires / took, cpu_us=spent, count=sum(calls), **shares)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--store", required=True)
    parser.add_argument("--nodes", type=int, required=True)
    parser.add_argument("--fires", type=int, required=True)
    asyncio.run(measure(parser.parse_args()))


if __name__ == "__main__":
    main()
