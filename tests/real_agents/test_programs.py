"""Each real program through its preset and a real daemon, against a model that answers and models that fail."""

import re
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

import pytest

from agents.model_server import REPLY, Manner
from agents.real_programs import PROGRAMS
from real_agents.conftest import OUTCOME
from real_agents.house import House, installed, serving, until

pytestmark = [pytest.mark.agents, pytest.mark.timeout(1800)]
CAUSES = {
    "400": r"malformed|400",
    "401": r"API key|401|[Aa]uthenti",
    "429": r"too many|429|rate.?limit|quota",
    "500": r"500|internal|overloaded|high demand|failed",
    "cut": r"connect|clos|cut|terminat|disconnect|network|EOF|socket|retried",
}


ONE_AT_A_TIME = [pytest.param(name, marks=pytest.mark.xdist_group(name)) for name in PROGRAMS]


@pytest.fixture(scope="module", params=ONE_AT_A_TIME)
def house(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """A daemon whose default agent is one of the programs, at home and with access."""
    program = installed(request.param)
    with serving() as server:
        house = House(tmp_path_factory.mktemp(program.name), server)
        house.move_in(program)
        args = '["--no-git"]' if program.name == "aider" else "[]"
        house.settings(
            f"""\
[agents.default]
adapter = "{program.name}"
cwd = "{house.project}"
args = {args}
pass_env = ["LOCAL_MODEL_KEY"]

[limits]
agent_interval_min = "1s"
"""
        )
        with house.up():
            yield house


def test_an_answer_is_a_success_and_the_second_turn_goes_on_in_its_session(
    house: House, record_property: Callable[[str, object], None]
) -> None:
    house.server.manner = "well"
    program = PROGRAMS[house.program]
    for prompt in ("Remember the word tangerine.", "Which word was it?"):
        is_first = "Remember" in prompt
        run = house.run("talk", prompt, is_new=is_first)
        assert run["outcome"] == "succeeded", run["error"]
        assert run["rung"] == "finished"
        assert run["reply"].strip() == REPLY
        assert prompt in house.server.texts()
        counted = house.server.counted()
        usage = run.get("usage")
        record_property(
            OUTCOME, f"{program.name} | {'first' if is_first else 'second'} turn | {run['outcome']} | {usage}"
        )
        if usage is None or usage["input"] is None:
            assert run["priced"] == "unknown"
            assert not program.reports_usage
        else:
            assert usage["input"] == counted.fresh + counted.cached
            assert usage["output"] == counted.output
            assert usage["cachedInput"] in (counted.cached, None)
    assert "Remember the word tangerine." in house.server.texts()


@pytest.mark.parametrize("manner", ["400", "401", "429", "500", "cut"])
def test_a_model_that_fails_is_a_failure_with_cause_and_cure(
    house: House, manner: Manner, record_property: Callable[[str, object], None]
) -> None:
    house.server.manner = manner
    name = house.program
    run = house.run(f"fails-{manner}", "What is new today?")
    assert run["outcome"] in ("failed", "waiting"), run
    said = run["error"]
    record_property(OUTCOME, f"{name} | {manner} | {run['outcome']} | {said}")
    assert said.startswith(f"{name}:")
    assert not re.search(r'[{}]|":|Traceback|File "|\bat async\b|\n', said), said
    assert re.search(CAUSES[manner], said, re.IGNORECASE), said
    assert ";" in said, said
    if manner != "cut":  # there the server had sent the first counts before
        usage = run.get("usage")
        assert usage is None or not usage.get("total")


# Codex does not always print commands that end at once; the others run the tool, or are not offered it.
REPORTS_REFUSALS = {"claude": "Bash", "copilot": "bash"}


def test_a_tool_that_was_refused_is_reported_with_the_run(house: House) -> None:
    if house.program not in REPORTS_REFUSALS:
        pytest.skip(f"{house.program} has no reliable report of refused tools")
    house.server.manner = "tool"
    run = house.run("careful", "Make a file.")
    assert (run["outcome"], run["reply"].strip()) == ("succeeded", REPLY)
    refused = REPORTS_REFUSALS[house.program]
    assert run["refusedTools"] == [refused]
    assert f"tools refused: {refused}" in house.wakeful("log", "careful").out
    assert not list(house.project.glob("made-by-the-agent.txt"))


REPORTS_NO_LIMIT = {
    "claude": "claude reports limits of a subscription only: see test_limit",
    "codex": "codex reports limits of a subscription only: see test_limit",
    "opencode": "opencode reports no limit: it waits for the reset by itself",
}


def test_a_limit_is_a_wait_until_its_reset(house: House, record_property: Callable[[str, object], None]) -> None:
    if house.program in REPORTS_NO_LIMIT:
        pytest.skip(REPORTS_NO_LIMIT[house.program])
    house.server.manner = "limit"
    house.server.reset_at = reset = int(time.time()) + 3600
    added = house.wakeful("add", "limited", "--in", "1s", "--prompt", "What is new today?", "--timeout", "9m")
    assert added.code == 0, added.err
    until(lambda: newest(house, "limited").get("outcome") == "waiting")
    run = newest(house, "limited")
    assert run["reason"] == "quota", run
    assert "quota until" in house.wakeful("why", "limited").out
    late = datetime.fromisoformat(run["nextAttemptAt"]).timestamp() - reset
    record_property(OUTCOME, f"{house.program} | limit | waiting | planned {late:.1f} s after the reset")
    assert 0 <= late <= 5
    assert house.wakeful("rm", "limited").code == 0


def test_a_program_that_waits_for_a_reset_by_itself_is_waited_for(house: House) -> None:
    if house.program != "opencode":
        pytest.skip(f"{house.program} does not wait for a reset by itself")
    house.server.manner = "limit"
    house.server.reset_at = int(time.time()) + 90
    run = house.run("patient", "What is new today?")
    assert (run["outcome"], run["reply"].strip()) == ("succeeded", REPLY)
    assert run["attempt"] == 1
    # The program may try again by itself, or ask for a title as well: nothing was granted before the reset.
    assert {one.status for one in house.server.of_turn if one.at < house.server.reset_at} == {429}


def test_a_slow_model_is_waited_for(house: House) -> None:
    house.server.manner = "slow"
    run = house.run("slow", "Take your time.")
    assert (run["outcome"], run["reply"].strip()) == ("succeeded", REPLY)


def test_a_lost_session_is_begun_again(house: House) -> None:
    house.server.manner = "well"
    if not PROGRAMS[house.program].resume:
        pytest.skip(f"{house.program} has no sessions of its own to lose")
    first = house.run("forgetful", "Remember the word tangerine.")
    assert first["outcome"] == "succeeded", first["error"]
    _forget_sessions(house)
    second = house.run("forgetful", "Which word was it?", is_new=False)
    assert second["outcome"] == "succeeded", second["error"]
    assert "tangerine" not in house.server.texts()
    assert second["sessionId"] != first["sessionId"]


def newest(house: House, slug: str) -> dict[str, Any]:
    runs = house.wakeful("runs", slug, "-o", "json").json["runs"]
    return runs[0] if runs else {}


def _forget_sessions(house: House) -> None:
    """Remove what the programs keep of their sessions."""
    places = (".claude/projects", ".codex/sessions", ".gemini/tmp", ".local/share/opencode", ".qwen", ".copilot")
    for place in places:
        folder = house.user_home / place
        if folder.exists():
            for file in [*folder.rglob("*.jsonl"), *folder.rglob("*.json"), *folder.rglob("*.db*")]:
                if "settings" not in file.name and "auth" not in file.name:
                    file.unlink()
