"""What the presets read in the output of real programs, recorded; and the command lines they build."""

import json
import re
from dataclasses import replace
from typing import Final

import pytest

from agents.replay import Recording, recorded, recording
from wakeful.core.run.usage import Usage, since
from wakeful.core.time.instants import MINUTE, SECOND
from wakeful.integrations.agents.presets.catalogue import PRESETS
from wakeful.integrations.agents.presets.preset import Ask, Printed, Reading, ReadMoment
from wakeful.integrations.agents.troubles import trouble

REAL: Final = sorted({program for program, _ in recorded()})
KINDS: Final = {
    "ok": "answered",
    "slow": "answered",
    "second-turn": "answered",
    "refused-tool": "answered",
    "400": "failed",
    "401": "failed",
    "429": "failed",
    "500": "failed",
    "cut": "failed",
    "limit": "limited",
    "lost-session": "lost",
}
# Waits for the reset by itself, without a word, until it is ended.
SILENT: Final = ("opencode", "limit")
CURES: Final = {
    "400": "refused the request: check model and args",
    "401": "check the key",
    "429": "run less often, or raise the account's limit",
    "500": "the model's server failed: try again later",
    "cut": "check the network",
}


def read(found: Recording) -> Reading:
    printed = Printed(found.stdout, found.stderr, found.exit_code)
    return PRESETS[found.program].read(printed, ReadMoment(round(found.recorded_at * SECOND), "UTC"))


def counted(found: Recording) -> Usage:
    """What the model server counted for the turn."""
    fresh, cached, output = found.counted
    return {"input": fresh + cached, "cachedInput": cached, "output": output, "total": fresh + cached + output}


@pytest.mark.parametrize(("program", "scenario"), [one for one in recorded() if one != SILENT])
def test_what_each_recording_means(program: str, scenario: str) -> None:
    """An answer is said only where the model answered."""
    reading = read(recording(program, scenario))
    assert reading.kind == KINDS[scenario], reading
    if reading.kind == "answered":
        assert reading.text == "All is well today."


@pytest.mark.parametrize("program", REAL)
@pytest.mark.parametrize("scenario", CURES)
def test_a_failure_is_one_sentence_with_program_cause_and_cure(program: str, scenario: str) -> None:
    """No JSON, no stack, no colour."""
    found = recording(program, scenario)
    reading = read(found)
    wrong = trouble(PRESETS[program], reading.text, reading.status, found.exit_code)
    name, cause, cure = re.fullmatch(r"([\w-]+): (.*); (.*)", wrong.sentence).groups()  # type: ignore[union-attr]
    assert name == PRESETS[program].program and len(cause) > 5 and CURES[scenario] in cure
    assert not re.search(r"[{}\[\]\x1b\n]|Traceback|    at |\bnull\b", wrong.sentence)
    assert wrong.permanent == (scenario in ("400", "401"))


@pytest.mark.parametrize("program", [name for name in REAL if name != "opencode"])
def test_a_limit_is_read_with_its_reset(program: str) -> None:
    """Not before the server's time, and little after: some programs cut it to the minute."""
    found = recording(program, "limit")
    reset = read(found).reset_at
    assert reset is not None and found.reset_at is not None
    assert -2 * SECOND <= reset - found.reset_at * SECOND <= MINUTE


@pytest.mark.parametrize("program", [name for name in REAL if PRESETS[name].reports_usage])
@pytest.mark.parametrize("scenario", ["ok", "slow"])
def test_usage_is_what_the_model_server_counted(program: str, scenario: str) -> None:
    """Of the turn; of a session that begins with it, that is the total too."""
    found = recording(program, scenario)
    reading = read(found)
    used = reading.usage or reading.totals
    assert used is not None
    expected = counted(found)
    assert {name: used[name] for name in expected if name in used} == {  # type: ignore[literal-required]
        name: count for name, count in expected.items() if name in used
    }
    assert {"input", "output", "total"} <= set(used)


