"""`[budgets]` in dollars beside agents whose cost cannot be known."""

from pathlib import Path

import pytest

from settings.kit import faults, loaded

AGENTS = """
[agents.talker]
adapter = "command"
argv = ["talk"]

[agents.model]
adapter = "openai"
model = "some-model"

[agents.parsed]
adapter = "command"
argv = ["talk"]
usage_key = "usage"
"""


def test_a_limit_is_refused_once_with_all_agents_and_the_lines_to_write(tmp_path: Path) -> None:
    """Those that print text or only tokens, not those whose output may contain a cost; also without `[prices]`."""
    (fault,) = faults(tmp_path, f"[budgets]\nday = 5.0\n{AGENTS}")
    assert fault.field == "budgets"
    assert "[agents.model] cost_per_run = 0.05; [agents.talker] cost_per_run = 0.05" in fault.message
    assert '[prices."some-model"]' in fault.message and 'unpriced = "allow"' in fault.message
    assert "parsed" not in fault.message


def test_a_limit_of_one_agent_is_refused_at_its_field(tmp_path: Path) -> None:
    """The other agents have none."""
    (fault,) = faults(tmp_path, AGENTS.replace('["talk"]', '["talk"]\nbudget_month = 5.0', 1))
    assert fault.field == "agents.talker.budget_month"
    assert "[agents.talker] cost_per_run" in fault.message and "agents.model" not in fault.message


@pytest.mark.parametrize(
    "written",
    [
        f'[budgets]\nday = 5.0\nunpriced = "allow"\n{AGENTS}',
        f"[budgets]\nday = 5.0\n{AGENTS}".replace('argv = ["talk"]', 'argv = ["talk"]\ncost_per_run = 0').replace(
            'model = "some-model"', 'model = "some-model"\ncost_per_run = 0.02'
        ),
        f"[budgets]\nday = 5.0\n{AGENTS}[prices.some-model]\ninput = 1\noutput = 2\n".replace(
            'argv = ["talk"]', 'argv = ["talk"]\ncost_per_run = 0.0', 1
        ),
        AGENTS,
    ],
    ids=["allowed", "cost_per_run", "price", "no limit"],
)
def test_it_is_accepted_with_a_cost_or_a_decision(tmp_path: Path, written: str) -> None:
    """0 is a cost too."""
    assert loaded(tmp_path, written).settings.agents.keys() >= {"talker", "model", "parsed"}
