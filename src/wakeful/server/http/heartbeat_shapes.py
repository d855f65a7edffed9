"""The shapes of the heartbeat: wakes, how it stands, what the agent is to be told."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from wakeful.server.http.shapes import ActiveHours, At, Duration, Run, RunId, Shape


class Wake(Shape):
    """A request for a turn."""

    reason: Literal["cron", "message", "manual", "hook"] | None = None
    text: Annotated[str, Field(min_length=1, max_length=8_000, description="what the agent is to be told")] | None = (
        None
    )
    context_key: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    run_id: Annotated[RunId | None, Field(description="of the turn that asks, if one does")] = None
    token: Annotated[str | None, Field(description="of that turn's run")] = None


class HookCall(BaseModel):
    """What an inbound hook may say; other fields are not looked at."""

    model_config = ConfigDict(alias_generator=to_camel)

    text: Annotated[str, Field(min_length=1, max_length=8_000)] | None = None
    context_key: Annotated[str, Field(min_length=1, max_length=200)] | None = None


class Evicted(Shape):
    """A system event that was dropped unheard."""

    id: str
    source: str


class Woken(Shape):
    """A turn follows."""

    coalesced: Annotated[bool, Field(description="whether one was asked for already")]
    evicted: Annotated[
        list[Evicted], Field(description="the oldest waiting events, dropped because too many wait; left out if none")
    ] = []


class Pending(Shape):
    """Requests that wait for their turn."""

    reason: str
    own: Annotated[bool, Field(description="whether a turn itself asked")]
    times: int


class Budget(Shape):
    """How many turns there may be."""

    turns_per_hour_max: int
    turns_in_last_hour: int
    tripped_at: Annotated[At | None, Field(description="since when it is overdrawn")]
    held_until: Annotated[At | None, Field(description="no turn begins before")]


class Heartbeat(Shape):
    """How the heartbeat stands."""

    enabled: bool
    status: Literal["disabled", "paused", "idle", "waiting", "running"]
    agent: str
    every: Duration
    active_hours: ActiveHours | None
    next_beat: At | None
    next_turn: Annotated[At | None, Field(description="what was asked for becomes a turn then")]
    open_run: RunId | None
    pending: list[Pending]
    asked_at: At | None
    retry_at: At | None
    budget: Budget
    spacing_min: Duration
    consecutive_errors: int
    last_turn: At | None
    last_error: str | None
    session_id: str | None
    events: Annotated[int, Field(description="how many wait for the next turn")]
    paused_at: At | None
    resume_at: Annotated[At | None, Field(description="when a pause ends by itself")]
    last_turns: list[Run]


class SystemEvent(Shape):
    """Something the agent is to be told in its next turn."""

    id: str
    context_key: str | None
    source: str
    text: str
    at: At
    revision: int
    slug: str | None
    run_id: RunId | None
    carried_by: Annotated[RunId | None, Field(description="the turn that last gave it to the agent")]


class SystemEvents(Shape):
    """What waits for the next turn, oldest first."""

    events: list[SystemEvent]
