"""Commands and queries for the heartbeat."""

from dataclasses import replace
from typing import Any, TypedDict, Unpack

from wakeful.app.definitions import Definitions
from wakeful.core.refusals import Conflict
from wakeful.core.time.instants import Instant
from wakeful.features.heartbeat.commands import WakeResult, reason_of, request_wake
from wakeful.features.heartbeat.queries import HeartbeatView, heartbeat_view
from wakeful.features.heartbeat.rules import HEARTBEAT, HeartbeatTerms
from wakeful.features.schedules import queries
from wakeful.features.schedules.queries import Stats
from wakeful.features.schedules.views import RunView, as_datetime
from wakeful.ports.store import SystemEvent, Tx

LAST_TURNS = 10


class WakeOrigin(TypedDict, total=False):
    """The origin of a request for a turn."""

    source: str | None
    run: tuple[int, str] | None  # the turn that asks: its id, and the token it was given
    by_run: bool  # the caller has already been identified as a run


class HeartbeatCommands(Definitions):
    """Wakes the heartbeat and reads its state."""

    async def request_wake(
        self,
        reason: str = "manual",
        text: str | None = None,
        context_key: str | None = None,
        **origin: Unpack[WakeOrigin],
    ) -> bool:
        """Request a heartbeat turn, and tell the agent why; returns whether it was merged into one already requested.

        Requests within 250 ms become one turn. `text` becomes a system event, replacing an earlier one with the same
        `context_key`."""
        return (await self.wake(reason, text, context_key, **origin)).is_coalesced

    async def wake(
        self,
        reason: str = "manual",
        text: str | None = None,
        context_key: str | None = None,
        **origin: Unpack[WakeOrigin],
    ) -> WakeResult:
        """`request_wake`, with the events that were evicted to make room for `text`."""
        wanted, parts, run = reason_of(reason), self._open, origin.get("run")
        is_own = run is not None and parts.receipts is not None and parts.receipts.is_genuine(*run)
        if run is not None and not is_own:
            raise Conflict("the token does not belong to that run; give the run and the token of the turn, or neither")

        def wake(tx: Tx, now: Instant) -> WakeResult:
            return request_wake(
                tx,
                wanted,
                now=now,
                apply=parts.apply,
                text=text,
                context_key=context_key,
                source=origin.get("source"),
                is_own=is_own or origin.get("by_run", False),
            )

        return await self._command(wake)

    async def heartbeat(self) -> tuple[HeartbeatView, list[RunView]]:
        """The state of the heartbeat, with its last turns."""
        now, terms = self._clock.read().now, self._heartbeat.terms

        def read(tx: Tx) -> tuple[HeartbeatView, list[RunView]]:
            runs = [] if tx.owners.find(HEARTBEAT) is None else queries.runs(tx, HEARTBEAT, limit=LAST_TURNS)
            return heartbeat_view(tx, terms, now=now), runs

        return await self._open.store.read(read)

    async def system_events(self) -> list[SystemEvent]:
        """The system events queued for the next turn."""
        return await self._open.store.read(lambda tx: tx.system_events.all())


def with_next_beat(tx: Tx, stats: Stats, terms: HeartbeatTerms, *, now: Instant) -> Stats:
    """The statistics of the heartbeat, with its last turn and its next beat."""
    state = heartbeat_view(tx, terms, now=now)
    return replace(stats, next_run=as_datetime(state.next_beat), last_run=as_datetime(state.last_turn))


def heartbeat_json(state: HeartbeatView, turns: list[RunView]) -> dict[str, Any]:
    """The heartbeat's state and last turns as JSON."""
    return {**state.to_json(), "lastTurns": [run.to_json() for run in turns]}
