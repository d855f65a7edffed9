"""Shapes of nodes and health, for OpenAPI."""

from typing import Annotated, Literal

from pydantic import Field

from wakeful.server.http.shapes import At, RunId, Shape


class Node(Shape):
    """A process that ticks."""

    node_id: str
    name: str
    host: str
    pid: int
    started_at: At
    lease_until: At
    last_tick: At
    lag_ms: int
    running: int
    capacity: int
    labels: list[str]
    is_alive: bool


class Nodes(Shape):
    """The nodes."""

    nodes: list[Node]


class Finding(Shape):
    """The result of one check."""

    name: str
    level: Literal["ok", "warn", "bad"]
    sentence: str
    cure: str | None = None
    slugs: list[str] = []


class Health(Shape):
    """Health of the daemon. Callers without access to the API see only the status."""

    status: Annotated[
        Literal["ok", "degraded", "failing"],
        Field(description="degraded: the clock and the store work, but something else is wrong"),
    ]
    problems: list[str] = []
    level: Annotated[Literal["ok", "warn", "bad"] | None, Field(description="the worst of the findings")] = None
    now: At | None = None
    is_ticking: bool | None = None
    last_tick: At | None = None
    last_tick_age_ms: int | None = None
    lag_ms: int | None = None
    overdue_ms: int | None = None
    running: int | None = None
    waiting: int | None = None
    failing: Annotated[int | None, Field(description="number of failing schedules")] = None
    late: Annotated[int | None, Field(description="number of late schedules")] = None
    stuck: int | None = None
    stuck_runs: list[RunId] = []
    nodes: int | None = None
    is_store_writable: bool | None = None
    findings: list[Finding] = []


class Ready(Shape):
    """The daemon accepts requests."""

    status: Literal["ready"]
