"""Response shapes of `/api/agents`, for OpenAPI."""

from typing import Annotated

from pydantic import Field

from wakeful.server.http.shapes import At, Outcome, Rung, RunId, Shape


class LastTurn(Shape):
    """The latest run that used an agent."""

    run_id: RunId
    slug: str
    at: Annotated[At | None, Field(description="start time")]
    outcome: Outcome
    error: str | None


class AgentCost(Shape):
    """What its turns cost, in US dollars."""

    today: float
    month: float


class AgentState(Shape):
    """An agent: configuration and state."""

    name: Annotated[str, Field(examples=["default"])]
    adapter: Annotated[str, Field(examples=["claude"])]
    program: Annotated[
        str | None, Field(description="path of its program, or its name if not found; null if it runs none")
    ]
    version: Annotated[str | None, Field(description="as printed by its program; null if unknown")]
    found: Annotated[bool, Field(description="false if its program is not installed on this machine")]
    problem: Annotated[str | None, Field(description="why it is unusable, and the cure")]
    proves: Annotated[Rung, Field(description="highest rung it can prove")]
    last_turn: LastTurn | None
    turns: Annotated[list[LastTurn], Field(description="the newest five")]
    sessions: Annotated[int, Field(description="number of schedules with a session at this agent")]
    cost: Annotated[AgentCost, Field(description="unknown costs are left out")]


class AgentList(Shape):
    """All agents of this daemon."""

    agents: list[AgentState]


class AgentTest(Shape):
    """A test prompt."""

    prompt: Annotated[str | None, Field(examples=["Reply with one short sentence."])] = None
