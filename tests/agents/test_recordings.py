"""The recordings of real programs: complete, fit to be shown, and replayed as they were."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from agents.real_programs import KEY, PROGRAMS
from agents.record import SCENARIOS
from agents.replay import RECORDINGS, install, recorded, recording

ENDS_WELL = {"ok", "second-turn", "slow"}


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_scenario_of_every_program_is_recorded(program: str) -> None:
    wanted = set(SCENARIOS) if PROGRAMS[program].resume else set(SCENARIOS) - {"lost-session"}
    assert {scenario for name, scenario in recorded() if name == program} == wanted


@pytest.mark.parametrize(("program", "scenario"), recorded())
def test_a_recording_holds_nothing_of_the_machine(program: str, scenario: str) -> None:
    text = (RECORDINGS / program / f"{scenario}.json").read_text().replace("/tmp/wakeful/home", "~")
    assert KEY not in text
    assert not re.search(r"/root\b|/home/|/work/|registry\.", text)
    assert not re.search(r"(?<!~/\.gemini)/tmp/(?!wakeful\b|cc-socks\b|gemini-client-error|claude-)", text)


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("scenario", sorted(ENDS_WELL))
def test_the_model_server_answered_where_a_turn_ended_well(program: str, scenario: str) -> None:
    found = recording(program, scenario)
    assert found.exit_code == 0
    assert "All is well today." in found.stdout
    assert all(count > 0 for count in found.counted)


@pytest.mark.parametrize("program", sorted(name for name, one in PROGRAMS.items() if one.resume))
def test_the_second_turn_went_on_with_the_session_of_the_first(program: str) -> None:
    found = recording(program, "second-turn")
    assert found.session
    assert found.server["sawFirstPrompt"] is True


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("scenario", sorted(set(SCENARIOS) - ENDS_WELL - {"refused-tool", "lost-session"}))
def test_a_failing_model_never_answered(program: str, scenario: str) -> None:
    found = recording(program, scenario)
    assert found.counted == (0, 0, 0)
    if scenario != "cut":  # part of the answer came before the connection was cut
        assert "All is well today." not in found.stdout


def test_a_player_prints_what_was_recorded_and_remembers_its_calls(tmp_path: Path) -> None:
    player = install(tmp_path, "codex", "second-turn")
    first, second = (
        subprocess.run([player.path, "exec", "-"], input=words, capture_output=True, text=True, check=False, timeout=60)
        for words in ("one", "two")
    )
    found = recording("codex", "second-turn")
    assert found.first is not None
    assert (first.stdout, second.stdout) == (found.first["stdout"], found.stdout)
    assert second.stderr == found.stderr
    assert [(call.argv, call.stdin) for call in player.calls()] == [(["exec", "-"], "one"), (["exec", "-"], "two")]


def test_a_player_ends_with_the_recorded_exit_code(tmp_path: Path) -> None:
    player = install(tmp_path, "codex", "400")
    ran = subprocess.run([player.path], input="", capture_output=True, text=True, check=False, timeout=60)
    assert ran.returncode == 1
    events = [json.loads(line) for line in ran.stdout.splitlines()]
    assert events[-1]["type"] == "turn.failed"
