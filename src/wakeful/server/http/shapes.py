"""Shapes of requests and responses, for OpenAPI. Tests check the responses of all routes against them.

What users write (definitions of schedules, workflows and slots) is not among them: its schema is made from its
description (`core.schema_json`).
"""

from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from wakeful.core.description import COMPONENTS, Object
from wakeful.core.kinds import DURATION_PATTERN

Text = Annotated[str, Field(min_length=1)]
Duration = Annotated[
    str,
    Field(pattern=DURATION_PATTERN, examples=["90s", "30m", "2h"]),
]
At = Annotated[str, Field(json_schema_extra={"format": "date-time"}, examples=["2026-01-30T09:00:00.000Z"])]
Slug = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$", examples=["daily-standup"])]
RunId = Annotated[str, Field(pattern=r"^[0-9]{1,18}$", examples=["42"])]
Rung = Literal["claimed", "sent", "accepted", "started", "finished"]
Outcome = Literal[
    "running", "waiting", "succeeded", "failed", "timedOut", "unconfirmed", "unknown", "cancelled", "skipped", "missed"
]
Priced = Literal["reported", "table", "unknown"]
Trigger = Literal["schedule", "catchUp", "manual", "wake", "backfill", "replay"]
Health = Literal["ok", "failing", "late", "waiting", "off"]
Status = Literal["idle", "running", "waiting", "paused", "disabled", "invalid", "done"]


class Shape(BaseModel):
    """An object with these fields and no others."""

    model_config = ConfigDict(extra="forbid", alias_generator=to_camel)


class Lineage(Shape):
    """The run that made something."""

    run_id: RunId | None
    slug: str | None
    depth: int


class RunSummary(Shape):
    """A ledger row in short form."""

    run_id: RunId
    planned_at: At
    started_at: At | None
    ended_at: At | None
    trigger: Trigger
    outcome: Outcome
    reason: str | None
    error: Annotated[str | None, Field(description="first 200 characters")]
    count: Annotated[int, Field(description="number of instants that the row covers, if more than one")] = 1
    planned_until: At | None = None


class MonthlyCost(Shape):
    """The cost of 30 days at the present rate."""

    runs: int
    cost: Annotated[float | None, Field(description="at the average of the last runs; null if that is unknown")]


class ScheduleCost(Shape):
    """The cost of a schedule's runs, in US dollars."""

    today: float
    month: float
    last_run: Annotated[float | None, Field(description="null if it is unknown")]
    per_month: Annotated[MonthlyCost | None, Field(description="of a schedule with a prompt; not in lists")] = None


class Schedule(Shape):
    """A schedule: definition and state. The fields of the definition are added from its description (`api`)."""

    slug: Slug
    enabled: bool
    description: Annotated[str | None, Field(description="when it runs, in words")]
    status: Status
    health: Health
    status_reason: str | None
    last_run: At | None
    last_result: Literal["success", "error"] | None
    last_outcome: Annotated[Outcome | None, Field(description="outcome of its last run or last attempt")]
    last_error: str | None
    session_id: str | None
    next_run: At | None
    consecutive_errors: int
    created_at: At
    updated_at: At
    version: int
    node: Annotated[str | None, Field(description="the node of its newest run")]
    owner: Annotated[str | None, Field(description="the agent that owns it; null: a person")]
    lineage: Annotated[Lineage | None, Field(description="the run that made it, if an agent did")]
    approval: Annotated[
        Literal["pending", "approved", "rejected"] | None,
        Field(description="the approval of an agent's schedule; null if none is needed"),
    ]
    cost: Annotated[ScheduleCost | None, Field(description="null if its runs cost nothing that is known here")] = None
    next: Annotated[list[At], Field(description="with dryRun: the next five times")] = []
    recent: Annotated[list[RunSummary], Field(description="with recent: the latest ledger rows")] = []


class Schedules(Shape):
    """A page of schedules, ordered by slug."""

    schedules: list[Schedule]
    next: Annotated[str | None, Field(description="cursor of the next page; null on the last page")]


class Attempt(Shape):
    """One attempt of a run."""

    attempt: int
    started_at: At | None
    ended_at: At | None
    outcome: str
    rung: Rung | None
    error: str | None
    node: Annotated[str | None, Field(description="the node that made it")]


class RunDelivery(Shape):
    """The delivery of a run's reply; the run's outcome does not depend on it."""

    status: Literal["pending", "delivered", "dead", "suppressed"]
    reason: Annotated[str | None, Field(description="if suppressed: why there is nothing to deliver")] = None
    id: str | None = None
    channel: str | None = None
    to: str | None = None
    attempts: int = 0
    last_error: str | None = None
    ended_at: At | None = None
    purpose: Annotated[
        Literal["message", "alert", "note"] | None, Field(description="note: a message that no reply could be read")
    ] = None


