"""A usage limit with a known reset: waited for, and asked again right after it."""

import time
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

import pytest

from real_agents.conftest import OUTCOME
from real_agents.house import House, installed, serving, until

pytestmark = [pytest.mark.agents, pytest.mark.timeout(1800)]
AHEAD = 90
AHEAD_OF = {"aider": 300, "qwen": 300}  # these retry for a minute or two before they report anything
# Those that report a reset. The others wait for one so near by themselves: see test_programs.
REPORTING = ("claude", "codex", "gemini", "qwen", "aider")


@pytest.fixture(params=REPORTING)
def house(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    program = installed(request.param)
    with serving() as server:
        house = House(tmp_path_factory.mktemp(program.name), server)
        house.move_in(program, has_subscription=True)
        args = '["--no-git"]' if program.name == "aider" else "[]"
        house.settings(
            f"""\
[agents.default]
adapter = "{program.name}"
cwd = "{house.project}"
args = {args}
pass_env = ["LOCAL_MODEL_KEY"]
"""
        )
        with house.up():
            yield house


def test_it_is_asked_again_within_5_seconds_after_the_reset_and_not_before(
    house: House, record_property: Callable[[str, object], None]
) -> None:
    house.server.manner = "limit"
    house.server.reset_at = reset = int(time.time()) + AHEAD_OF.get(house.program, AHEAD)
    added = house.wakeful("add", "later", "--in", "1s", "--prompt", "What is new today?")
    assert added.code == 0, added.err
    until(lambda: newest(house).get("outcome") == "waiting" and newest(house)["reason"] == "quota")
    refused = len(house.server.asked)
    assert refused >= 1
    planned = seconds(newest(house)["nextAttemptAt"])
    assert reset <= planned <= reset + 5
    why = house.wakeful("why", "later").out
    assert "quota until" in why
    assert "{" not in str(newest(house)["error"])
    until(lambda: newest(house).get("outcome") == "succeeded")
    again = min(one.at for one in house.server.asked[refused:])
    began = seconds(newest(house)["attempts"][-1]["startedAt"])
    assert again >= reset
    assert newest(house)["attempt"] == 2
    lags = f"planned {planned - reset:.1f} s, began {began - reset:.1f} s, asked {again - reset:.1f} s after the reset"
    after = f"{lags}; why: {why.strip()}"
    record_property(OUTCOME, f"{house.program} | limit | waiting, then succeeded | {after}")


def seconds(text: object) -> float:
    return datetime.fromisoformat(str(text)).timestamp()


def newest(house: House) -> dict[str, Any]:
    runs = house.wakeful("runs", "later", "-o", "json").json["runs"]
    return runs[0] if runs else {}
