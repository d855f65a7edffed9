"""`wakeful forecast`: what to expect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import click

from wakeful.cli import times
from wakeful.cli.costs import dollars, unpriced
from wakeful.cli.invocation import Invocation, command
from wakeful.cli.render import json_out, note, plural, say

TIMEOUT: Final = 600.0


@command("forecast")
@click.option("--days", type=click.IntRange(1, 92), default=7, show_default=True, help="How many days ahead.")
@click.option("--latest", is_flag=True, help="Show the last one the daemon made, without simulating.")
def forecast_command(invocation: Invocation, days: int, latest: bool) -> None:
    """Forecast the coming days: runs, tokens and cost with ranges, and schedules that will collide.

    Ranges are from the 5th to the 95th percentile. The last line shows how accurate the previous forecast was.
    """
    asked = {"latest": "true"} if latest else {}
    answer = invocation.daemon().get("/api/forecast", days=days, **asked, timeout=TIMEOUT)
    if invocation.is_json:
        json_out(answer)
    elif answer is None:
        say(f"no forecast of {days} days was made since the daemon started; leave out --latest")
    else:
        _show(answer)


def _show(answer: Mapping[str, Any]) -> None:
    now = times.now()
    _days([*answer["days"], {**answer["total"], "date": "total"}])
    if answer["unknownCosts"]:
        note(f"{answer['unknownCosts']} turns are not in the sums: nothing is known about their cost")
    unpriced(answer)
    for collision in answer["collisions"]:
        first = times.when(collision["first"], now)
        runs = plural(collision["runs"], "run")
        waiting = f"{runs} of {collision['slug']} wait, at most {collision['longest']}, first {first}"
        say(f"lane {collision['lane']}: {waiting}")
    for window in answer["windows"]:
        used_up, fits = times.when(window["exhaustedAt"], now), times.when(window["fits"], now)
        say(f"slot {window['slot']}: used up {used_up}, quota is available again {fits}{_of(window['slugs'])}")
    for budget in answer["budgets"]:
        amount = dollars(budget["limit"]) if budget["unit"] == "usd" else f"{budget['limit']:,.0f} tokens"
        skipped = f", {plural(budget['skipped'], 'instant')} would be skipped" if budget["skipped"] else ""
        risk = f"at risk on {budget['date']} ({budget['risk']:.0%}){skipped}"
        say(f"budget {budget['scope']}: {amount} a {budget['period']} {risk}")
    _accuracy(answer["accuracy"])


def _of(slugs: Sequence[str]) -> str:
    return f"; due in between: {', '.join(slugs)}" if slugs else ""


def _days(days: Sequence[Mapping[str, Any]]) -> None:
    from wakeful.cli.tables import Column, table

    columns = [Column("DAY"), Column("RUNS"), Column("TOKENS", drop=1), Column("COST"), Column("FROM 5 TO 95 %")]
    table(columns, [_day(day) for day in days])


def _day(day: Mapping[str, Any]) -> list[str]:
    cost = day["cost"]
    spread = f"{dollars(cost['low'])} to {dollars(cost['high'])}" if cost["high"] else times.NONE
    return [day["date"], str(day["runs"]), f"{day['tokens']['expected']:,}", dollars(cost["expected"]), spread]


def _accuracy(last: Mapping[str, Any] | None) -> None:
    if last is None:
        note("there is no earlier forecast to compare with yet")
        return
    cost = last["cost"]
    range_ = f"{dollars(cost['low'])} to {dollars(cost['high'])}"
    verdict = "within" if last["within"] else "outside"
    say(
        f"the last forecast, of {last['days']} days: {dollars(cost['expected'])}; it was {dollars(cost['actual'])}, "
        f"{verdict} the range of {range_}"
    )
