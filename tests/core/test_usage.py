"""One vocabulary for what a run used, whatever its program calls it."""

from typing import Any

import pytest

from wakeful.core.run.usage import Usage, added, complete, since, usage_of

OPENAI = {
    "prompt_tokens": 100,
    "completion_tokens": 7,
    "total_tokens": 107,
    "prompt_tokens_details": {"cached_tokens": 30},
    "completion_tokens_details": {"reasoning_tokens": 2},
}
RESPONSES = {
    "input_tokens": 100,
    "input_tokens_details": {"cached_tokens": 30},
    "output_tokens": 7,
    "output_tokens_details": {"reasoning_tokens": 2},
}
CODEX = {"input_tokens": 100, "cached_input_tokens": 30, "output_tokens": 7, "reasoning_output_tokens": 2}
SAME: Usage = {"input": 100, "cachedInput": 30, "output": 7, "reasoning": 2, "total": 107}


@pytest.mark.parametrize("counts", [OPENAI, RESPONSES, CODEX, SAME])
def test_the_same_counts_under_other_names(counts: dict[str, Any]) -> None:
    """Input includes what was read from a cache, output what was thought."""
    assert usage_of(counts) == SAME


def test_anthropic_counts_the_cache_beside_the_input() -> None:
    """Reads and writes are added, so that input means the same everywhere."""
    counts = {
        "input_tokens": 100,
        "cache_creation_input_tokens": 20,
        "cache_read_input_tokens": 30,
        "output_tokens": 7,
        "service_tier": "standard",
    }
    assert usage_of(counts) == {"input": 150, "cachedInput": 30, "output": 7, "total": 157}


def test_money_is_kept_to_the_last_digit() -> None:
    """Floats were dropped in 0.1."""
    assert usage_of({"output": 1, "total_cost_usd": 0.0006460000000000001, "model": "m"}) == {
        "output": 1,
        "cost": 0.0006460000000000001,
        "model": "m",
    }


def test_a_row_that_0_1_wrote_reads_back_in_the_new_words() -> None:
    """With null for what it does not know."""
    assert complete({"inputTokens": 3, "outputTokens": 4, "totalTokens": 7}) == {
        "input": 3,
        "cachedInput": None,
        "output": 4,
        "reasoning": None,
        "total": 7,
        "model": None,
        "cost": None,
        "priced": "unknown",
        "listPrice": False,
    }
    assert complete(None) is None and complete({"x": 1}) is None


def test_a_cost_that_was_reported_is_called_so() -> None:
    """Unless it comes from a table of prices."""
    shape = complete({"input": 1, "output": 1, "cost": 0.5})
    assert shape is not None and (shape["cost"], shape["priced"]) == (0.5, "reported")


def test_a_session_total_becomes_the_difference() -> None:
    """Of every count; a program that began at 0 again is taken at its word."""
    twice: Usage = {"input": 200, "cachedInput": 60, "output": 14, "reasoning": 4, "total": 214}
    assert since(twice, SAME) == SAME
    assert since(SAME, None) == SAME and since(None, SAME) is None
    assert since(SAME, twice) == SAME


def test_usages_are_added_up() -> None:
    """A model is named if it is the same one; a total that one of them lacks is worked out again."""
    assert added({"input": 1, "output": 1, "total": 2, "model": "a"}, {"input": 2, "model": "a"}) == {
        "input": 3,
        "output": 1,
        "total": 4,
        "model": "a",
    }
    assert added({"cost": 0.5, "model": "a"}, {"cost": 0.25, "model": "b"}) == {"cost": 0.75}
    assert added(None, SAME) == SAME == added(SAME, None)


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        [],
        "x",
        {"input": True},
        {"input": -1},
        {"input": 1.5},
        {"cost": float("nan")},
        {"cost": 1e9},
        {"total": 10**15},
    ],
)
def test_what_is_no_count_is_left_out(wrong: object) -> None:
    """Nothing an agent says is trusted."""
    assert usage_of(wrong) is None
