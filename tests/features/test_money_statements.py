"""Money costs nothing where it does not matter: the SQL statements of a claim and a settlement, counted."""

import re

import pytest

from features.kit import Bench, World, virtual
from features.money_kit import Spender, open_spending, traced
from wakeful import every
from wakeful.app.money import Budgets
from wakeful.core.time.instants import DAY

_MONEY = re.compile(r"\b(charges|budgets|reservations|budget_limits|brakes|spending)\b")


UNPRUNED = {"prune_every": 30 * DAY}


def _nothing() -> None: ...


async def _statements(world: World, heard: list[str], app: Bench) -> list[str]:
    """All statements of one hour, in which each schedule runs once."""
    await world.sleep("1h30m")  # the first run of a definition compiles it
    heard.clear()
    await world.sleep("1h")
    money = [text for text in heard if _MONEY.search(text)]
    assert [len(await app.runs(view.slug)) for view in await app.list()] == [2]
    return money


@pytest.mark.parametrize("options", [{}, {"retry": {"times": 1, "delay": "1m"}}, {"activeHours": "00:00-24:00"}])
@virtual
async def test_without_an_agent_no_statement_is_about_money(
    world: World, options: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the plain path and on the general one, although there are budgets."""
    heard = traced(monkeypatch)
    app = await open_spending(world, Spender(world), budgets=Budgets(day=1.0), limits=UNPRUNED)
    if "activeHours" in options:
        options = {"active_hours": {"start": "00:00", "end": "23:59", "timezone": "UTC"}}
    await app.add("plain", every("1h"), call=_nothing, **options)
    assert await _statements(world, heard, app) == []


@virtual
async def test_a_prompt_without_budget_and_check_reserves_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its usage is recorded, in as many statements whatever was spent before; no budget is written."""
    heard = traced(monkeypatch)
    app = await open_spending(world, Spender(world, 0.1), limits=UNPRUNED)
    await app.add("ask", every("1h"), prompt="work")
    money = await _statements(world, heard, app)
    assert not [text for text in money if re.search(r"reservations|(INTO|UPDATE) budgets", text)]
    first = len(money)
    assert first <= 12, money
    await world.sleep("20h")
    heard.clear()
    await world.sleep("1h")
    assert len([text for text in heard if _MONEY.search(text)]) <= first
