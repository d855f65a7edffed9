"""A subscription's cost is labelled as list price."""

import json

from wakeful.core.run.usage import complete
from wakeful.integrations.agents.presets.claude import PRESET
from wakeful.integrations.agents.presets.preset import Ask, Printed, ReadMoment


def _printed(source: str) -> Printed:
    events = [
        {"type": "system", "subtype": "init", "apiKeySource": source, "session_id": "s"},
        {
            "type": "result", "subtype": "success", "is_error": False, "result": "ok", "total_cost_usd": 0.5,
            "usage": {"input_tokens": 10, "output_tokens": 5}, "session_id": "s",
        },
    ]  # fmt: skip
    return Printed("\n".join(map(json.dumps, events)), "", 0)


def test_a_login_without_a_key_pays_a_subscription() -> None:
    """Claude Code prints the list price in both cases; only with a key is it what one pays."""
    for source, is_list_price in (("none", True), ("ANTHROPIC_API_KEY", False)):
        reading = PRESET.read(_printed(source), ReadMoment(0))
        shape = complete(reading.usage)
        assert shape is not None
        assert (shape["cost"], shape["priced"], shape["listPrice"]) == (0.5, "reported", is_list_price)


def test_a_limit_per_run_is_passed_on() -> None:
    """In the program's own flag."""
    argv = PRESET.launch(Ask("claude", "work", cost_max=0.5)).argv
    assert argv[argv.index("--max-budget-usd") + 1] == "0.5"
    assert "--max-budget-usd" not in PRESET.launch(Ask("claude", "work")).argv
