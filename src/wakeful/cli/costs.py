"""`wakeful cost` and `wakeful budget`: what was spent, and what may be."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

import click

from wakeful.cli import times
from wakeful.cli.errors import Misused
from wakeful.cli.invocation import HomeCommandGroup, Invocation, command
from wakeful.cli.render import json_out, note, say

BY: Final = ("schedule", "agent", "model", "day")
DEFAULT: Final = "default"


@command("cost")
@click.option("--days", type=click.IntRange(1, 366), default=30, show_default=True, help="How far back to look.")
@click.option("--by", type=click.Choice(BY), default="schedule", show_default=True, help="How to group the totals.")
def cost_command(invocation: Invocation, days: int, by: str) -> None:
    """Show what agents cost, by schedule, agent, model or day."""
    since = times.now() - timedelta(days=days)
    answer = invocation.daemon().get("/api/cost", by=by, since=since.isoformat())
    if invocation.is_json:
        json_out(answer)
    elif not answer["rows"]:
        note(f"no agent had a turn in the last {days} days")
    else:
        _costs(answer)


def _costs(answer: Mapping[str, Any]) -> None:
    from wakeful.cli.tables import Column, table

    columns = [
        Column(answer["by"].upper(), least=8),
        Column("RUNS"),
        Column("TOKENS"),
        Column("COST"),
        Column("UNKNOWN"),
    ]
    total = {**answer["total"], "key": "total"}
    table(columns, [_cost(row) for row in (*answer["rows"], total)])


def _cost(row: Mapping[str, Any]) -> list[str]:
    unknown = str(row["unknown"]) if row["unknown"] else times.NONE
    return [row["key"] or "unknown", str(row["runs"]), f"{row['tokens']:,}", dollars(row["cost"]), unknown]


def dollars(amount: float) -> str:
    """An amount of money; small ones keep their first two digits."""
    return f"{amount:.2f} USD" if amount == 0 or amount >= 0.01 else f"{amount:.2g} USD"


@click.command("budget", cls=HomeCommandGroup)
def budget_command(invocation: Invocation) -> None:
    """Show the budgets (limit, spent, runs of unknown cost, reserved, and when they reset), or set one."""
    _show(invocation, invocation.daemon().get("/api/budget"))


@budget_command.subcommand("set")
@click.argument("period", type=click.Choice(("day", "month")))
@click.argument("amount", metavar="USD")
@click.option("--agent", metavar="NAME", help="Limit one agent; default: all agents together.")
@click.option(
    "--unpriced",
    type=click.Choice(("refuse", "allow")),
    help="allow: set the limit although it cannot apply to agents whose cost is never known.",
)
def set_command(invocation: Invocation, period: str, amount: str, agent: str | None, unpriced: str | None) -> None:
    """Limit what agents may cost per day or month, in US dollars. It takes effect immediately.

    The limit replaces the one in wakeful.toml; `default` instead of an amount goes back to that one.
    """
    body: dict[str, Any] = {"period": period, "limit": None if amount == DEFAULT else _amount(amount), "agent": agent}
    if unpriced is not None:
        body["unpriced"] = unpriced
    _show(invocation, invocation.daemon().ask("PUT", "/api/budget", body=body).body)


@budget_command.subcommand("release")
@click.argument("agent", metavar="AGENT")
def release_command(invocation: Invocation, agent: str) -> None:
    """Release an agent that was stopped because its turns were unusually expensive."""
    from urllib.parse import quote

    answer = invocation.daemon().ask("POST", f"/api/budget/{quote(agent, safe='')}/release", body={}).body
    if invocation.is_json:
        json_out(answer)
    else:
        say(f"agent {agent} may work again")


def _amount(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        fault = ("USD", f"{text!r} is not an amount; write US dollars like 5.00, or {DEFAULT}")
        raise Misused("not accepted", [fault]) from None


def _show(invocation: Invocation, answer: Mapping[str, Any]) -> None:
    if invocation.is_json:
        json_out(answer)
        return
    if not answer["budgets"]:
        note("no budgets")
        note("  set one: wakeful budget set day 5.00; or under [budgets] in wakeful.toml")
    else:
        _budgets(answer["budgets"])
    unpriced(answer)
    for stopped in answer["stopped"]:
        say(f"agent {stopped['agent']} is stopped: {stopped['reason']}")
        say(f"  to release it: wakeful budget release {stopped['agent']}")


def unpriced(answer: Mapping[str, Any]) -> None:
    """Name the agents to which limits in dollars do not apply, and how to change that."""
    for agent in answer["unpriced"]:
        note(agent["sentence"])
        note(f"  {agent['cure']}")


def _budgets(budgets: list[Mapping[str, Any]]) -> None:
    from wakeful.cli.tables import Column, table

    columns = [
        Column("BUDGET", least=8),
        Column("PER"),
        Column("LIMIT"),
        Column("SPENT"),
        Column("UNKNOWN"),
        Column("RESERVED", drop=2),
        Column("FREES"),
        Column("FROM", drop=1),
    ]
    table(columns, [_budget(row) for row in budgets])


def _budget(row: Mapping[str, Any]) -> list[str]:
    def amount(name: str) -> str:
        return dollars(row[name]) if row["unit"] == "usd" else f"{row[name]:,.0f} tokens"

    frees = times.when(row["freesAt"], times.now())
    assumed = f", {amount('assumed')} assumed" if row["assumed"] else ""
    unknown = f"{row['unknown']}{assumed}" if row["unknown"] else times.NONE
    spent = (amount("limit"), amount("spent"), unknown, amount("reserved"))
    return [row["scope"], row["period"], *spent, frees, row["origin"]]
