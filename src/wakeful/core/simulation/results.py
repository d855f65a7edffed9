"""What simulations and forecasts return.

These are JSON already: another process writes them, and a simulation may have 200,000 rows. So they are typed
dictionaries and not views.
"""

from typing import Annotated, NotRequired, TypeAlias, TypedDict

from wakeful.core.returned import TimeText

Owner: TypeAlias = Annotated[str, "a slug, or heartbeat"]


From = TypedDict("From", {"from": TimeText})
"""The beginning of a period: the name is a keyword of Python."""


class SimulatedSums(TypedDict):
    """Totals of a simulation."""

    runs: Annotated[int, "instants that ran, with any outcome"]
    succeeded: int
    failed: Annotated[int, "failed, timedOut, unconfirmed and unknown"]
    open: Annotated[int, "still running or waiting at the end"]
    outcomes: dict[str, int]
    skipped: Annotated[dict[str, int], "instants, by reason"]
    missed: Annotated[dict[str, int], "instants, by reason"]
    tokens: int
    cost: Annotated[float | None, "all known costs, in US dollars; null: none is known"]
    unknownCosts: Annotated[int, "turns whose cost is unknown; they are not in the sum"]


class SimulatedSchedule(SimulatedSums):
    """One schedule."""

    slug: Owner


class SimulatedDay(SimulatedSums):
    """One local day."""

    date: str


class LaneWaits(TypedDict):
    """How long runs waited."""

    runs: int
    waited: Annotated[int, "how many had to wait"]
    longest: str
    total: str


class SimulatedLane(LaneWaits):
    """How long runs waited for one lane."""

    lane: str


class SimulatedPeak(TypedDict):
    """The largest number of runs at the same time."""

    running: int
    at: TimeText | None


class OnlyInOne(TypedDict):
    """Runs of one schedule that are only in one of the two plans."""

    slug: Owner
    runs: int
    first: TimeText


class ChangedSchedule(TypedDict):
    """A schedule whose runs end differently or start at another time."""

    slug: Owner
    outcomes: Annotated[int, "how many end differently"]
    starts: Annotated[int, "how many start at another time"]
    before: SimulatedSums
    after: SimulatedSums


class PlanDifference(TypedDict):
    """The difference from the current plan."""

    sentence: str
    added: list[OnlyInOne]
    removed: list[OnlyInOne]
    changed: list[ChangedSchedule]
    cost: Annotated[float, "how much more it costs, in US dollars"]


class SimulatedRun(TypedDict):
    """One row of the simulated ledger."""

    slug: Owner
    plannedAt: TimeText
    startedAt: TimeText | None
    endedAt: TimeText | None
    trigger: str
    outcome: str
    reason: str | None
    count: NotRequired[Annotated[int | None, "of instants that did not run"]]
    plannedUntil: NotRequired[TimeText | None]
    cost: NotRequired[Annotated[float | None, "only of turns; null: unknown"]]


class Simulation(From):
    """What would happen."""

    until: TimeText
    seed: int
    timezone: Annotated[str, "of the days"]
    schedules: list[SimulatedSchedule]
    days: list[SimulatedDay]
    lanes: Annotated[list[SimulatedLane], "the longest waits first"]
    peak: SimulatedPeak
    difference: PlanDifference
    rows: NotRequired[Annotated[list[SimulatedRun] | None, "with ?rows=true, in order"]]


class Expected(TypedDict):
    """What to expect, and the range from the 5th to the 95th percentile."""

    low: float
    expected: float
    high: float


class ForecastSums(TypedDict):
    """What to expect of a number of days."""

    runs: int
    tokens: Expected
    cost: Annotated[Expected, "in US dollars"]


class ForecastDay(ForecastSums):
    """One local day; the first and the last are partial."""

    date: str
    costSoFar: Annotated[Expected, "of all full days up to this one"]


class ForecastSchedule(TypedDict):
    """One schedule."""

    slug: Owner
    runs: int
    turns: Annotated[int, "attempts that an agent is paid for"]
    cost: Annotated[float | None, "expected, in US dollars; null: unknown"]


class Collision(TypedDict):
    """A schedule whose runs wait for a lane for at least a minute."""

    lane: str
    slug: Owner
    runs: int
    longest: str
    first: TimeText


class UsedUpWindow(TypedDict):
    """A quota window that is used up before it resets."""

    slot: str
    exhaustedAt: TimeText
    resetsAt: TimeText
    fits: Annotated[TimeText, "when quota is available again"]
    slugs: Annotated[list[str], "schedules that are due in between"]


class BudgetAtRisk(TypedDict):
    """A budget that may be used up."""

    scope: str
    period: str
    unit: str
    date: Annotated[str, "the day, or the first day of the period in this forecast"]
    limit: float
    spent: Annotated[float, "spent so far in this period"]
    expected: float
    high: float
    risk: Annotated[float, "probability that it is used up, from 0 to 1"]
    skipped: Annotated[int, "instants that would be skipped"]


class PlanForecast(From):
    """What to expect, as far as it follows from the plan."""

    until: TimeText
    timezone: str
    days: list[ForecastDay]
    total: ForecastSums
    schedules: list[ForecastSchedule]
    unknownCosts: Annotated[int, "turns whose cost is unknown; they are not in the sums"]  # noqa: N815 - its name in JSON
    collisions: Annotated[list[Collision], "the longest waits first"]
    windows: list[UsedUpWindow]
    budgets: list[BudgetAtRisk]
