"""Shapes of costs and budgets, for OpenAPI."""

from typing import Annotated, Literal

from pydantic import Field

from wakeful.server.http.shapes import At, Shape


class CostRow(Shape):
    """The totals for one schedule, agent, model or day."""

    key: Annotated[str, Field(description="a slug, an agent, a model or a local date; empty: unknown")]
    runs: int
    tokens: Annotated[int, Field(description="all known tokens")]
    cost: Annotated[float, Field(description="all known costs, in US dollars")]
    unknown: Annotated[int, Field(description="attempts whose cost is unknown; they are not in the sum")]


class Cost(Shape):
    """What was spent."""

    by: Literal["schedule", "agent", "model", "day"]
    rows: list[CostRow]
    total: CostRow


class BudgetRow(Shape):
    """A limit and what is left of it in the current period."""

    scope: Annotated[str, Field(description="all, agent:NAME or schedule:SLUG")]
    limit: Annotated[float, Field(description="in US dollars, or tokens")]
    unit: Literal["usd", "tokens"]
    period: Literal["day", "month"]
    spent: float
    reserved: Annotated[float, Field(description="by runs in progress")]
    frees_at: Annotated[At, Field(description="when the next period begins")]
    zone: Annotated[str, Field(description="the time zone of its days and months")]
    origin: Annotated[
        Literal["settings", "set", "definition"], Field(description="where the limit comes from; set: by a person")
    ]


class StoppedAgent(Shape):
    """An agent that was stopped because of its cost."""

    agent: str
    since: At
    reason: str


class Budgets(Shape):
    """All budgets."""

    budgets: list[BudgetRow]
    stopped: list[StoppedAgent]


class NewBudget(Shape):
    """A limit in US dollars, for all agents or for one."""

    period: Literal["day", "month"]
    limit: Annotated[float | None, Field(description="null: the limit in the settings applies again")]
    agent: Annotated[str | None, Field(description="default: all agents together")] = None
