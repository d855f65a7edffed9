"""Passes facts from one sink to many listeners; a failing listener does not affect the others.

Facts name schedules by id; listeners want slugs. The slug of an id never changes, so it is cached for good. Facts about
an unknown schedule wait for one read of the store, and later facts wait behind them: order is kept. If the store cannot
be read, they are passed on without the name.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias, TypeVar

from wakeful.ports.names import names_of
from wakeful.ports.plain_runs import named
from wakeful.ports.sink import (
    Fact,
    InstantsMissed,
    InstantsSkipped,
    RunsClaimed,
    RunsRescued,
    RunsSettled,
    RunsWaiting,
    SchedulesChanged,
    Slugs,
)
from wakeful.ports.store import Store

log = logging.getLogger("wakeful.observe")

T = TypeVar("T")
Listener: TypeAlias = Callable[[Sequence[Fact], Slugs], None]

CommitListener: TypeAlias = Callable[[bool], None]
"""Called when this process wrote something (True), or another one may have (False)."""

NAMES_MAX: Final = 200_000
# How many batches may wait for a name; with more, the store is failing and names do not matter.
WAITING_MAX: Final = 1_000

_OF_RUNS: Final = (RunsClaimed, RunsSettled, RunsWaiting, InstantsSkipped, InstantsMissed, RunsRescued)


class FanOut:
    """A sink that passes facts on to its listeners. The store may be given now or at `begin`."""

    def __init__(self, store: Store | None = None) -> None:
        self._store = store  # only ever read from
        self._listeners: dict[int, Listener] = {}
        self._next_key = 0
        self._commit_listeners: dict[int, CommitListener] = {}
        self._slugs: dict[int, str] = {}
        self._nameless: set[int] = set()  # ids without a store row
        self._waiting: deque[Sequence[Fact]] = deque()
        self._asking: asyncio.Task[None] | None = None

    @property
    def is_heard(self) -> bool:
        """Whether there are listeners."""
        return bool(self._listeners)

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Add a listener; returns a function that removes it. It is called on the event loop and must not block."""
        return self._add(self._listeners, listener)

    def on_commit(self, listener: CommitListener) -> Callable[[], None]:
        """Call a function after each commit that changed something, with or without listeners, and when other processes
        may have written; returns a function that removes it. It must not raise."""
        return self._add(self._commit_listeners, listener)

    def _add(self, listeners: dict[int, T], listener: T) -> Callable[[], None]:
        key = self._next_key
        self._next_key += 1
        listeners[key] = listener

        def stop() -> None:
            listeners.pop(key, None)

        return stop

    def notify(self, is_ours: bool) -> None:
        """Something was written by this process, or perhaps by another."""
        for listener in self._commit_listeners.values():
            listener(is_ours)

    def begin(self, store: Store) -> None:
        """Use this store to look up names."""
        self._store = store

    def tell(self, facts: Sequence[Fact]) -> None:
        """Pass facts on, now or as soon as the names of their schedules are known. Never raises: what they are about is
        committed."""
        if not self._listeners:
            return
        try:
            unknown = self._unknown(facts)
            if self._asking is None and not unknown:
                self._pass_on(facts)
                return
            self._waiting.append(facts)
            if self._asking is None:
                self._asking = asyncio.get_running_loop().create_task(self._ask(), name="wakeful-telemetry-names")
            elif len(self._waiting) > WAITING_MAX:
                self._pass_on(self._waiting.popleft())
        except Exception:
            log.exception("facts could not be passed on")

    async def drained(self) -> None:
        """Return when everything so far was passed on."""
        while self._asking is not None:
            await asyncio.wait([self._asking])

    def _unknown(self, facts: Sequence[Fact]) -> set[int]:
        slugs = self._slugs
        unknown: set[int] = set()
        for fact in facts:
            if isinstance(fact, SchedulesChanged):
                self._learn({change.schedule_id: change.slug for change in fact.changes if change.slug is not None})
                unknown.update(change.schedule_id for change in fact.changes if change.schedule_id not in slugs)
            elif isinstance(fact, _OF_RUNS):
                unknown.update(run.schedule_id for run in named(fact.runs) if run.schedule_id not in slugs)
        return unknown - self._nameless if unknown else unknown

    def _learn(self, slugs: dict[int, str]) -> None:
        if len(self._slugs) + len(slugs) > NAMES_MAX:
            self._slugs.clear()
        self._slugs.update(slugs)

    async def _ask(self) -> None:
        try:
            while self._waiting:
                unknown = self._unknown([fact for facts in self._waiting for fact in facts])
                if unknown:
                    await self._find(unknown)
                while self._waiting and not self._unknown(self._waiting[0]):
                    self._pass_on(self._waiting.popleft())
        finally:
            self._asking = None

    async def _find(self, unknown: set[int]) -> None:
        if self._store is None:
            self._nameless.update(unknown)
            return
        try:
            names = await self._store.read(lambda tx: names_of(tx, unknown))
        except Exception as error:  # names are optional: the facts are passed on anyway
            log.warning("the names of %d schedules cannot be read: %s", len(unknown), error)
            names = {}
        self._learn(names)
        if len(self._nameless) > NAMES_MAX:
            self._nameless.clear()
        self._nameless.update(unknown - set(names))

    def _pass_on(self, facts: Sequence[Fact]) -> None:
        for key, listener in list(self._listeners.items()):
            try:
                listener(facts, self._slugs)
            except Exception:  # a listener must not be able to block the engine
                self._listeners.pop(key, None)
                log.exception("an event listener failed and was removed")