class Usage(Shape):
    """Tokens and cost of one run; null if unknown."""

    input: Annotated[int | None, Field(description="input tokens, including cached ones")]
    cached_input: Annotated[int | None, Field(description="input tokens read from a cache")]
    output: Annotated[int | None, Field(description="output tokens, including reasoning")]
    reasoning: int | None
    total: int | None
    model: str | None
    cost: Annotated[float | None, Field(description="in US dollars")]
    priced: Priced
    list_price: Annotated[
        bool, Field(description="the cost is the list price of the tokens; a subscription is paid differently")
    ] = False


class Run(Shape):
    """One row of the ledger."""

    run_id: RunId
    slug: str
    planned_at: At
    due_at: At
    started_at: At | None
    ended_at: At | None
    attempt: int
    attempts: list[Attempt]
    trigger: Trigger
    outcome: Outcome
    reason: str | None
    rung: Rung | None
    error: str | None
    next_attempt_at: At | None
    session_id: str | None
    usage: Usage | None
    cost: Annotated[float | None, Field(description="in US dollars; null if unknown")]
    priced: Priced
    node: Annotated[str | None, Field(description="the node that runs it, or ran it last")]
    run_on: Annotated[list[str], Field(description="labels of which a node needs one to begin it")] = []
    count: Annotated[int, Field(description="number of instants that the row covers, if more than one")] = 1
    planned_until: At | None = None
    reply: str | None = None
    output: str | None = None
    stderr: Annotated[str | None, Field(description="what a command wrote to stderr")] = None
    delivery: Annotated[RunDelivery | None, Field(description="first of `deliveries`, or why there is none")] = None
    deliveries: Annotated[list[RunDelivery], Field(description="one for each recipient")] = []
    blocked_by: RunId | None = None
    stuck: bool = False
    replay_of: Annotated[RunId | None, Field(description="the run whose instant it runs once more")] = None
    cancel_requested_at: Annotated[At | None, Field(description="when a person asked to cancel it")] = None
    reasons: Annotated[list[str], Field(description="for a turn: all wake requests, in order")] = []
    ladder: Annotated[dict[str, At], Field(description="when each rung was reached")] = {}
    refused_tools: Annotated[list[str], Field(description="tools that the agent was not allowed to use")] = []


class LogLine(Shape):
    """One line of the log."""

    model_config = ConfigDict(alias_generator=None)

    ts: At
    level: Literal["debug", "info", "warn", "error"]
    action: str
    phase: Literal["request", "response", "error", "event"]
    flow_id: str | None = None
    duration_ms: int | None = None
    slug: str | None = None
    slot: str | None = None
    details: dict[str, Any] | None = None


class RunWithLog(Run):
    """One ledger row with its log lines."""

    log: Annotated[list[LogLine], Field(description="oldest first, as far back as it is kept")] = []
    log_is_cut: Annotated[bool, Field(description="whether there are more lines")] = False


class Runs(Shape):
    """A page of the ledger, newest first."""

    runs: list[Run]
    next: Annotated[str | None, Field(description="cursor of the next page; null on the last page")]


class HandlerRunRow(Run):
    """One ledger row of a workflow."""

    handler: Annotated[str | None, Field(description="the handler concerned")]


class WorkflowRuns(Shape):
    """A page of a workflow's ledger, newest first."""

    runs: list[HandlerRunRow]
    next: Annotated[str | None, Field(description="cursor of the next page; null on the last page")]


class Started(Shape):
    """A requested run."""

    run_id: RunId


class Stats(Shape):
    """Statistics of a schedule."""

    since: At | None
    counts: dict[Outcome, int]
    success_rate: float | None
    p50_duration_ms: int | None
    p95_duration_ms: int | None
    streak: Annotated[int, Field(description="consecutive successes; negative: consecutive errors")]
    next_run: At | None
    last_run: At | None
    tokens: Annotated[int | None, Field(description="sum over all runs with known usage; null if none")]
    cost: Annotated[float | None, Field(description="in US dollars, likewise")]


class NextTimes(Shape):
    """Planned instants, in order."""

    times: list[At]


class Why(Shape):
    """The explanation, for people and for programs."""

    sentence: str
    facts: dict[str, Any]


class Receipt(Shape):
    """A receipt: how far an agent or a command got."""

    rung: Literal["accepted", "started", "finished"]
    text: str | None = None
    usage: dict[str, Any] | None = None
    error: Text | None = None


class Received(Shape):
    """The result of a receipt: taken, late (the wait was over), or again (nothing new)."""

    status: Literal["taken", "late", "again"]


