"""Which limit matters: the window of tokens, wherever it stands in the list."""

import pytest

from wakeful.core.slot.limits import RESET_AHEAD_MAX, Limit, Window, is_plausible, pick

NOW = 1_771_159_000_000
HOURS = 3_600_000
MONTH = Limit("TIME_LIMIT", None, 1_772_259_238_997, 5, 1, 1000, 10)
TOKENS = Limit("TOKENS_LIMIT", 7, 1_771_177_008_218, 3, 5)


def test_the_example_of_the_seed_picks_the_tokens() -> None:
    """The monthly limit stands first there, and has a reset too."""
    assert pick([MONTH, TOKENS]) == Window(7, 1_771_177_008_218, 5 * HOURS)


def test_a_cold_window_of_tokens_is_not_warmed_by_the_month() -> None:
    """Its own reset is missing, and no other counts."""
    assert pick([MONTH, TOKENS._replace(reset_at=None)]) == Window(7, None, 5 * HOURS)


def test_without_tokens_the_first_gives_a_percentage_only() -> None:
    """Told, or worked out from what was used; never a reset."""
    assert pick([MONTH]) == Window(1.0, None)
    assert pick([MONTH._replace(percentage=12.5), MONTH]) == Window(12.5, None)
    assert pick([Limit("OTHER")]) == Window(None, None)
    assert pick([]) is None


@pytest.mark.parametrize(
    ("reset_at", "is_so"),
    [
        (None, True),
        (NOW - 90 * 24 * HOURS, True),
        (NOW + RESET_AHEAD_MAX, True),
        (NOW + RESET_AHEAD_MAX + 1, False),
        (0, False),
        (-1, False),
    ],
)
def test_a_reset_far_ahead_is_not_believed(reset_at: int | None, is_so: bool) -> None:
    """Nobody may wait for it; one in the past is merely cold."""
    assert is_plausible(reset_at, NOW) is is_so
