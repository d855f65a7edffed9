"""The first table of "What proves an end" in docs/agents.md: every cell of it is covered by a test that exists.

The second one, of the command-line agents, is in `test_evidence_programs`.
"""

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
PAGE = (TESTS.parent / "docs" / "agents.md").read_text(encoding="utf-8")

SESSIONS = "agents/test_sessions.py"
CHAT = "agents/test_chat.py"
PROGRAMS = "agents/test_programs.py"

COVERED: dict[str, tuple[tuple[str, ...], ...]] = {
    "`sessions`": (
        (
            f"{SESSIONS}::test_a_turn_in_a_new_session",
            f"{SESSIONS}::test_an_answer_is_proof_without_a_terminal_event",
            f"{SESSIONS}::test_a_terminal_event_under_our_key_is_proof",
            f"{SESSIONS}::test_a_receipt_is_proof_and_its_text_the_reply",
        ),
        (
            f"{SESSIONS}::test_an_error_event_is_a_failure",
            f"{SESSIONS}::test_a_lost_message_whose_end_is_known_is_what_it_was",
            f"{SESSIONS}::test_500_fails_and_may_be_tried_again",
        ),
        (
            f"{SESSIONS}::test_a_history_that_can_be_read_must_hold_our_message_and_an_answer",
            f"{SESSIONS}::test_busy_and_then_idle_is_no_proof",
            "sessions/test_evidence.py::test_a_turn_without_an_answer_is_never_green",
            "sessions/test_evidence.py::test_a_server_without_a_readable_history",
        ),
    ),
    '`sessions`, `proves = "idle"`': (
        (f"{SESSIONS}::test_busy_and_then_idle_counts_where_the_settings_say_so",),
        (f"{SESSIONS}::test_an_error_event_is_a_failure",),
        (f"{SESSIONS}::test_idle_throughout_is_no_proof",),
    ),
    '`sessions`, `proves = "accepted"`': (
        (f"{SESSIONS}::test_200_is_enough_where_that_is_all_there_is",),
        (f"{SESSIONS}::test_what_will_not_get_better_is_permanent",),
        (f"{SESSIONS}::test_200_is_enough_where_that_is_all_there_is",),
    ),
    "`openai`": (
        (f"{CHAT}::test_an_openai_turn",),
        (
            f"{CHAT}::test_throttled_and_failing_endpoints",
            f"{CHAT}::test_no_server",
            f"{CHAT}::test_200_without_a_reply_is_not_green_at_openai",
            f"{CHAT}::test_hostile_answers_fail_and_never_hang",
            f"{CHAT}::test_a_request_may_take_no_longer_than_answer_within",
        ),
        (f"{CHAT}::test_an_openai_turn",),
    ),
    "`anthropic`": (
        (f"{CHAT}::test_an_anthropic_turn", f"{CHAT}::test_an_empty_reply_is_one"),
        (
            f"{CHAT}::test_throttled_and_failing_endpoints",
            f"{CHAT}::test_200_without_a_reply_is_not_green_at_anthropic",
            f"{CHAT}::test_a_request_may_take_no_longer_than_answer_within",
        ),
        (f"{CHAT}::test_an_anthropic_turn",),
    ),
    "`call`": (
        (f"{PROGRAMS}::test_what_a_callable_returns",),
        (f"{PROGRAMS}::test_a_callable_that_raises", f"{PROGRAMS}::test_what_a_callable_returns"),
        (f"{PROGRAMS}::test_what_a_callable_returns",),
    ),
    "`echo`": (("agents/test_turn.py::test_the_echo_agent",),) * 3,
    "`command`": (
        (
            f"{PROGRAMS}::test_a_prompt_over_stdin",
            f"{PROGRAMS}::test_reply_session_and_usage_in_json",
            f"{PROGRAMS}::test_a_receipt_posted_by_a_program_is_its_reply",
        ),
        (
            f"{PROGRAMS}::test_a_failing_program",
            f"{PROGRAMS}::test_exit_0_is_not_green_by_itself",
            f"{PROGRAMS}::test_an_error_pattern_counts_whatever_the_exit_code",
            f"{PROGRAMS}::test_a_limit_pattern_names_the_reset",
            "agents/test_patterns.py::test_a_pattern_without_end_stops_nothing_else",
        ),
        (f"{PROGRAMS}::test_nothing_printed_is_an_empty_reply",),
    ),
}


def rows() -> dict[str, list[str]]:
    """The cells of each adapter."""
    section = PAGE.partition("## What proves an end")[2].partition("\nCommand-line agents also")[0]
    lines = [line for line in section.splitlines() if line.startswith("| `")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {first: rest for first, *rest in cells}


def test_every_row_is_covered() -> None:
    assert list(rows()) == list(COVERED)


@pytest.mark.parametrize("adapter", COVERED)
def test_every_cell_of_the_table_is_covered(adapter: str) -> None:
    """One list of tests for each cell, and each of them exists."""
    assert len(rows()[adapter]) == len(COVERED[adapter]) == 3
    for cell in COVERED[adapter]:
        for test in cell:
            file, _, name = test.partition("::")
            assert re.search(rf"^(async )?def {name}\(", (TESTS / file).read_text(encoding="utf-8"), re.MULTILINE), test
