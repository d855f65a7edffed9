"""The health of the daemon as people and monitors see it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Final, Literal

from wakeful.core.returned import At, RunId, returned
from wakeful.core.time.instants import Duration
from wakeful.features.schedules.health import Finding, Health, Level, worst

FAILING: Final = "failing"
VITAL: Final = frozenset({"clock", "overdue", "store"})
"""Findings that make the daemon unhealthy."""


@dataclass(frozen=True, slots=True)
class HealthView:
    """Health of the daemon. Callers without access to the API see only the status."""

    status: Annotated[
        Literal["ok", "degraded", "failing"], "degraded: the clock and the store work, but something else is wrong"
    ]
    problems: Sequence[str] = ()
    level: Annotated[Level | None, "the worst of the findings"] = None
    now: At | None = None
    is_ticking: bool | None = None
    last_tick: At | None = None
    last_tick_age_ms: Duration | None = None
    lag_ms: Duration | None = None
    overdue_ms: Duration | None = None
    running: int | None = None
    waiting: int | None = None
    failing: Annotated[int | None, "number of failing schedules"] = None
    late: Annotated[int | None, "number of late schedules"] = None
    stuck: int | None = None
    stuck_runs: Sequence[RunId] = ()
    nodes: int | None = None
    is_store_writable: bool | None = None
    findings: Sequence[Finding] = ()


HEALTH: Final = returned(HealthView, name="Health")


def view_of(health: Health, stuck: Sequence[int], writable: Finding) -> HealthView:
    """The view. A stuck run only blocks its own lane: the clock still runs."""
    findings = [*health.findings, writable]
    wrong = [finding.sentence for finding in findings if finding.level == "bad" and finding.name in VITAL]
    last = health.last_tick_at
    return HealthView(
        status=FAILING if wrong else "ok" if all(finding.level == "ok" for finding in findings) else "degraded",
        problems=wrong,
        level=worst(findings),
        now=health.now,
        is_ticking=health.is_alive,
        last_tick=last,
        last_tick_age_ms=None if last is None else max(health.now - last, 0),
        lag_ms=health.lag,
        overdue_ms=health.overdue,
        running=health.running,
        waiting=health.waiting,
        failing=health.failing,
        late=health.late,
        stuck=health.stuck,
        stuck_runs=stuck,
        nodes=len(health.nodes),
        is_store_writable=writable.level != "bad",
        findings=findings,
    )