@pytest.mark.parametrize("program", [name for name in REAL if PRESETS[name].reports_usage])
def test_usage_of_a_second_turn_is_that_turn_alone(program: str) -> None:
    """Codex and qwen report totals of the session: what the first turn used is taken off."""
    found = recording(program, "second-turn")
    assert found.first is not None
    earlier = replace(found, stdout=found.first["stdout"], stderr=found.first["stderr"])
    first, second = read(earlier), read(found)
    used = second.usage if second.totals is None else since(second.totals, first.totals)
    assert used is not None
    assert (used["input"], used["output"]) == (counted(found)["input"], counted(found)["output"])


def test_copilot_reports_no_usage() -> None:
    """So none is made up."""
    reading = read(recording("copilot", "ok"))
    assert reading.usage is None and reading.totals is None


@pytest.mark.parametrize(
    ("program", "refused"),
    [
        ("claude", ("Bash",)),
        ("codex", ("/bin/bash -lc 'echo made > made-by-the-agent.txt'",)),
        ("copilot", ("bash",)),
    ],
)
def test_tools_that_were_refused_are_named(program: str, refused: tuple[str, ...]) -> None:
    """Beside the answer."""
    assert read(recording(program, "refused-tool")).refused == refused


@pytest.mark.parametrize("program", [name for name in REAL if name != "aider"])
def test_the_session_is_found(program: str) -> None:
    """The second turn names the one it was asked to continue."""
    found = recording(program, "second-turn")
    assert read(found).session_id == found.session


@pytest.mark.parametrize("program", REAL)
@pytest.mark.parametrize("scenario", ["ok", "second-turn"])
def test_output_that_is_cut_short_is_no_answer(program: str, scenario: str) -> None:
    """A program that dies before its last line proved nothing."""
    found = recording(program, scenario)
    cut = found.stdout[: found.stdout.rindex("All is well today.")]
    assert read(replace(found, stdout=cut)).kind != "answered"
    assert read(replace(found, stdout="")).kind != "answered"
    assert read(replace(found, exit_code=1)).kind != "answered"
    assert read(replace(found, exit_code=None)).kind != "answered"


def test_a_rejected_overage_is_no_rejection() -> None:
    """Claude says so under `status: allowed`, in every turn of an account without overage."""
    found = recording("claude", "limit")
    allowed = found.stdout.replace('"status":"rejected","resetsAt"', '"status":"allowed","resetsAt"', 1)
    words = allowed.replace("You've hit your 5-hour limit", "Something else went wrong")
    assert read(replace(found, stdout=words)).kind == "failed"


OPTIONS: Final = ("--dangerously-skip-permissions", "--help", "-", "-x --yolo", "--\n--force")


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("prompt", OPTIONS)
@pytest.mark.parametrize("session", [None, "abc-1"])
def test_a_prompt_never_becomes_an_option(name: str, prompt: str, session: str | None) -> None:
    """It goes over stdin, or after `--`."""
    preset = PRESETS[name]
    launch = preset.launch(Ask(preset.program, prompt, session, "new-1"))
    if launch.stdin is not None:
        assert launch.stdin == prompt and prompt not in [word for word in launch.argv if word != "-"]
    else:
        assert launch.argv[-2:] == ("--", prompt)


@pytest.mark.parametrize("name", PRESETS)
def test_model_permissions_and_args_reach_the_command_line(name: str) -> None:
    """Each in the program's own words; args last before the prompt."""
    preset = PRESETS[name]
    word = preset.permissions[-1] if preset.permissions else None
    plain = preset.launch(Ask(preset.program, "hi"))
    launch = preset.launch(Ask("/opt/x", "hi", None, None, "some-model", word, ("--extra", "1")))
    assert launch.argv[0] == "/opt/x"
    assert name == "amp" or "some-model" in launch.argv
    assert " ".join(launch.argv).count("--extra 1") == 1
    if word is not None:
        assert launch.argv != plain.argv
        assert any(word in part for part in (*launch.argv, *launch.env.values()))