class Pause(Shape):
    """When the pause ends; without `until`, it lasts until the schedule is resumed."""

    until: At | None = None


class Backfill(Shape):
    """The range of a backfill, both ends included."""

    from_: Annotated[At, Field(alias="from")]
    until: Annotated[At | None, Field(description="default: now")] = None


class Replay(Shape):
    """Which missed instants to run."""

    since: At
    slug: Slug | None = None


class PastInstants(Shape):
    """How many past instants are run, one after another, or would be."""

    instants: int
    by_slug: Annotated[dict[str, int], Field(description="the same by schedule")]
    estimate: Annotated[
        float | None,
        Field(description="what they may cost in US dollars, from recorded costs; null: unknown; 0: no prompts"),
    ]


class StoppedBackfill(Shape):
    """How many instants will not be run."""

    left: int


class PausedTogether(Shape):
    """The schedules that were paused or resumed."""

    slugs: list[str]
    count: int


class Fire(Shape):
    """An upcoming start."""

    slug: Annotated[str, Field(description="a schedule's slug, `heartbeat`, `workflow:ID` or `slot:NAME`")]
    kind: Literal["schedule", "retry", "waiting", "beat", "producer", "wakeAt", "wake"]
    handler: Annotated[str | None, Field(description="for a workflow")]
    planned_at: At
    due_at: At


class Upcoming(Shape):
    """Upcoming starts, ordered by due time."""

    upcoming: list[Fire]
    until: Annotated[At, Field(description="the list is complete up to this time")]
    is_cut: Annotated[bool, Field(description="whether that is earlier than requested")]


class ExcludedTime(Shape):
    """Adjacent days on which a schedule does not run."""

    from_: Annotated[At, Field(alias="from")]
    until: At


class TimelineRow(Shape):
    """One schedule on the time axis."""

    slug: Slug
    status: Status
    health: Health
    status_reason: str | None
    created_at: At
    next_run: At | None
    timezone: str | None
    runs: Annotated[list[RunSummary], Field(description="newest first")]
    whole_since: Annotated[At, Field(description="the runs are complete from this time on")]
    planned: Annotated[list[At], Field(description="upcoming instants, in order")]
    whole_until: Annotated[At, Field(description="the instants are complete until this time")]
    excluded: Annotated[list[ExcludedTime], Field(description="days on which it does not run")]


class OtherRow(TimelineRow):
    """The heartbeat, a handler of a workflow or a quota slot on the time axis."""

    slug: Annotated[str, Field(description="`heartbeat`, `workflow:ID` or `slot:NAME`")]
    handler: Annotated[str | None, Field(description="of a workflow: the producer or consumer; null if unknown")]


class Timeline(Shape):
    """A page of schedules between two times, ordered by slug."""

    since: At
    until: At
    now: At
    rows: list[TimelineRow]
    others: Annotated[list[OtherRow], Field(description="on the first page: everything else with planned instants")]
    next: Annotated[str | None, Field(description="cursor of the next page; null on the last page")]


class FieldProblem(Shape):
    """One invalid field."""

    field: str
    message: str


class Problem(BaseModel):
    """An error response."""

    type: str
    title: str
    status: int
    detail: str
    errors: list[FieldProblem]
    error: Annotated[str, Field(description="a one-line summary")]


_MEANINGS: Final = {
    400: "The request is invalid; `errors` lists every invalid field.",
    401: "A token is missing or invalid.",
    403: "The `Host` or the `Origin` is not allowed.",
    404: "Not found.",
    409: "Not possible in the current state.",
    412: "It has changed since it was read: the `ETag` differs.",
    413: "The body is too large.",
    503: "The daemon is starting or stopping, or its store is unavailable.",
}
ALWAYS: Final = (400, 401, 403, 413, 503)


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The error responses of a route, besides the common ones."""
    content = {"application/problem+json": {"schema": {"$ref": f"{COMPONENTS}Problem"}}}
    return {status: {"description": _MEANINGS[status], "content": content} for status in sorted({*ALWAYS, *statuses})}


def answer(shape: type[BaseModel], text: str, **headers: str) -> dict[str, Any]:
    """One response of a route."""
    spelt = {name: {"description": said, "schema": {"type": "string"}} for name, said in headers.items()}
    return {"model": shape, "description": text, **({"headers": spelt} if headers else {})}


def body(shape: type[BaseModel] | Object[Any], *, is_required: bool = True) -> dict[str, Any]:
    """A request body that the route parses itself."""
    schema = {"$ref": COMPONENTS + (shape.name if isinstance(shape, Object) else shape.__name__)}
    return {"requestBody": {"required": is_required, "content": {"application/json": {"schema": schema}}}}
