"""A store that publishes events: what a commit changed becomes facts, after the commit.

Theory of operation
-------------------
`EventingStore` wraps the real store. The write methods of a transaction record what they change (`ports.changes`).
After the commit these records become facts (`facts.facts_of`), which are passed to the sink.

Because the records are made where the rows are written, no code can write to the ledger and forget to report it. An
operation that the store retries starts without records; one that is rolled back is never reported.
"""

import logging
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from wakeful.observe.facts import facts_of
from wakeful.observe.fan_out import FanOut
from wakeful.ports.changes import Change
from wakeful.ports.clock import Clock
from wakeful.ports.sink import CommitTimed, Fact, Sink
from wakeful.ports.store import Store, StoreUnavailable, Tx

log = logging.getLogger("wakeful.observe")

T = TypeVar("T")


class Guarded:
    """A sink of others that cannot raise: once the wrapped sink has raised, it is no longer called."""

    def __init__(self, sink: Sink) -> None:
        self._sink: Sink | None = sink

    def begin(self, store: Store) -> None:
        self._guard(lambda sink: sink.begin(store))

    def tell(self, facts: Sequence[Fact]) -> None:
        self._guard(lambda sink: sink.tell(facts))

    def _guard(self, reporter: Callable[[Sink], None]) -> None:
        if self._sink is None:
            return
        try:
            reporter(self._sink)
        except Exception:
            self._sink = None
            log.exception("the event sink failed and is disabled")


class EventingStore:
    """See `ports.store.Store`; the sink gets the facts of every commit made through it."""

    def __init__(
        self, store: Store, sink: Sink, clock: Clock, *, stopwatch: Callable[[], float] = time.perf_counter
    ) -> None:
        self._store = store
        self._sink = sink
        self._clock = clock
        self._stopwatch = stopwatch  # for measuring only

    async def write(self, operation: Callable[[Tx], T], *, is_urgent: bool = False) -> T:
        def recorded(tx: Tx) -> tuple[T, list[Change]]:
            tx.changes.clear()
            answer = operation(tx)
            return answer, tx.changes.copy()

        began = self._stopwatch()
        try:
            answer, changes = await self._store.write(recorded, is_urgent=is_urgent)
        except StoreUnavailable:
            self._sink.tell([CommitTimed(self._clock.read().now, self._stopwatch() - began, False)])
            raise
        fan_out = self._sink if isinstance(self._sink, FanOut) else None
        if fan_out is None or fan_out.is_heard:
            self._tell(changes, self._stopwatch() - began)
        if fan_out is not None and changes:
            fan_out.notify(True)
        return answer

    def _tell(self, changes: Sequence[Change], seconds: float) -> None:
        at = self._clock.read().now
        try:
            facts = facts_of(changes, at)
        except Exception:  # it is committed: a failing sink must not make it look otherwise (L7)
            log.exception("the changes of a commit could not be published")
            facts = []
        self._sink.tell([*facts, CommitTimed(at, seconds, True)])

    async def read(self, operation: Callable[[Tx], T], *, is_urgent: bool = False) -> T:
        return await self._store.read(operation, is_urgent=is_urgent)

    async def hold_clock(self) -> bool:
        return await self._store.hold_clock()

    async def release_clock(self) -> None:
        await self._store.release_clock()

    @property
    def is_exclusive(self) -> bool:
        return self._store.is_exclusive

    async def remember(self, mark: int) -> None:
        await self._store.remember(mark)

    async def changed(self) -> bool:
        is_news = await self._store.changed()
        if is_news and isinstance(self._sink, FanOut):
            self._sink.notify(False)
        return is_news

    def trouble(self) -> str | None:
        return self._store.trouble()

    async def close(self) -> None:
        await self._store.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)  # methods of one kind of store (e.g. checking a file)
