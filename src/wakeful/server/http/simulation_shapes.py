"""Shapes of simulations, for OpenAPI."""

from typing import Annotated, Any

from pydantic import Field

from wakeful.server.http.shapes import At, Shape

Slug = Annotated[str, Field(description="a slug, or heartbeat")]


class Period(Shape):
    """A period of time."""

    from_: Annotated[At, Field(alias="from")]
    until: At


class UsedUpSlot(Period):
    """A slot's quota is used up."""

    slot: str


class UsedUpBudget(Period):
    """A budget is used up."""

    scope: Annotated[str, Field(description="all, agent:NAME or schedule:SLUG")] = "all"


class SimulationRequest(Shape):
    """What to simulate."""

    days: Annotated[int | None, Field(ge=1, le=366, description="how many days; default: 7")] = None
    from_: Annotated[At | None, Field(alias="from", description="default: now, with everything that waits")] = None
    until: Annotated[At | None, Field(description="instead of days")] = None
    with_: Annotated[
        list[dict[str, Any]] | None, Field(alias="with", description="definitions that are added or replace others")
    ] = None
    without: Annotated[list[str] | None, Field(description="slugs that are left out")] = None
    outages: Annotated[list[Period] | None, Field(description="when nothing runs")] = None
    failing: Annotated[dict[str, float] | None, Field(description="the share of attempts that fail, by slug")] = None
    slow: Annotated[dict[str, str] | None, Field(description="how long attempts take, by slug")] = None
    quota: list[UsedUpSlot] | None = None
    budgets: list[UsedUpBudget] | None = None
    seed: Annotated[int, Field(ge=0, description="the same seed gives the same result")] = 0


class SimulatedSums(Shape):
    """Totals of a simulation."""

    runs: Annotated[int, Field(description="instants that ran, with any outcome")]
    succeeded: int
    failed: Annotated[int, Field(description="failed, timedOut, unconfirmed and unknown")]
    open: Annotated[int, Field(description="still running or waiting at the end")]
    outcomes: dict[str, int]
    skipped: Annotated[dict[str, int], Field(description="instants, by reason")]
    missed: Annotated[dict[str, int], Field(description="instants, by reason")]
    tokens: int
    cost: Annotated[float | None, Field(description="all known costs, in US dollars; null: none is known")]
    unknown_costs: Annotated[int, Field(description="turns whose cost is unknown; they are not in the sum")]


class SimulatedSchedule(SimulatedSums):
    """One schedule."""

    slug: Slug


class SimulatedDay(SimulatedSums):
    """One local day."""

    date: str


class SimulatedLane(Shape):
    """How long runs waited for one lane."""

    lane: str
    runs: int
    waited: Annotated[int, Field(description="how many had to wait")]
    longest: str
    total: str


class SimulatedPeak(Shape):
    """The largest number of runs at the same time."""

    running: int
    at: At | None


class OnlyInOne(Shape):
    """Runs of one schedule that are only in one of the two plans."""

    slug: Slug
    runs: int
    first: At


class ChangedSchedule(Shape):
    """A schedule whose runs end differently or start at another time."""

    slug: Slug
    outcomes: Annotated[int, Field(description="how many end differently")]
    starts: Annotated[int, Field(description="how many start at another time")]
    before: SimulatedSums
    after: SimulatedSums


class PlanDifference(Shape):
    """The difference from the current plan."""

    sentence: str
    added: list[OnlyInOne]
    removed: list[OnlyInOne]
    changed: list[ChangedSchedule]
    cost: Annotated[float, Field(description="how much more it costs, in US dollars")]


class SimulatedRun(Shape):
    """One row of the simulated ledger."""

    slug: Slug
    planned_at: At
    started_at: At | None
    ended_at: At | None
    trigger: str
    outcome: str
    reason: str | None
    count: Annotated[int | None, Field(description="of instants that did not run")] = None
    planned_until: At | None = None
    cost: Annotated[float | None, Field(description="only of turns; null: unknown")] = None


class Simulation(Shape):
    """What would happen."""

    from_: Annotated[At, Field(alias="from")]
    until: At
    seed: int
    timezone: Annotated[str, Field(description="of the days")]
    schedules: list[SimulatedSchedule]
    days: list[SimulatedDay]
    lanes: Annotated[list[SimulatedLane], Field(description="the longest waits first")]
    peak: SimulatedPeak
    difference: PlanDifference
    rows: Annotated[list[SimulatedRun] | None, Field(description="with ?rows=true, in order")] = None


class Expected(Shape):
    """What to expect, and the range from the 5th to the 95th percentile."""

    low: float
    expected: float
    high: float


class ForecastSums(Shape):
    """What to expect of a number of days."""

    runs: int
    tokens: Expected
    cost: Annotated[Expected, Field(description="in US dollars")]


class ForecastDay(ForecastSums):
    """One local day; the first and the last are partial."""

    date: str
    cost_so_far: Annotated[Expected, Field(description="of all full days up to this one")]


class ForecastSchedule(Shape):
    """One schedule."""

    slug: Slug
    runs: int
    turns: Annotated[int, Field(description="attempts that an agent is paid for")]
    cost: Annotated[float | None, Field(description="expected, in US dollars; null: unknown")]


class Collision(Shape):
    """A schedule whose runs wait for a lane for at least a minute."""

    lane: str
    slug: Slug
    runs: int
    longest: str
    first: At


class UsedUpWindow(Shape):
    """A quota window that is used up before it resets."""

    slot: str
    exhausted_at: At
    resets_at: At
    fits: Annotated[At, Field(description="when quota is available again")]
    slugs: Annotated[list[str], Field(description="schedules that are due in between")]


class BudgetAtRisk(Shape):
    """A budget that may be used up."""

    scope: str
    period: str
    unit: str
    date: Annotated[str, Field(description="the day, or the first day of the period in this forecast")]
    limit: float
    spent: Annotated[float, Field(description="spent so far in this period")]
    expected: float
    high: float
    risk: Annotated[float, Field(description="probability that it is used up, from 0 to 1")]
    skipped: Annotated[int, Field(description="instants that would be skipped")]


class ComparedCost(Expected):
    """A forecast and what happened."""

    actual: float


class Accuracy(Shape):
    """How the last forecast compared with what happened."""

    made_at: At
    from_: Annotated[At, Field(alias="from")]
    until: At
    days: Annotated[int, Field(description="full days that have passed")]
    cost: ComparedCost
    turns: int
    error: Annotated[float | None, Field(description="0.1: it was 10 % too high")]
    within: Annotated[bool, Field(description="whether what happened was within the range")]


class Forecast(Shape):
    """What to expect."""

    from_: Annotated[At, Field(alias="from")]
    until: At
    timezone: str
    days: list[ForecastDay]
    total: ForecastSums
    schedules: list[ForecastSchedule]
    unknown_costs: Annotated[int, Field(description="turns whose cost is unknown; they are not in the sums")]
    collisions: Annotated[list[Collision], Field(description="the longest waits first")]
    windows: list[UsedUpWindow]
    budgets: list[BudgetAtRisk]
    accuracy: Accuracy | None
