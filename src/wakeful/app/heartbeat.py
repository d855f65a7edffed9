"""Commands and queries for the heartbeat of an app."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, TypedDict, Unpack

from wakeful.app.bootstrap import Parts
from wakeful.core.heartbeat.heartbeat import WINDOW
from wakeful.core.refusals import Conflict
from wakeful.core.schedule.upcoming import Upcoming
from wakeful.core.time.instants import Instant
from wakeful.features.heartbeat import planning
from wakeful.features.heartbeat.commands import WakeResult, reason_of, request_wake
from wakeful.features.heartbeat.feature import HeartbeatFeature
from wakeful.features.heartbeat.queries import HeartbeatView, next_beats, standing
from wakeful.features.heartbeat.rules import HEARTBEAT, HeartbeatTerms
from wakeful.features.heartbeat.why import why
from wakeful.features.schedules import queries
from wakeful.features.schedules.queries import Stats
from wakeful.features.schedules.views import RunView, as_datetime
from wakeful.features.schedules.why import Why
from wakeful.ports.store import SystemEvent, Tx

LAST_TURNS = 10


class WakeOrigin(TypedDict, total=False):
    """The origin of a request for a turn."""

    source: str | None
    run: tuple[int, str] | None  # the turn that asks: its id, and the token it was given
    by_run: bool  # the caller has already been identified as a run


class AppHeartbeat:
    """Commands and questions about the heartbeat of a system that is put together."""

    def __init__(self, parts: Parts, feature: HeartbeatFeature) -> None:
        self._parts = parts
        self._feature = feature

    async def request_wake(
        self, reason: str, text: str | None, context_key: str | None, **origin: Unpack[WakeOrigin]
    ) -> WakeResult:
        """Request a turn."""
        wanted, parts, run = reason_of(reason), self._parts, origin.get("run")
        is_own = run is not None and parts.receipts is not None and parts.receipts.is_genuine(*run)
        if run is not None and not is_own:
            raise Conflict("the token does not belong to that run; give the run and the token of the turn, or neither")
        now = parts.clock.read().now
        woken = await parts.store.write(
            lambda tx: request_wake(
                tx,
                wanted,
                now=now,
                apply=parts.apply,
                text=text,
                context_key=context_key,
                source=origin.get("source"),
                is_own=is_own or origin.get("by_run", False),
            )
        )
        parts.engine.ring_bell()
        return woken

    async def pause(self, until: Instant | None) -> None:
        """No beats until it is resumed, or until a time."""
        await self._command(partial(planning.pause, until=until))

    async def resume(self) -> None:
        """Resume the beats from now on."""
        await self._command(planning.resume)

    async def _command(self, command: Callable[..., None]) -> None:
        now, terms = self._parts.clock.read().now, self._feature.terms
        await self._parts.store.write(lambda tx: command(tx, terms, now=now))
        self._parts.engine.ring_bell()

    async def standing(self) -> tuple[HeartbeatView, list[RunView]]:
        """Its state, with its last turns."""
        now, terms = self._parts.clock.read().now, self._feature.terms

        def read(tx: Tx) -> tuple[HeartbeatView, list[RunView]]:
            runs = [] if tx.owners.find(HEARTBEAT) is None else queries.runs(tx, HEARTBEAT, limit=LAST_TURNS)
            return standing(tx, terms, now=now), runs

        return await self._parts.store.read(read)

    def upcoming(self, tx: Tx, *, until: Instant, limit: int) -> list[Upcoming]:
        """The upcoming beats."""
        beats = next_beats(tx, self._feature.terms, until=until - WINDOW, limit=limit)
        return [Upcoming(at + WINDOW, HEARTBEAT, at, "beat") for at in beats]

    async def events(self) -> list[SystemEvent]:
        """The system events queued for the next turn."""
        return await self._parts.store.read(lambda tx: tx.system_events.all())

    async def why(self, at: Instant | None) -> Why:
        """Why it is in its state, or what happened at a time."""
        now, terms = self._parts.clock.read().now, self._feature.terms
        sentence, facts = await self._parts.store.read(lambda tx: why(tx, terms, at=at, now=now))
        return Why(sentence, facts)


def with_next_beat(tx: Tx, stats: Stats, terms: HeartbeatTerms, *, now: Instant) -> Stats:
    """The record of the heartbeat, with when it last turned and when it beats next."""
    view = standing(tx, terms, now=now)
    return replace(stats, next_run=as_datetime(view.next_beat), last_run=as_datetime(view.last_turn))


def heartbeat_json(view: HeartbeatView, turns: list[RunView]) -> dict[str, Any]:
    """Both as JSON has them."""
    return {**view.to_json(), "lastTurns": [run.to_json() for run in turns]}
