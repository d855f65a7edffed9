"""Budgets that need attention: used up, or nearly."""

from collections.abc import Callable, Sequence
from typing import Final

from wakeful.app.attention import ITEMS_MAX, Attention
from wakeful.core.money.prices import NANO, dollars
from wakeful.core.time.instants import format_instant
from wakeful.features.delivery.alerts import AlertView
from wakeful.features.money.queries import BudgetView

CENT: Final = NANO // 100


def budgets(
    views: Sequence[BudgetView],
    alerts: Sequence[AlertView] = (),
    *,
    warn_at: float,
    estimate: Callable[[BudgetView], int | None] = lambda _view: None,
) -> list[Attention]:
    """Budgets that are used up, or nearly. `estimate`: what one more run would cost."""
    open_alerts = {alert.incident: alert for alert in alerts}
    near = [view for view in views if view.counted >= view.limit * warn_at][:ITEMS_MAX]
    return [
        _budget(view, next(filter(None, map(open_alerts.get, view.incidents)), None), estimate(view)) for view in near
    ]


def _budget(view: BudgetView, alert: AlertView | None, estimated: int | None) -> Attention:
    def amount(value: int) -> str:
        return f"${dollars(value):,.2f}" if view.unit == "usd" else f"{value:,} tokens"

    used = view.counted
    is_over = used >= view.limit
    share = f"{used * 100 // max(view.limit, 1)}%"
    whose = "all agents" if view.scope == "all" else view.scope.partition(":")[2]
    name = f"{_PERIODS[view.period]} budget"
    state = "used up" if is_over else "nearly used up"
    assumed = f", {amount(view.assumed)} of it assumed for runs of unknown cost" if view.assumed else ""
    sentence = f"{name.capitalize()} {state}: {amount(used)} of {amount(view.limit)} ({share}){assumed}."
    frees = format_instant(view.frees_at)
    needed = None if estimated is None else used + estimated
    if needed is not None and view.unit == "usd":
        needed += -needed % CENT  # a rounded amount must be enough as well
    enough = "" if needed is None or not is_over else f": {amount(needed)} is enough for one more run"
    skipped = f"Runs that cost money are skipped until {frees}. To run them sooner, raise the limit{enough}."
    is_of_schedule = view.scope.startswith("schedule:")
    return Attention(
        "budget",
        "bad" if is_over else "warn",
        f"{whose}: {name}",
        sentence,
        skipped if is_over else f"It resets at {frees}. Raise the limit if that is too late.",
        None if alert is None else alert.opened_at,
        slug=whose if is_of_schedule else None,
        alert_id=None if alert is None else alert.id,
        agent=whose if view.scope.startswith("agent:") else None,
        field=_FIELDS.get((view.unit, view.period)) if is_of_schedule else None,
        needed=None if needed is None or not is_over else dollars(needed) if view.unit == "usd" else needed,
    )


_PERIODS: Final = {"day": "daily", "month": "monthly"}
_FIELDS: Final = {
    ("usd", "day"): "budget.perDay",
    ("usd", "month"): "budget.perMonth",
    ("tokens", "day"): "budget.tokensPerDay",
}
