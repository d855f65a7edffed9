"""The daemon's health, as reported by `/healthz`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal

from wakeful.cli import times
from wakeful.cli.client import Daemon
from wakeful.cli.errors import Ended

PATIENCE: Final = 12.0  # the daemon gives a write and a read five seconds each
SHOWN_MAX: Final = 3
"""How many findings `status` shows; `doctor` shows all."""
PROBLEM: Final = ("type", "title", "status", "detail", "errors", "error", "health")
ITSELF: Final = frozenset({"clock", "stuck", "invalid", "failing", "late"})
"""Checks of `/healthz` that `doctor` makes itself."""
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


def is_healthy(health: Mapping[str, Any]) -> bool:
    """Whether the clock and the store work. Everything else is trouble of a schedule, a channel or a person."""
    return health.get("status") in ("ok", "degraded")


def findings_in_short(health: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The state of the clock and the store, and what else needs attention, for `status`."""
    findings = [finding for finding in health.get("findings") or [] if finding["level"] != "ok"]
    wrong = [finding for finding in findings if finding["sentence"] in (health.get("problems") or [])]
    store = [str(finding["sentence"]) for finding in wrong if finding["name"] == "store"]
    unnamed = [str(problem) for problem in health.get("problems") or [] if problem not in store]
    yield "clock", "alive" if is_healthy(health) or not unnamed else "; ".join(unnamed)
    if store:
        yield "store", "; ".join(store)
    others = [finding for finding in findings if finding not in wrong]
    for finding in others[:SHOWN_MAX]:
        yield "attention", str(finding["sentence"])
    if len(others) > SHOWN_MAX:
        yield "attention", f"{len(others) - SHOWN_MAX} more: wakeful doctor"


def why_idle(daemon: Daemon) -> str | None:
    """Why no schedule would fire at the moment; None if they would."""
    try:
        health = health_of(daemon)
    except Ended as ended:
        return str(ended)
    if is_healthy(health):
        return None
    return "; ".join(map(str, health.get("problems") or ["the daemon reports that it is unhealthy"]))


def findings_of(daemon: Daemon) -> Iterator[HealthFinding]:
    """The health as single findings, for `doctor`."""
    health = health_of(daemon)
    problems = health.get("problems") or []
    findings = [finding for finding in health.get("findings") or [] if finding["level"] != "ok"]
    cures = {finding["sentence"]: finding.get("cure") for finding in findings}
    for problem in problems:
        yield "wrong", "clock", str(problem), cures.get(problem) or "check server.log in the home folder"
    if not problems:
        yield "ok", "clock", f"alive, {_tick(health)}", None
    for finding in findings:
        if finding["name"] not in ITSELF and finding["sentence"] not in problems:
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
