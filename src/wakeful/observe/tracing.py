"""Traces: what is committed becomes spans, in the background.

Theory of operation
-------------------
`Tracing` listens to the facts of commits. It keeps the rows it needs in a bounded queue and returns immediately. A task
reads what the rows do not contain (names of nodes, agents, the runs that others were created by) in one read for many
rows, and hands the spans to a thread that sends them (`observe.otlp`). Nothing waits for any of it: what does not fit
is lost.

A run and its last attempt are sent when the run closes, and again under the same ids if late proof changes how it
ended. An earlier attempt is sent when it ends, a delivery when it arrived or was given up. Instants that did not run
have no trace.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from wakeful.core.run.runs import Attempt, Run, idempotency_key
from wakeful.core.run.traces import attempt_of
from wakeful.observe.fan_out import FanOut
from wakeful.observe.otlp import SpanExport, missing_extra
from wakeful.observe.spans import (
    NOT_ERRORS,
    RunContext,
    Span,
    agent_of,
    span_of_delivery,
    span_of_run,
    spans_of_attempt,
    spans_of_last_attempt,
)
from wakeful.ports.backfills import BackfilledRuns
from wakeful.ports.event_data import DeliveryChanged
from wakeful.ports.meta import Meta
from wakeful.ports.names import names_of
from wakeful.ports.outbox import Deliveries, Delivery
from wakeful.ports.ownerships import Ownerships
from wakeful.ports.sink import AttemptsEnded, Fact, Reported, RunsSettled, Slugs
from wakeful.ports.store import STORE_ID, Store, Tx

log = logging.getLogger("wakeful.observe")

WAITING_MAX: Final = 20_000
"""Rows that may wait to become spans."""
BATCH: Final = 500
FUNCTION: Final = "python"
"""The provider of an agent that is a function."""
DELIVERED: Final = frozenset({"delivered", "dead"})

Redact: TypeAlias = Callable[[str], str]


class _Delivered(NamedTuple):
    """A delivery that ended."""

    delivery_id: int


_Item: TypeAlias = Run | Attempt | _Delivered


class TracingTrouble(NamedTuple):
    """Why spans are lost, and what to do."""

    sentence: str
    cure: str


class Tracing:
    """The traces of one process. Without an endpoint it does nothing."""

    def __init__(
        self,
        endpoint: str | None,
        node: str,
        redact: Redact | None = None,
        providers: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        self.endpoint = endpoint
        self._providers = providers  # of models, by agent; other agents are functions
        self._node = node
        self._redact = redact
        self._store: Store | None = None
        self._fan_out: FanOut | None = None
        self._stop_listening: Callable[[], None] | None = None
        self._export: SpanExport | None = None
        self._queue: deque[_Item] = deque()
        self._working: asyncio.Task[None] | None = None
        self._lost = 0
        self._missing: str | None = None

    @property
    def is_on(self) -> bool:
        """Whether attempts get a `traceparent`."""
        return self._export is not None

    @property
    def lost(self) -> int:
        """How many rows and spans were lost since the endpoint was set."""
        return self._lost + (0 if self._export is None else self._export.lost)

    def trouble(self) -> TracingTrouble | None:
        """Why spans are lost at the moment."""
        if self._missing is not None:
            return TracingTrouble(f"runs are not traced: [otel] {self._missing}", self._missing.partition("; ")[2])
        if self._export is None or self._export.trouble is None:
            return None
        sentence = f"the collector at {self.endpoint} does not accept spans ({self.lost} lost): {self._export.trouble}"
        return TracingTrouble(sentence, "check that it runs, and that [otel] endpoint is its OTLP/HTTP address")

    def traceparent(self, store_id: str, run: Run) -> str | None:
        """What an attempt that is being claimed passes on; None if runs are not traced."""
        if self._export is None or run.claimed_at is None:
            return None
        return attempt_of(idempotency_key(store_id, run), run.attempt, run.claimed_at).traceparent

    async def begin(self, store: Store, fan_out: FanOut) -> None:
        """Trace what is committed to this store from now on."""
        self._store, self._fan_out = store, fan_out
        await self.change(self.endpoint)

    async def change(self, endpoint: str | None) -> None:
        """Send spans to another collector from now on; None: to none."""
        if endpoint == self.endpoint and self._export is not None:
            return
        await self._end()
        self.endpoint, self._missing, self._lost = endpoint, None, 0
        if endpoint is None or self._fan_out is None:
            return
        self._missing = missing_extra()
        if self._missing is not None:
            log.warning("runs are not traced: [otel] %s", self._missing)
            return
        self._export = SpanExport(endpoint)
        self._stop_listening = self._fan_out.listen(self.listen)

    async def start(self) -> None:
        """Started by `begin`, before anything can be committed."""

    async def stop(self) -> None:
        """Send what is left, for a few seconds at most."""
        await self._end()
        self._store = self._fan_out = None

    def listen(self, facts: Sequence[Fact], _slugs: Slugs) -> None:
        """Take facts from a fan-out."""
        for fact in facts:
            for item in _items(fact):
                if len(self._queue) < WAITING_MAX:
                    self._queue.append(item)
                else:
                    self._lost += 1
        if self._queue and self._working is None:
            self._working = asyncio.get_running_loop().create_task(self._work(), name="wakeful-tracing")

    async def drained(self, within: float) -> bool:
        """Return when everything so far was sent or lost; False if that takes longer than `within` seconds."""
        while self._working is not None:
            await asyncio.wait([self._working])
        export = self._export
        return True if export is None else await asyncio.to_thread(export.drain, within)

    async def _end(self) -> None:
        if self._stop_listening is not None:
            if self._fan_out is not None:
                await self._fan_out.drained()
            self._stop_listening()
            self._stop_listening = None
        while self._working is not None:
            await asyncio.wait([self._working])
        export, self._export = self._export, None
        if export is not None:
            await asyncio.to_thread(export.close)

    async def _work(self) -> None:
        try:
            while self._queue:
                batch = [self._queue.popleft() for _ in range(min(BATCH, len(self._queue)))]
                await self._pass_on(batch)
        finally:
            self._working = None

    async def _pass_on(self, batch: Sequence[_Item]) -> None:
        if self._store is None or self._export is None:
            return
        try:
            providers = self._providers()
            spans = await self._store.read(lambda tx: _Reader(tx, batch, self._node, providers).spans())
        except Exception as error:  # a store that cannot be read costs spans, and nothing else
            self._lost += len(batch)
            log.warning("%d rows could not be traced: %s", len(batch), error)
            return
        self._export.put([self._redacted(span) for span in spans])

    def _redacted(self, span: Span) -> Span:
        if self._redact is None or not span.error:
            return span
        return span._replace(error=self._redact(span.error))


class _Reader:
    """Makes spans from rows, inside one read."""

    def __init__(self, tx: Tx, items: Sequence[_Item], node: str, providers: Mapping[str, str]) -> None:
        self._tx = tx
        self._providers = providers
        self._items = items
        self._node = node
        self._store_id = tx[Meta].value(STORE_ID) or ""
        ended = [tx[Deliveries].get(item.delivery_id) for item in items if isinstance(item, _Delivered)]
        self._deliveries = {row.delivery_id: row for row in ended if row is not None}
        self._runs = self._known_runs()
        owners = {run.schedule_id for run in self._runs.values()}
        self._names = names_of(tx, owners)
        self._schedules = tx.schedules.by_ids(sorted(owner for owner in owners if owner > 0))
        attempts = {item.owner for item in items if isinstance(item, Attempt)}
        nodes = {owner for owner in {run.owner for run in self._runs.values()} | attempts if owner is not None}
        self._nodes = tx.nodes.names(nodes)
        self._creators = self._created_by()

    def spans(self) -> list[Span]:
        """The spans of all rows, in their order."""
        return [span for item in self._items for span in self._of(item)]

    def _of(self, item: _Item) -> list[Span]:
        if isinstance(item, Run):
            context = self._context(item, item.owner)
            return [span_of_run(item, context), *spans_of_last_attempt(item, context)]
        if isinstance(item, Attempt):
            run = self._runs.get(item.run_id)
            if run is None:  # its row was merged into the one before
                return []
            is_error = item.outcome not in NOT_ERRORS
            return spans_of_attempt(run, item, self._context(run, item.owner), is_error=is_error)
        delivery = self._deliveries.get(item.delivery_id)
        run = None if delivery is None else self._runs.get(delivery.run_id or 0)
        return [] if delivery is None or run is None else [self._of_delivery(delivery, run)]

    def _of_delivery(self, delivery: Delivery, run: Run) -> Span:
        return span_of_delivery(delivery, run, self._context(run, None))

    def _known_runs(self) -> dict[int, Run]:
        """The rows of all runs that are concerned: settled ones as the fact has them, others as they are now."""
        settled = {item.run_id: item for item in self._items if isinstance(item, Run)}
        others = {item.run_id for item in self._items if isinstance(item, Attempt)}
        others |= {row.run_id for row in self._deliveries.values() if row.run_id is not None}
        missing = sorted(others - settled.keys())
        return settled | (self._tx.runs.lock(missing) if missing else {})

    def _created_by(self) -> dict[int, tuple[Run, ...]]:
        """The runs that settled ones were created by: the run they replay, and the run whose agent made their
        schedule."""
        settled = [item for item in self._items if isinstance(item, Run)]
        if not settled:
            return {}
        replays = self._tx[BackfilledRuns].among([run.run_id for run in settled if run.trigger == "replay"])
        owned = self._tx[Ownerships].among({run.schedule_id for run in settled if run.schedule_id > 0})
        ids: dict[int, list[int]] = {}
        for run in settled:
            replayed, made = replays.get(run.run_id), owned.get(run.schedule_id)
            causes = (None if replayed is None else replayed.replay_of, None if made is None else made.run_id)
            ids[run.run_id] = [run_id for run_id in causes if run_id is not None]
        wanted = sorted({run_id for created_by in ids.values() for run_id in created_by})
        rows = self._tx.runs.lock(wanted) if wanted else {}
        return {
            run_id: tuple(rows[creator] for creator in created_by if creator in rows)
            for run_id, created_by in ids.items()
        }

    def _context(self, run: Run, owner: int | None) -> RunContext:
        schedule = self._schedules.get(run.schedule_id)
        definition = run.definition or (None if schedule is None else schedule.definition)
        name = self._names.get(run.schedule_id, str(run.schedule_id))
        node = self._nodes.get(owner, self._node) if owner is not None else self._node
        agent, created_by = agent_of(run, definition), self._creators.get(run.run_id, ())
        provider = None if agent is None else self._providers.get(agent, FUNCTION)
        return RunContext(self._store_id, name, node, agent, created_by, provider)


def _items(fact: Fact) -> Iterator[_Item]:
    match fact:
        case RunsSettled(_, runs):
            yield from runs
        case AttemptsEnded(_, attempts):
            yield from attempts
        case Reported(_, reports):
            for report in reports:
                delivery = report.about
                is_done = isinstance(delivery, DeliveryChanged) and report.what in DELIVERED
                if is_done and delivery.run_id is not None:
                    yield _Delivered(delivery.delivery)
        case _:
            return
