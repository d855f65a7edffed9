"""Which budgets and schedules need a person, and in which order."""

from dataclasses import replace

from wakeful.app import attention
from wakeful.app.agents import MissingProgram
from wakeful.app.attention import ATTENTION, Attention
from wakeful.app.attention_of_budgets import budgets
from wakeful.core.money.prices import nano
from wakeful.features.money.queries import BudgetView


def budget(scope: str, spent: float, *, reserved: float = 0.0, limit: float = 10.0) -> BudgetView:
    return BudgetView(
        scope, "usd", "day", nano(limit), nano(spent), nano(reserved), 86_400_000, "UTC", "settings", (), "", 0, 0, ()
    )


def test_budgets_are_told_from_the_warning_on() -> None:
    """With what is reserved; used up is worse than nearly so, and says when it frees."""
    views = [budget("all", 7.9), budget("agent:coder", 6.0, reserved=2.0), budget("schedule:news", 10.0)]
    near, over = budgets(views, warn_at=0.8)
    assert (near.title, near.level, near.agent, near.alert_id) == ("coder: daily budget", "warn", "coder", None)
    assert near.sentence == "Daily budget nearly used up: $8.00 of $10.00 (80%)."
    assert near.cure is not None and "1970-01-02T00:00:00.000Z" in near.cure
    assert (over.title, over.level, over.slug) == ("news: daily budget", "bad", "news")
    assert (near.field, over.field, over.needed) == (None, "budget.perDay", None)
    assert over.cure is not None and "1970-01-02T00:00:00.000Z" in over.cure


def test_a_used_up_budget_says_how_high_is_enough() -> None:
    """What was spent and reserved, and the estimate of one more run; the field is the one that limits it."""
    month = replace(budget("schedule:news", 9.9951, reserved=0.5), period="month")
    over, near = budgets([month, budget("schedule:tea", 9.0)], warn_at=0.8, estimate=lambda _view: nano(0.75))
    assert (over.field, over.needed) == ("budget.perMonth", 11.25)
    assert over.cure is not None and over.cure.endswith("raise the limit: $11.25 is enough for one more run.")
    assert near.needed is None


def test_cures_name_the_file_and_the_section() -> None:
    """Where the path of an agent's program is written."""
    here = "wakeful.toml, [agents.coder] argv"
    (known,) = attention.missing_programs({"coder": MissingProgram("there is no program /x", here)})
    assert known.sentence == "There is no program /x."
    assert known.cure is not None and f"correct its path in {here}" in known.cure


def test_the_worst_is_first_and_the_order_within_a_level_stays() -> None:
    items = [
        Attention("paused", "note", "a", ""),
        Attention("failing", "bad", "b", ""),
        Attention("late", "warn", "c", ""),
    ]
    items.append(Attention("agent", "bad", "d", ""))
    assert [item.title for item in attention.worst_first(items)] == ["b", "d", "c", "a"]


def test_what_is_not_known_is_not_told() -> None:
    """And ids are texts, as everywhere in JSON."""
    item = Attention("failing", "bad", "a", "it failed", run_id=7, at=0)
    assert ATTENTION.write(item) == {
        "kind": "failing",
        "level": "bad",
        "title": "a",
        "sentence": "it failed",
        "at": "1970-01-01T00:00:00.000Z",
        "runId": "7",
    }
