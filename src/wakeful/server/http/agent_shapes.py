"""The shapes of `/api/agents`, for the OpenAPI page."""

from typing import Annotated, Any

from pydantic import Field

from wakeful.server.http.shapes import At, Outcome, Rung, RunId, Shape


class LastTurn(Shape):
    """The newest run that asked an agent."""

    run_id: RunId
    slug: str
    at: Annotated[At | None, Field(description="when it started")]
    outcome: Outcome
    error: str | None


class AgentState(Shape):
    """An agent as it is configured and as it stands."""

    name: Annotated[str, Field(examples=["default"])]
    adapter: Annotated[str, Field(examples=["claude"])]
    program: Annotated[
        str | None, Field(description="the path of its program, or its name if not found; null: it runs none")
    ]
    version: Annotated[str | None, Field(description="as its program prints it; null: not known")]
    found: Annotated[bool, Field(description="false: its program is not on this machine")]
    problem: Annotated[str | None, Field(description="why it cannot be asked, and the cure")]
    proves: Annotated[Rung, Field(description="the highest rung it can prove")]
    last_turn: LastTurn | None
    sessions: Annotated[int, Field(description="schedules that go on in a session of it")]
    cost: Annotated[dict[str, Any] | None, Field(description="null: not known")]


class AgentList(Shape):
    """All agents of this process."""

    agents: list[AgentState]


class AgentTest(Shape):
    """What to ask an agent."""

    prompt: Annotated[str | None, Field(examples=["Reply with one short sentence."])] = None
