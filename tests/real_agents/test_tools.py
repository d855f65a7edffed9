"""Real programs use our tools over MCP: the daemon gives them the server and the run's token by itself."""

import json
from pathlib import Path
from typing import Any

import pytest

from real_agents.house import House, installed, serving, until
from self_scheduling.scripted_model import ScriptedModel

pytestmark = [pytest.mark.agents, pytest.mark.timeout(1800)]

PROMPT = "Please tidy up"
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("put_schedule", {"slug": "tidy", "when": "every 2h", "prompt": "Tidy the project"}),
    ("list_schedules", {}),
    ("explain", {"slug": "tidy"}),
    ("set_schedule_state", {"slug": "tidy", "state": "paused"}),
    ("set_schedule_state", {"slug": "tidy", "state": "deleted"}),
    ("wake_me", {"after": "1s", "text": "Look at the build again"}),
]


@pytest.mark.parametrize("name", ["claude", "codex", "gemini", "opencode"])
def test_a_real_program_schedules_and_wakes_itself(tmp_path: Path, name: str) -> None:
    """It creates, lists, explains, pauses and deletes a schedule; `wake_me` leads to a turn in the same session."""
    program = installed(name)
    model = ScriptedModel()
    model.script = {PROMPT: list(CALLS)}
    with serving(model) as server:
        house = House(tmp_path, server)
        house.move_in(program)
        house.settings(
            f"""\
[self_scheduling]
approval = "never"
[agents.default]
adapter = "{name}"
cwd = "{house.project}"
pass_env = ["LOCAL_MODEL_KEY"]
"""
        )
        with house.up():
            run = house.run("tidy-up", PROMPT)
            assert run["outcome"] == "succeeded", run
            assert model.script[PROMPT] == [], " ".join(sorted(_offered(model)))
            shown = json.dumps(model.asked[-1].body, ensure_ascii=False)
            for words in (
                "created",
                "default.tidy",
                "created by default during run",
                "paused",
                "deleted",
                "in this session",
            ):
                assert words in shown, words
            assert "refusedTools" not in run, run

            def wakes() -> list[dict[str, Any]]:
                listed = house.wakeful("ls", "--owner", "default", "--all", "-o", "json").json["schedules"]
                return [one for one in listed if one["status"] == "done"]

            until(wakes)
            (woken,) = house.wakeful("runs", wakes()[0]["slug"], "-o", "json").json["runs"]
            assert woken["outcome"] == "succeeded", woken
            assert woken["sessionId"] == run["sessionId"]
            last = json.dumps(model.asked[-1].body, ensure_ascii=False)
            assert "Look at the build again" in last and PROMPT in last


def _offered(model: ScriptedModel) -> set[str]:
    """The names of the tools that the program offered to its model."""
    return {str(tool.get("name") or tool.get("type")) for one in model.asked for tool in one.body.get("tools", [])}
