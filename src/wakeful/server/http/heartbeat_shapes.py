"""Shapes of the heartbeat: wakes, state, system events; for OpenAPI."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema
from pydantic.alias_generators import to_camel

from wakeful.core.schema_json import schema_of
from wakeful.core.time.active_hours import DESCRIPTION
from wakeful.server.http.shapes import At, Duration, Run, RunId, Shape

ActiveHours = Annotated[dict[str, str], WithJsonSchema(schema_of(DESCRIPTION))]


class Wake(Shape):
    """A request for a turn."""

    reason: Literal["cron", "message", "manual", "hook"] | None = None
    text: Annotated[str, Field(min_length=1, max_length=8_000, description="text for the agent")] | None = None
    context_key: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    run_id: Annotated[RunId | None, Field(description="run id of the requesting turn, if any")] = None
    token: Annotated[str | None, Field(description="token of that run")] = None


class HookCall(BaseModel):
    """The body of an inbound hook; other fields are ignored."""

    model_config = ConfigDict(alias_generator=to_camel)

    text: Annotated[str, Field(min_length=1, max_length=8_000)] | None = None
    context_key: Annotated[str, Field(min_length=1, max_length=200)] | None = None


class Evicted(Shape):
    """A system event that was dropped before any turn."""

    id: str
    source: str


class Woken(Shape):
    """A turn was requested."""

    coalesced: Annotated[bool, Field(description="whether it was merged into a turn that was already requested")]
    evicted: Annotated[
        list[Evicted], Field(description="oldest events, dropped because the queue was full; absent if none")
    ] = []


class Pending(Shape):
    """Wake requests that wait for a turn."""

    reason: str
    own: Annotated[bool, Field(description="whether a turn itself requested it")]
    times: int


class TurnBudget(Shape):
    """The turn budget."""

    turns_per_hour_max: int
    turns_in_last_hour: int
    tripped_at: Annotated[At | None, Field(description="when it was exceeded")]
    held_until: Annotated[At | None, Field(description="no turn starts before this")]


class Heartbeat(Shape):
    """The state of the heartbeat."""

    enabled: bool
    status: Literal["disabled", "paused", "idle", "waiting", "running"]
    agent: str
    every: Duration
    active_hours: ActiveHours | None
    next_beat: At | None
    next_turn: Annotated[At | None, Field(description="when the pending requests become a turn")]
    open_run: RunId | None
    pending: list[Pending]
    asked_at: At | None
    retry_at: At | None
    budget: TurnBudget
    spacing_min: Duration
    consecutive_errors: int
    last_turn: At | None
    last_error: str | None
    session_id: str | None
    events: Annotated[int, Field(description="number queued for the next turn")]
    paused_at: At | None
    resume_at: Annotated[At | None, Field(description="when a pause ends automatically")]
    last_turns: list[Run]


class SystemEvent(Shape):
    """A system event for the agent's next turn."""

    id: str
    context_key: str | None
    source: str
    text: str
    at: At
    revision: int
    slug: str | None
    run_id: RunId | None
    carried_by: Annotated[RunId | None, Field(description="the turn that last passed it to the agent")]


class SystemEvents(Shape):
    """System events queued for the next turn, oldest first."""

    events: list[SystemEvent]
