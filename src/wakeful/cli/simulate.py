"""`wakeful simulate`: what would happen."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click

from wakeful.cli import times
from wakeful.cli.costs import dollars
from wakeful.cli.errors import Misused
from wakeful.cli.invocation import Invocation, command
from wakeful.cli.render import json_out, note, plural, say

TIMEOUT: Final = 600.0
SHOWN: Final = 50


@command("simulate")
@click.option("--days", type=click.IntRange(1, 366), help="How many days to simulate; default: 7.")
@click.option(
    "--from", "start", metavar="T", help="Start of the simulation, such as 2h or tomorrow 9:00; default: now."
)
@click.option("--until", metavar="T", help="End of the simulation, instead of --days.")
@click.option(
    "--with",
    "files",
    metavar="FILE",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Add this definition (JSON), or replace the existing one. Repeatable.",
)
@click.option("--without", metavar="SLUG", multiple=True, help="Leave out this schedule. Repeatable.")
@click.option(
    "--outage", "outages", metavar="T..T", multiple=True, help="No node runs between these times. Repeatable."
)
@click.option(
    "--failing", metavar="SLUG=SHARE", multiple=True, help="This share of its attempts fails, such as 0.5. Repeatable."
)
@click.option(
    "--slow", metavar="SLUG=DUR", multiple=True, help="Each attempt takes this long, such as 90m. Repeatable."
)
@click.option(
    "--quota", metavar="SLOT=T..T", multiple=True, help="The slot's quota is used up between these times. Repeatable."
)
@click.option(
    "--budget",
    "budgets",
    metavar="SCOPE=T..T",
    multiple=True,
    help="The budget (all, agent:NAME or schedule:SLUG) is used up between these times.",
)
@click.option("--seed", type=click.IntRange(min=0), help="The same seed gives the same result.")
@click.option("--rows", is_flag=True, help="Show every run, not only totals.")
def simulate_command(
    invocation: Invocation,
    days: int | None,
    start: str | None,
    until: str | None,
    files: Sequence[Path],
    without: Sequence[str],
    outages: Sequence[str],
    failing: Sequence[str],
    slow: Sequence[str],
    quota: Sequence[str],
    budgets: Sequence[str],
    seed: int | None,
    rows: bool,
) -> None:
    """Simulate the coming days: runs by outcome, waits, costs, and the difference from the current plan.

    The real engine runs on a virtual clock, on a copy of the plan. Each simulated attempt
    repeats the result, duration and cost of one of its schedule's past attempts. Nothing real is contacted or changed.
    """
    body = {
        "days": days,
        "from": None if start is None else _time(start, "--from"),
        "until": None if until is None else _time(until, "--until"),
        "with": [_definition(path) for path in files] or None,
        "without": list(without) or None,
        "outages": [_span(text, "--outage") for text in outages] or None,
        "failing": {slug: _share(value) for slug, value in _pairs(failing, "--failing", "SLUG=SHARE")} or None,
        "slow": dict(_pairs(slow, "--slow", "SLUG=DUR")) or None,
        "quota": [{"slot": name, **_span(text, "--quota")} for name, text in _pairs(quota, "--quota", "SLOT=T..T")]
        or None,
        "budgets": [
            {"scope": name, **_span(text, "--budget")} for name, text in _pairs(budgets, "--budget", "SCOPE=T..T")
        ]
        or None,
        "seed": seed,
    }
    given = {name: value for name, value in body.items() if value is not None}
    query = {"rows": "true"} if rows else {}
    answer = invocation.daemon().ask("POST", "/api/simulate", query=query, body=given, timeout=TIMEOUT).body
    if invocation.is_json:
        json_out(answer)
    else:
        _show(answer)


def _time(text: str, option: str) -> str:
    from wakeful.cli.time_options import ahead

    return ahead(text, option)


def _span(text: str, option: str) -> dict[str, str]:
    begin, dots, end = text.partition("..")
    if not dots:
        raise Misused("not accepted", [(option, f"{text!r} is not two times; write them like 2h..5h")])
    return {"from": _time(begin, option), "until": _time(end, option)}


def _pairs(texts: Sequence[str], option: str, form: str) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    for text in texts:
        name, equals, value = text.rpartition("=")
        if not equals:
            raise Misused("not accepted", [(option, f"{text!r} has no value; write {form}")])
        pairs.append((name, value))
    return pairs


def _share(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        fault = ("--failing", f"{text!r} is not a share; write a number from 0 to 1")
        raise Misused("not accepted", [fault]) from None


def _definition(path: Path) -> Any:
    try:
        written = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise Misused("not accepted", [("--with", f"{path} cannot be read: {error}")]) from None
    if isinstance(written, dict):
        slug = path.parent.name if path.name == "definition.json" else path.stem
        written.setdefault("slug", slug)
    return written


def _show(answer: Mapping[str, Any]) -> None:
    now = times.now()
    say(f"from {times.when(answer['from'], now)} until {times.when(answer['until'], now)}, seed {answer['seed']}")
    if answer["schedules"]:
        _schedules(answer["schedules"])
    else:
        note("nothing runs")
    for lane in answer["lanes"]:
        if lane["waited"]:
            count = f"{lane['waited']} of {plural(lane['runs'], 'run')}"
            say(f"lane {lane['lane']}: {count} wait, at most {lane['longest']}")
    if answer["peak"]["at"] is not None:
        say(f"most at the same time: {answer['peak']['running']}, {times.when(answer['peak']['at'], now)}")
    say(f"difference from the current plan: {answer['difference']['sentence']}")
    if "rows" in answer:
        _rows(answer["rows"], now)


def _schedules(rows: Sequence[Mapping[str, Any]]) -> None:
    from wakeful.cli.tables import Column, table

    columns = [
        Column("SLUG", least=8),
        Column("RUNS"),
        Column("SUCCEEDED"),
        Column("FAILED"),
        Column("SKIPPED", least=8),
        Column("MISSED", least=8, drop=1),
        Column("COST"),
    ]
    table(columns, [_schedule(row) for row in rows])


def _schedule(row: Mapping[str, Any]) -> list[str]:
    counts = [str(row[name]) for name in ("runs", "succeeded", "failed")]
    return [row["slug"], *counts, _reasons(row["skipped"]), _reasons(row["missed"]), _cost(row)]


def _cost(row: Mapping[str, Any]) -> str:
    if row["cost"] is None:
        return "unknown"
    return dollars(row["cost"]) if row["cost"] or row["unknownCosts"] else times.NONE


def _reasons(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {reason}" for reason, count in counts.items()) or times.NONE


def _rows(rows: Sequence[Mapping[str, Any]], now: Any) -> None:
    from wakeful.cli.tables import Column, table

    columns = [Column("PLANNED"), Column("SLUG", least=8), Column("STARTED", drop=1), Column("OUTCOME", least=8)]
    table(columns, [_row(row, now) for row in rows[:SHOWN]])
    if len(rows) > SHOWN:
        note(f"and {len(rows) - SHOWN} more; see them with -o json")


def _row(row: Mapping[str, Any], now: Any) -> list[str]:
    started = times.NONE if row["startedAt"] is None else times.when(row["startedAt"], now)
    count = f" x{row['count']}" if "count" in row else ""
    outcome = row["outcome"] if row["reason"] is None else f"{row['outcome']} ({row['reason']})"
    return [times.when(row["plannedAt"], now), row["slug"], started, f"{outcome}{count}"]
