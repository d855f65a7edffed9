"""Whether the clock of a daemon is alive, as the daemon itself tells it."""

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
    *("alerts", "nodes", "settings", "overdue", "lag"),
)
"""What `/healthz` knows besides the clock, and nobody else asks for."""
Found = tuple[Literal["ok", "warning", "wrong"], str, str, str | None]
"""How it is, what was looked at, what was found, and the cure."""


def health_of(daemon: Daemon) -> Mapping[str, Any]:
    """What `/healthz` says; a daemon that is not well says so with an answer that is no success."""
    body = daemon.look("/healthz", timeout=PATIENCE).body
    if not isinstance(body, Mapping):
        return {"status": "failing", "problems": ["it does not say how it is"]}
    # Beside a problem `status` is a number, and the word goes by another name.
    facts = {name: value for name, value in body.items() if name not in PROBLEM}
    return {"status": body.get("health") or body.get("status"), **facts}


def why_idle(daemon: Daemon) -> str | None:
    """Why nothing would ring at the moment; None if it would."""
    try:
        health = health_of(daemon)
    except Ended as ended:
        return str(ended)
    if health.get("status") in ("ok", "degraded"):
        return None
    return "; ".join(map(str, health.get("problems") or ["the daemon says it is not well"]))


def findings_of(daemon: Daemon) -> Iterator[Found]:
    """The same, one by one, for the doctor."""
    health = health_of(daemon)
    problems = health.get("problems") or []
    for problem in problems:
        yield "wrong", "clock", str(problem), "look into server.log in the home folder"
    if not problems:
        yield "ok", "clock", f"alive, {_tick(health)}", None
    for one in health.get("findings") or []:
        if one["name"] in BESIDES and one["level"] != "ok":
            yield "warning", one["name"], one["sentence"], one.get("cure")
    stuck = health.get("stuckRuns") or []
    if stuck:
        words = f"the end of run {', '.join(map(str, stuck))} could not be proven"
        yield "warning", "runs", words, "end what it started by hand; until then it keeps its lane"


def _tick(health: Mapping[str, Any]) -> str:
    tick = times.parse(health.get("lastTick"))
    ticked = "not looked at it yet" if tick is None else f"last looked at {times.relative(tick, times.now())}"
    lag = health.get("lagMs")
    return ticked if not lag else f"{ticked}, {times.milliseconds(lag)} behind"
