"""What tokens cost."""

import pytest

from wakeful.core.money.prices import Price, cost_of, dollars, nano, price_of, priced_by
from wakeful.core.run.usage import complete

GLM = Price(0.60, 2.20, 0.11)
PRICES = {"glm-4.6": GLM, "gpt-5": Price(1.25, 10.0)}


def test_cached_input_has_its_own_price() -> None:
    """Cached tokens are part of the input, and cheaper."""
    usage = {"input": 1_000_000, "cachedInput": 400_000, "output": 100_000}
    assert cost_of(usage, GLM) == nano(0.6 * 0.60 + 0.4 * 0.11 + 0.1 * 2.20)  # type: ignore[arg-type]


def test_without_a_price_of_its_own_cached_input_costs_as_much_as_input() -> None:
    """A bound that is never too low."""
    assert cost_of({"input": 1000, "cachedInput": 900, "output": 0}, PRICES["gpt-5"]) == nano(0.00125)


@pytest.mark.parametrize(
    ("model", "known"),
    [
        ("glm-4.6", True),
        ("zai/glm-4.6", True),
        ("glm-4.6-20260101", True),
        ("gpt-5-2026-01-01", True),
        ("gpt-5-latest", True),
        ("gpt-5-mini", False),
        ("gpt-50", False),
        (None, False),
    ],
)
def test_a_model_is_found_by_its_name(model: str | None, known: bool) -> None:
    """A date after it is ignored; another model is not mistaken for it."""
    assert (price_of(model, PRICES) is not None) is known


def test_what_a_program_reports_wins() -> None:
    """The table is used only if there is no figure, and says so."""
    reported = priced_by({"input": 10, "output": 1, "model": "glm-4.6", "cost": 0.5}, PRICES)
    assert reported is not None and (complete(reported) or {})["priced"] == "reported"
    computed = priced_by({"input": 1_000_000, "output": 0, "total": 1_000_000, "model": "glm-4.6"}, PRICES)
    shape = complete(computed)
    assert shape is not None and (shape["cost"], shape["priced"]) == (0.6, "table")
    unknown = complete(priced_by({"total": 10, "model": "glm-4.6"}, PRICES))
    assert unknown is not None and (unknown["cost"], unknown["priced"]) == (None, "unknown")
    assert dollars(nano(0.1)) == 0.1
