"""Queries on the heartbeat. Queries never write (L1)."""

from dataclasses import dataclass
from typing import Annotated, Final, Literal, TypeAlias

from wakeful.core.heartbeat.heartbeat import (
    WINDOW,
    Wake,
    due_of,
    flush_at,
    next_beat,
    timing_of,
    turns_within,
    wakes_of,
)
from wakeful.core.kinds import DURATION_SCHEMA
from wakeful.core.returned import INTERNAL, At, Named, RunId, kind, returned
from wakeful.core.run.runs import Run
from wakeful.core.schedule.upcoming import Upcoming
from wakeful.core.schema_json import schema_of
from wakeful.core.time.active_hours import DESCRIPTION, ActiveHours
from wakeful.core.time.instants import Duration, Instant, format_duration
from wakeful.features.heartbeat.rules import HEARTBEAT, HeartbeatTerms
from wakeful.features.heartbeat.state import find
from wakeful.ports.heartbeats import WaitingEvents
from wakeful.ports.store import Tx

Status: TypeAlias = Literal["disabled", "paused", "idle", "waiting", "running"]


@dataclass(frozen=True, slots=True)
class Pending:
    """Wake requests that wait for a turn."""

    reason: str
    is_own: Annotated[bool, "whether a turn itself requested it", Named("own")]
    times: int


@dataclass(frozen=True, slots=True)
class TurnBudget:
    """The turn budget."""

    turns_per_hour_max: int
    turns_in_last_hour: int
    tripped_at: Annotated[At | None, "when it was exceeded"]
    held_until: Annotated[At | None, "no turn starts before this"]


@dataclass(frozen=True, slots=True)
class HeartbeatView:
    """The state of the heartbeat."""

    terms: Annotated[HeartbeatTerms, INTERNAL]
    status: Status
    next_beat: At | None
    next_turn: Annotated[At | None, "when the pending requests become a turn"]  # if none is open
    open_run: Annotated[Run | None, INTERNAL]
    wakes: Annotated[tuple[Wake, ...], INTERNAL]
    asked_at: At | None
    retry_at: At | None
    held_until: Annotated[Instant | None, INTERNAL]
    tripped_at: Annotated[Instant | None, INTERNAL]
    turns_in_hour: Annotated[int, INTERNAL]
    errors_in_a_row: Annotated[int, Named("consecutiveErrors")]
    last_turn: At | None
    last_error: str | None
    session_id: str | None
    events: Annotated[int, "number queued for the next turn"]
    paused_at: At | None
    resume_at: Annotated[At | None, "when a pause ends automatically"]

    @property
    def enabled(self) -> bool:
        return self.terms.enabled

    @property
    def agent(self) -> str:
        return self.terms.agent

    @property
    def every(self) -> Duration:
        return self.terms.every

    @property
    def active_hours(self) -> ActiveHours | None:
        return self.terms.beats.hours

    @property
    def spacing_min(self) -> Duration:
        return self.terms.beats.spacing_min

    @property
    def open_run_id(self) -> int | None:
        return None if self.open_run is None else self.open_run.run_id

    @property
    def pending(self) -> list[Pending]:
        return [Pending(wake.reason, wake.is_own, wake.times) for wake in self.wakes]

    @property
    def budget(self) -> TurnBudget:
        return TurnBudget(self.terms.beats.turns_per_hour_max, self.turns_in_hour, self.tripped_at, self.held_until)


_LENGTH: Final = kind(DURATION_SCHEMA, format_duration)
STATE: Final = returned(
    HeartbeatView,
    properties={
        "enabled": bool,
        "agent": str,
        "every": Annotated[Duration, _LENGTH],
        "active_hours": Annotated[ActiveHours, kind(schema_of(DESCRIPTION), DESCRIPTION.write)] | None,
        "spacing_min": Annotated[Duration, _LENGTH],
        "open_run_id": Annotated[RunId | None, Named("openRun")],
        "pending": list[Pending],
        "budget": TurnBudget,
    },
)


def heartbeat_view(tx: Tx, terms: HeartbeatTerms, *, now: Instant) -> HeartbeatView:
    """The current state; a heartbeat that was never started is disabled and empty."""
    state = find(tx)
    if state is None:
        nothing: tuple[Wake, ...] = ()
        return HeartbeatView(
            terms, "disabled", None, None, None, nothing, None, None, None, None, 0, 0, None, None, None, 0, None, None
        )
    heartbeat, cadence = state
    run = None if cadence.open_run_id is None else tx.runs.lock([cadence.open_run_id]).get(cadence.open_run_id)
    held_until = heartbeat.held_until if heartbeat.held_until is not None and heartbeat.held_until > now else None
    beat = cadence.next_at if cadence.state == "active" else None
    return HeartbeatView(
        terms=terms,
        status=_status(cadence.state, run),
        next_beat=None if beat is None else due_of(terms.beats.hours, beat),
        next_turn=None if run is not None else flush_at(heartbeat, terms.beats),
        open_run=run,
        wakes=wakes_of(heartbeat),
        asked_at=heartbeat.asked_at,
        retry_at=heartbeat.retry_at,
        held_until=held_until,
        tripped_at=heartbeat.tripped_at,
        turns_in_hour=len(turns_within(heartbeat, now)),
        errors_in_a_row=cadence.consecutive_errors,
        last_turn=cadence.last_run_at,
        last_error=cadence.last_error,
        session_id=cadence.session_id,
        events=len(tx[WaitingEvents].all()),
        paused_at=cadence.state_at if cadence.state == "paused" else None,
        resume_at=cadence.resume_at if cadence.state == "paused" else None,
    )


def upcoming_beats(tx: Tx, terms: HeartbeatTerms, *, until: Instant, limit: int) -> list[Upcoming]:
    """The upcoming beats until a time; each starts at the end of its window."""
    state = find(tx)
    if state is None or state.cadence.state != "active":
        return []
    beats: list[Upcoming] = []
    beat = state.cadence.next_at
    while beat is not None and (at := due_of(terms.beats.hours, beat)) + WINDOW <= until and len(beats) < limit:
        beats.append(Upcoming(at + WINDOW, HEARTBEAT, at, "beat", ""))
        beat = next_beat(timing_of(state.heartbeat), terms.beats.hours, beat)
    return beats


def _status(state: str, run: Run | None) -> Status:
    if run is not None:
        return "running" if run.outcome == "running" or run.stuck else "waiting"
    return "idle" if state == "active" else "paused" if state == "paused" else "disabled"
