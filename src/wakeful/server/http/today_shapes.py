"""The response shape of `/api/today`, for OpenAPI."""

from typing import Annotated

from pydantic import Field

from wakeful.app.attention import Kind, Level
from wakeful.server.http.shapes import At, Fire, Outcome, Run, RunId, Shape, Status


class AttentionItem(Shape):
    """One problem. The ids name what can be acted on."""

    kind: Kind
    level: Annotated[Level, Field(description="note: intended, or forgotten")]
    title: str
    sentence: str
    cure: str | None = None
    at: Annotated[At | None, Field(description="since when")] = None
    slug: str | None = None
    run_id: RunId | None = None
    delivery_id: str | None = None
    approval_id: str | None = None
    alert_id: str | None = None
    agent: str | None = None
    status: Status | None = None
    field: Annotated[str | None, Field(description="the field of the definition that cures it")] = None
    needed: Annotated[float | None, Field(description="the limit that would be enough for one more run")] = None


class TodayCounts(Shape):
    """How many runs run and wait, how many schedules fail and are late, and how many messages are unread."""

    running: int
    waiting: int
    failing: int
    late: int
    unread: int


class Happened(Shape):
    """What happened since the last visit."""

    since: At
    counts: Annotated[dict[Outcome, int], Field(description="instants by outcome, among the newest 200 rows")]
    failed: Annotated[int, Field(description="how many of them failed")]
    is_cut: Annotated[bool, Field(description="whether there was more than is counted")]
    runs: Annotated[list[Run], Field(description="the newest that failed or have a reply")]


class TodayCost(Shape):
    """What agents cost today, in the budgets' time zone."""

    cost: Annotated[float, Field(description="in US dollars; unknown costs are left out")]
    tokens: int
    runs: int
    unknown: Annotated[int, Field(description="number of runs whose cost is unknown")]


class TodayFire(Fire):
    """An upcoming start. With `budgetFreesAt`, a budget is used up until then: the start is skipped, and a one-time
    schedule waits."""

    budget_frees_at: At | None


class Today(Shape):
    """The state of everything, in short."""

    now: At
    attention: Annotated[list[AttentionItem], Field(description="worst first; at most 20 of each kind")]
    counts: TodayCounts
    running: list[Run]
    upcoming: Annotated[list[TodayFire], Field(description="the next start of each, soonest first")]
    happened: Happened
    cost: TodayCost
    is_echo: Annotated[bool, Field(description="whether the echo agent is the only one")]
