"""Shapes of agents' tools and of approvals, for OpenAPI."""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from wakeful.server.http.shapes import At, Lineage, Shape


class ToolArguments(Shape):
    """The arguments of a tool, by name."""

    model_config = ConfigDict(extra="allow")


class ToolAnswer(Shape):
    """A tool's result."""

    content: dict[str, Any]
    is_error: Annotated[bool, Field(description="whether it was refused; `content.error` says why")]


class ProposedField(Shape):
    """A field that a proposal sets."""

    field: str
    old: Annotated[Any, Field(description="its value now; null: the default, or a new schedule")]
    new: Annotated[Any, Field(description="its value if approved; null: the default")]


class Approval(Shape):
    """Something an agent proposed."""

    id: str
    owner: Annotated[str, Field(description="the agent")]
    slug: str
    change: Literal["create", "edit"]
    definition: dict[str, Any]
    changes: Annotated[list[ProposedField], Field(description="what differs from now, or from the defaults")]
    understood: Annotated[str, Field(description="when it would run, in words")]
    note: str | None
    next: Annotated[list[At], Field(description="its next five times if it were approved now")]
    estimate: Annotated[float | None, Field(description="expected cost of 30 days in USD; null: unknown")]
    lineage: Lineage
    status: Literal["pending", "approved", "rejected", "withdrawn", "replaced", "expired"]
    asked_at: At
    expires_at: At


class Approvals(Shape):
    """Proposals that wait for a person."""

    approvals: list[Approval]


class Decision(Shape):
    """A person's decision."""

    decision: Literal["approve", "reject"]


class Decided(Approval):
    """A proposal after the decision."""

    missed: Annotated[bool, Field(description="it was approved, but its only time had passed")]