@pytest.mark.parametrize("name", PRESETS)
def test_a_session_is_continued(name: str) -> None:
    """By its id, or by the name it was begun under."""
    preset = PRESETS[name]
    launch = preset.launch(Ask(preset.program, "hi", "abc-1"))
    assert any("abc-1" in word for word in launch.argv)
    if preset.names_sessions:
        begun = preset.launch(Ask(preset.program, "hi", None, "abc-1"))
        assert any("abc-1" in word for word in begun.argv)


# From their documentation: these three were never run.
INIT = '{"type":"system","subtype":"init","session_id":"T-1"}\n'
USED = '{"input_tokens":12,"cache_read_input_tokens":30,"output_tokens":8}'
SAID = f'{{"type":"assistant","message":{{"content":[],"usage":{USED}}}}}\n'
RESULT = '{"type":"result","subtype":"success","is_error":false,"result":"4","session_id":"T-1"}\n'
NOW = ReadMoment(0)


@pytest.mark.parametrize("name", ["amp", "cursor"])
def test_a_documented_stream(name: str) -> None:
    """An answer needs the result; failures are on stderr."""
    read = PRESETS[name].read
    reading = read(Printed(INIT + SAID + RESULT, "", 0), NOW)
    assert (reading.kind, reading.text, reading.session_id) == ("answered", "4", "T-1")
    assert reading.usage == (None if name == "cursor" else {"input": 42, "cachedInput": 30, "output": 8, "total": 50})
    assert read(Printed(INIT + SAID, "", 0), NOW).kind == "failed"
    assert read(Printed(INIT + RESULT.replace("false", "true"), "", 0), NOW).kind == "failed"
    failed = read(Printed("", "Error: not logged in\n", 1), NOW)
    assert (failed.kind, failed.text) == ("failed", "Error: not logged in")


def test_documented_lost_sessions() -> None:
    """Each in its words."""
    assert PRESETS["amp"].read(Printed("", "Error: thread T-1 not found", 1), NOW).kind == "lost"
    assert PRESETS["cursor"].read(Printed("", "Error: chat abc not found", 1), NOW).kind == "lost"
    assert PRESETS["goose"].read(Printed("", "Error: No session found with name 'abc'", 1), NOW).kind == "lost"


def test_goose_prints_its_answer_and_nothing_else() -> None:
    """An error in the text is an error, and it never asks for approval."""
    read = PRESETS["goose"].read
    assert read(Printed("All is well.\n", "", 0), NOW).text == "All is well."
    assert read(Printed("", "", 0), NOW).kind == "failed"
    failed = read(Printed("Ran into this error: Authentication failed (401)\n", "", 0), NOW)
    assert (failed.kind, failed.status) == ("failed", 401)
    assert PRESETS["goose"].launch(Ask("goose", "hi")).env == {"GOOSE_MODE": "auto"}


def test_all_ten_are_there() -> None:
    """With what a person needs to get access, and what the environment must pass on."""
    seven = ["claude", "codex", "gemini", "opencode", "qwen", "copilot", "aider"]
    assert list(PRESETS) == [*seven, "goose", "cursor", "amp"]
    assert [name for name, preset in PRESETS.items() if not preset.documented_only] == seven
    for preset in PRESETS.values():
        assert preset.login and preset.pass_env


def test_opencode_gets_the_tools_through_its_environment() -> None:
    """The token itself is neither in the settings nor on the command line."""
    launch = PRESETS["opencode"].launch
    given = launch(Ask("opencode", "hello", tools_url="http://127.0.0.1:1/mcp"))
    server = json.loads(given.env["OPENCODE_CONFIG_CONTENT"])["mcp"]["wakeful"]
    assert (server["type"], server["url"]) == ("remote", "http://127.0.0.1:1/mcp")
    assert server["headers"] == {"Authorization": "Bearer {env:WAKEFUL_RUN_TOKEN}"}
    assert launch(Ask("opencode", "hello")).env == {}
