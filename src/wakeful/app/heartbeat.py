"""The state of the heartbeat, with its last turns."""

from dataclasses import replace
from typing import Annotated, Final, NamedTuple

from wakeful.core.returned import BESIDE, returned
from wakeful.core.time.instants import Instant
from wakeful.core.time.timing_builders import as_datetime
from wakeful.features.heartbeat.queries import HeartbeatView, heartbeat_view
from wakeful.features.heartbeat.rules import HEARTBEAT, HeartbeatTerms
from wakeful.features.schedules import queries
from wakeful.features.schedules.queries import Stats
from wakeful.features.schedules.run_views import RunView
from wakeful.ports.owners import Owners
from wakeful.ports.store import Tx

LAST_TURNS: Final = 10


class HeartbeatState(NamedTuple):
    """The state of the heartbeat."""

    view: Annotated[HeartbeatView, BESIDE]
    last_turns: list[RunView]


STATE: Final = returned(HeartbeatState, name="Heartbeat")


def heartbeat_state(tx: Tx, terms: HeartbeatTerms, *, now: Instant) -> HeartbeatState:
    """The current state of the heartbeat, with its last turns, newest first."""
    turns = [] if tx[Owners].find(HEARTBEAT) is None else queries.runs(tx, HEARTBEAT, limit=LAST_TURNS)
    return HeartbeatState(heartbeat_view(tx, terms, now=now), turns)


def with_next_beat(tx: Tx, stats: Stats, terms: HeartbeatTerms, *, now: Instant) -> Stats:
    """The statistics of the heartbeat, with its last turn and its next beat."""
    state = heartbeat_view(tx, terms, now=now)
    return replace(stats, next_run=as_datetime(state.next_beat), last_run=as_datetime(state.last_turn))
