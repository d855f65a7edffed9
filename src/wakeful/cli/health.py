"""The daemon's health, as reported by `/healthz`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal

from wakeful.cli import times
from wakeful.cli.client import Daemon
from wakeful.cli.errors import Ended

PATIENCE: Final = 3.0
PROBLEM: Final = ("type", "title", "status", "detail", "errors", "error", "health")
BESIDES: Final = (
    *("channels", "deliveries", "heartbeat", "slots", "workflows"),
    *("alerts", "approvals", "nodes", "labels", "settings", "overdue", "lag", "tracing"),
)
"""Checks of `/healthz`, other than the clock, that `doctor` does not make itself."""
HealthFinding = tuple[Literal["ok", "warning", "wrong"], str, str, str | None]
"""Severity, what was checked, what was found, and the cure."""


def health_of(daemon: Daemon) -> Mapping[str, Any]:
    """The body of `/healthz`; an unhealthy daemon returns it with an error status."""
    body = daemon.look("/healthz", timeout=PATIENCE).body
    if not isinstance(body, Mapping):
        return {"status": "failing", "problems": ["the daemon does not report its health"]}
    # In a problem response `status` is the HTTP status, and the health is in another field.
    facts = {name: value for name, value in body.items() if name not in PROBLEM}
    return {"status": body.get("health") or body.get("status"), **facts}


def why_idle(daemon: Daemon) -> str | None:
    """Why no schedule would fire at the moment; None if they would."""
    try:
        health = health_of(daemon)
    except Ended as ended:
        return str(ended)
    if health.get("status") in ("ok", "degraded"):
        return None
    return "; ".join(map(str, health.get("problems") or ["the daemon reports that it is unhealthy"]))


def findings_of(daemon: Daemon) -> Iterator[HealthFinding]:
    """The health as single findings, for `doctor`."""
    health = health_of(daemon)
    problems = health.get("problems") or []
    for problem in problems:
        yield "wrong", "clock", str(problem), "check server.log in the home folder"
    if not problems:
        yield "ok", "clock", f"alive, {_tick(health)}", None
    for finding in health.get("findings") or []:
        if finding["name"] in BESIDES and finding["level"] != "ok":
            yield "warning", finding["name"], finding["sentence"], finding.get("cure")
    stuck = health.get("stuckRuns") or []
    if stuck:
        words = f"could not confirm that run {', '.join(map(str, stuck))} has ended"
        yield "warning", "runs", words, "stop its processes manually; until then it blocks its lane"


def _tick(health: Mapping[str, Any]) -> str:
    tick = times.parse(health.get("lastTick"))
    ticked = "no tick yet" if tick is None else f"last tick {times.relative(tick, times.now())}"
    lag = health.get("lagMs")
    return ticked if not lag else f"{ticked}, {times.milliseconds(lag)} behind"
