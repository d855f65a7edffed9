"""One run in full: outcome and reason, attempts, output, usage and deliveries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import click

from wakeful.cli import terminal_text as inert
from wakeful.cli import times
from wakeful.cli.render import note

BAD: Final = ("failed", "timedOut", "unknown", "unconfirmed")
Fact = tuple[str, object]


def show_run(run: Mapping[str, Any]) -> None:
    """Print the facts in two columns, then the run's output."""
    from wakeful.cli.tables import facts

    facts(list(_facts(run)))
    said = [(name, str(run[name])) for name in ("reply", "output", "stderr") if run.get(name)]
    for name, text in said:
        click.echo(f"\n--- {name} ---")
        click.echo(inert.block(text.rstrip("\n")))
    if not said and run.get("startedAt"):
        note("no output")


def _facts(run: Mapping[str, Any]) -> Iterator[Fact]:
    from wakeful.cli.runs import name_of, outcome_of

    since = times.now()
    yield "run", run["runId"]
    yield "slug", name_of(run)
    yield "outcome", outcome_of(run)
    if run.get("error"):
        yield "error", run["error"]
    yield from _cure(run)
    yield "planned", times.when(run["plannedAt"], since)
    if run.get("plannedUntil"):
        yield "until", times.when(run["plannedUntil"], since)
    yield (
        "requested by",
        ", ".join(run["reasons"]) if run.get("reasons") else _TRIGGERS.get(run["trigger"], run["trigger"]),
    )
    if run.get("startedAt"):
        yield "started", times.when(run["startedAt"], since)
        yield "took", times.length(times.parse(run["startedAt"]), times.parse(run.get("endedAt")))
        yield "reached", run.get("reached") or run.get("rung") or times.NONE
    if run.get("node"):
        yield "node", run["node"]
    if run.get("runOn"):
        yield "needs a node with", " or ".join(run["runOn"])
    if run.get("refusedTools"):
        yield "tools refused", ", ".join(run["refusedTools"])
    if run.get("nextAttemptAt"):
        yield "next attempt", times.when(run["nextAttemptAt"], since)
    if run.get("blockedBy"):
        yield "blocked by", f"run {run['blockedBy']}"
    if run.get("sessionId"):
        yield "session", run["sessionId"]
    if len(run["attempts"]) > 1:
        for attempt in run["attempts"]:
            yield f"attempt {attempt['attempt']}", _attempt(attempt, since)
    yield from _usage(run)
    for delivery in run.get("deliveries") or ([run["delivery"]] if run.get("delivery") else []):
        yield "delivery", _delivery(delivery)


_TRIGGERS: Final = {
    "schedule": "schedule",
    "catchUp": "schedule, catch-up",
    "manual": "a person",
    "wake": "a wake",
}


def _cure(run: Mapping[str, Any]) -> Iterator[Fact]:
    """What to do about a run that did not succeed."""
    if run.get("stuck"):
        yield "cure", "stop its processes manually; until then it blocks its lane"
    elif run["outcome"] in BAD and ":" not in run["slug"] and run["slug"] != "heartbeat":
        yield "cure", f"see the cause: wakeful why {run['slug']}; run it again: wakeful run {run['slug']} --wait"
    elif run["outcome"] in BAD:
        yield "cure", f"see the cause: wakeful why {run['slug']}"


def _attempt(attempt: Mapping[str, Any], since: Any) -> str:
    took = times.length(times.parse(attempt["startedAt"]), times.parse(attempt["endedAt"]))
    error = f": {attempt['error']}" if attempt["error"] else ""
    node = f" on {attempt['node']}" if attempt.get("node") else ""
    return f"{times.when(attempt['startedAt'], since)}{node}, {attempt['outcome']}, took {took}{error}"


def _usage(run: Mapping[str, Any]) -> Iterator[Fact]:
    used = run.get("usage")
    if used is None:
        return
    names = ("input", "cachedInput", "output", "reasoning", "total")
    parts = [f"{used[name]:,} {_WORDS[name]}" for name in names if used.get(name) is not None]
    yield "tokens", ", ".join(parts) or "unknown"
    if used.get("model"):
        yield "model", used["model"]
    yield "cost", "unknown" if run.get("cost") is None else f"${run['cost']:.4f} ({run['priced']})"


_WORDS: Final = {
    "input": "in",
    "cachedInput": "cached",
    "output": "out",
    "reasoning": "reasoning",
    "total": "total",
}


def _delivery(delivery: Mapping[str, Any]) -> str:
    if delivery["status"] == "suppressed":
        return f"none: {delivery['reason']}"
    where = "/".join(part for part in (delivery["channel"], delivery["to"]) if part)
    error = f": {delivery['lastError']}" if delivery["lastError"] and delivery["status"] != "delivered" else ""
    dead = f"; retry it: wakeful outbox retry {delivery['id']}" if delivery["status"] == "dead" else ""
    return f"{where}, {delivery['status']}{error}{dead}"
