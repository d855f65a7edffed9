"""Wait for the end of runs by the events of this process, instead of reading their rows again and again."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from wakeful.observe.fan_out import FanOut
from wakeful.ports.plain_runs import named
from wakeful.ports.sink import Fact, InstantsMissed, InstantsSkipped, RunsSettled, Slugs


class RunEndings:
    """Rings the bell of a run when a commit of this process closed it. It listens only while somebody waits: without
    listeners no events are built."""

    def __init__(self) -> None:
        self._bells: dict[int, list[asyncio.Event]] = {}
        self._stop_listening: Callable[[], None] | None = None

    @contextmanager
    def bell_of(self, run_id: int, fan_out: FanOut) -> Iterator[asyncio.Event]:
        """A bell that is set when the run has ended."""
        bell = asyncio.Event()
        if self._stop_listening is None:
            self._stop_listening = fan_out.listen(self._hear)
        self._bells.setdefault(run_id, []).append(bell)
        try:
            yield bell
        finally:
            self._bells[run_id].remove(bell)
            if not self._bells[run_id]:
                del self._bells[run_id]
            if not self._bells:
                self._stop_listening()
                self._stop_listening = None

    def _hear(self, facts: Sequence[Fact], _slugs: Slugs) -> None:
        for fact in facts:
            if isinstance(fact, RunsSettled | InstantsSkipped | InstantsMissed):
                for run in named(fact.runs):
                    for bell in self._bells.get(run.run_id, ()):
                        bell.set()
