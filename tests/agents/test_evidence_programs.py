"""The table of evidence of the command-line agents in docs/agents.md, cell by cell.

Each cell has cases: what a program printed, and what its preset reads in it. Most of it was printed by the real
programs; where a cell names something that the recordings lack, one word of a recording is changed. What a cell quotes
must be found in what one of its cases prints.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from agents.replay import Recording, recorded, recording
from wakeful.core.time.instants import MINUTE, SECOND
from wakeful.integrations.agents.presets.catalogue import PRESETS
from wakeful.integrations.agents.presets.preset import Printed, ReadingKind, ReadMoment

PAGE: Final = (Path(__file__).parents[2] / "docs" / "agents.md").read_text(encoding="utf-8")
SUCCEEDED, EXIT_0, LIMIT, LOST = range(4)
COLUMNS: Final = ["succeeded", "failed with exit code 0", "limit and reset", "session lost"]
REPLY: Final = "All is well today."


class Case(NamedTuple):
    """What was printed, and what it means."""

    what: str
    adapter: str
    column: int
    printed: Printed
    kind: ReadingKind
    at: int = 0  # epoch milliseconds
    reset_at: int | None = None  # epoch milliseconds

    def __str__(self) -> str:
        return f"{self.adapter}: {COLUMNS[self.column]}: {self.what}"


def case(adapter: str, column: int, what: str, found: Recording, kind: ReadingKind) -> Case:
    reset_at = found.reset_at * SECOND if kind == "limited" and found.reset_at is not None else None
    printed = Printed(found.stdout, found.stderr, found.exit_code)
    return Case(what, adapter, column, printed, kind, round(found.recorded_at * SECOND), reset_at)


def changed(found: Recording, old: str, new: str) -> Recording:
    """The recording with one text in place of another, wherever it was printed."""
    assert old in found.stdout + found.stderr, old
    return replace(found, stdout=found.stdout.replace(old, new), stderr=found.stderr.replace(old, new))


def without(found: Recording, word: str) -> Recording:
    """The recording without the lines that have this word."""
    kept = [line for line in found.stdout.splitlines() if word not in line]
    assert len(kept) < len(found.stdout.splitlines()), word
    return replace(found, stdout="\n".join(kept) + "\n")


def ends(found: Recording, line: str) -> Recording:
    return replace(found, stdout=f"{found.stdout}{line}\n")


def of_claude() -> Iterator[Case]:
    ok, limit = recording("claude", "ok"), recording("claude", "limit")
    yield case("claude", SUCCEEDED, "a result", ok, "answered")
    yield case("claude", SUCCEEDED, "no result", without(ok, '"type":"result"'), "failed")
    yield case("claude", SUCCEEDED, "another subtype", changed(ok, '"subtype":"success"', '"subtype":"x"'), "failed")
    yield case("claude", EXIT_0, "an error", changed(ok, '"is_error":false', '"is_error":true'), "failed")
    yield case("claude", LIMIT, "the event", limit, "limited")
    spoken = changed(without(limit, "rate_limit_event"), "resets 9:27am (UTC)", "resets 8pm (UTC)")
    yield case("claude", LIMIT, "the sentence", replace(spoken, reset_at=None), "limited")
    yield case("claude", LIMIT, "a status of 429 alone", recording("claude", "429"), "failed")
    yield case("claude", LOST, "not known any more", recording("claude", "lost-session"), "lost")


def of_codex() -> Iterator[Case]:
    ok, failed = recording("codex", "ok"), recording("codex", "400")
    message = '"type":"agent_message"'
    yield case("codex", SUCCEEDED, "a completed turn with a message", ok, "answered")
    yield case("codex", SUCCEEDED, "no completed turn", without(ok, "turn.completed"), "failed")
    ends_badly = next(line for line in failed.stdout.splitlines() if "turn.failed" in line)
    yield case("codex", SUCCEEDED, "a failed turn besides", ends(ok, ends_badly), "failed")
    yield case("codex", EXIT_0, "no message", without(ok, message), "failed")
    yield case("codex", LIMIT, "the sentence", recording("codex", "limit"), "limited")
    yield case("codex", LIMIT, "a status of 429 alone", recording("codex", "429"), "failed")
    yield case("codex", LOST, "not known any more", recording("codex", "lost-session"), "lost")


def of_gemini() -> Iterator[Case]:
    ok, limit = recording("gemini", "ok"), recording("gemini", "limit")
    yield case("gemini", SUCCEEDED, "a response", ok, "answered")
    yield case("gemini", SUCCEEDED, "the same on stderr", replace(ok, stdout="", stderr=ok.stdout), "failed")
    yield case("gemini", EXIT_0, "no response", changed(ok, REPLY, ""), "failed")
    yield case("gemini", LIMIT, "used up, and for how long", limit, "limited")
    yield case("gemini", LIMIT, "without a time", changed(limit, "retry in", "wait"), "failed")
    yield case("gemini", LIMIT, "another status", changed(limit, '"code": 429', '"code": 500'), "failed")
    yield case("gemini", LOST, "not known any more", recording("gemini", "lost-session"), "lost")


def of_opencode() -> Iterator[Case]:
    ok, tool, many = (recording("opencode", name) for name in ("ok", "refused-tool", "429"))
    yield case("opencode", SUCCEEDED, "text after the last tool", tool, "answered")
    first, last = tool.stdout.splitlines(), ok.stdout.splitlines()
    backwards = replace(tool, stdout="\n".join([*last, *first[:3]]) + "\n")
    yield case("opencode", SUCCEEDED, "text before it only", backwards, "failed")
    yield case("opencode", SUCCEEDED, "an error besides", ends(ok, many.stdout.strip()), "failed")
    refused = changed(tool, '"status":"completed"', '"status":"error","error":"The user rejected permission"')
    stopped = replace(refused, stdout="\n".join(refused.stdout.splitlines()[:3]) + "\n")
    yield case("opencode", EXIT_0, "stopped at a refused tool", stopped, "failed")
    yield case("opencode", LIMIT, "an hour", changed(many, '"retry-after":"1"', '"retry-after":"3600"'), "limited")
    yield case("opencode", LIMIT, "a second", many, "failed")
    yield case("opencode", LOST, "not known any more", recording("opencode", "lost-session"), "lost")


def of_qwen() -> Iterator[Case]:
    ok, bad, limit = (recording("qwen", name) for name in ("ok", "400", "limit"))
    yield case("qwen", SUCCEEDED, "a result", ok, "answered")
    yield case("qwen", SUCCEEDED, "an error", changed(ok, '"is_error":false', '"is_error":true'), "failed")
    yield case("qwen", EXIT_0, "an error as the reply", bad, "failed")
    really = changed(bad, '"input_tokens":0', '"input_tokens":9')
    yield case("qwen", EXIT_0, "the same words of a model", really, "answered")
    yield case("qwen", LIMIT, "with a time", limit, "limited")
    yield case("qwen", LIMIT, "without", recording("qwen", "429"), "failed")
    yield case("qwen", LOST, "not known any more", recording("qwen", "lost-session"), "lost")


def of_copilot() -> Iterator[Case]:
    ok, limit = recording("copilot", "ok"), recording("copilot", "limit")
    error = next(line for line in limit.stdout.splitlines() if '"type":"session.error"' in line)
    yield case("copilot", SUCCEEDED, "a result and a message", ok, "answered")
    yield case("copilot", SUCCEEDED, "no result", without(ok, '"type":"result"'), "failed")
    yield case("copilot", SUCCEEDED, "another code", changed(ok, '"exitCode":0', '"exitCode":1'), "failed")
    yield case("copilot", SUCCEEDED, "an error besides", ends(ok, error.replace("rate_limit", "x")), "failed")
    yield case("copilot", SUCCEEDED, "aborted", ends(ok, '{"type":"abort","data":{}}'), "failed")
    yield case("copilot", EXIT_0, "no message", without(ok, '"type":"assistant.message"'), "failed")
    yield case("copilot", LIMIT, "with a time", limit, "limited")
    yield case("copilot", LIMIT, "without", recording("copilot", "429"), "failed")
    yield case(
        "copilot", LIMIT, "another type", changed(limit, '"errorType":"rate_limit"', '"errorType":"x"'), "failed"
    )
    yield case("copilot", LOST, "not known any more", recording("copilot", "lost-session"), "lost")


def of_aider() -> Iterator[Case]:
    ok = recording("aider", "ok")
    yield case("aider", SUCCEEDED, "text before the tokens", ok, "answered")
    yield case("aider", SUCCEEDED, "tokens without text", changed(ok, REPLY, ""), "failed")
    yield case("aider", EXIT_0, "no tokens", without(ok, "Tokens: "), "failed")
    for scenario in ("400", "401", "500", "cut"):
        yield case("aider", EXIT_0, scenario, recording("aider", scenario), "failed")
    yield case("aider", LIMIT, "with a time", recording("aider", "limit"), "limited")
    yield case("aider", LIMIT, "without", recording("aider", "429"), "failed")
    yield case("aider", LOST, "a conversation that goes on", recording("aider", "second-turn"), "answered")


LIMITED: Final = "Error: rate limit reached, try again in 3600 seconds"


def of_goose() -> Iterator[Case]:
    """From its documentation."""
    yield Case("text", "goose", SUCCEEDED, Printed(f"{REPLY}\n", "", 0), "answered")
    yield Case("an error line", "goose", SUCCEEDED, Printed(f"{REPLY}\nError: it broke\n", "", 0), "failed")
    yield Case("an error line", "goose", EXIT_0, Printed("Ran into this error: it broke\n", "", 0), "failed")
    yield Case("no text", "goose", EXIT_0, Printed("", "", 0), "failed")
    yield Case("is not read", "goose", LIMIT, Printed("", LIMITED, 1), "failed")
    yield Case("not known", "goose", LOST, Printed("", "Error: No session found with name 'a'", 1), "lost")


def of_stream(name: str, lost: str) -> Iterator[Case]:
    """Of cursor and amp, from their documentation."""
    result = '{"type":"result","subtype":"success","is_error":false,"result":"' + REPLY + '","session_id":"T-1"}\n'
    yield Case("a result", name, SUCCEEDED, Printed(result, "", 0), "answered")
    yield Case("another subtype", name, SUCCEEDED, Printed(result.replace('"success"', '"x"'), "", 0), "failed")
    yield Case("an error", name, EXIT_0, Printed(result.replace("false", "true"), "", 0), "failed")
    yield Case("no result", name, EXIT_0, Printed('{"type":"system","subtype":"init"}\n', "", 0), "failed")
    yield Case("is not read", name, LIMIT, Printed("", LIMITED, 1), "failed")
    yield Case("not known", name, LOST, Printed("", lost, 1), "lost")


PLAYED: Final[tuple[Callable[[], Iterator[Case]], ...]] = (
    *(of_claude, of_codex, of_gemini, of_opencode, of_qwen, of_copilot, of_aider, of_goose),
    lambda: of_stream("cursor", "Error: chat abc not found"),
    lambda: of_stream("amp", "Error: thread T-1 not found"),
)
CASES: Final = [one for played in PLAYED for one in played()]


def rows() -> dict[str, list[str]]:
    """The cells of each adapter, in the table of the command-line agents."""
    section = PAGE.partition("## What proves an end")[2].partition("\n## ")[0]
    table = section[section.index("| failed with exit code 0 |") :]
    found = re.findall(r"^\| `(\w+)`(?: \(documented\))? \|(.*)\|$", table, re.MULTILINE)
    return {name: [cell.strip() for cell in row.split(" | ")] for name, row in found}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_was_printed_is_read_as_the_cell_says(case: Case) -> None:
    reading = PRESETS[case.adapter].read(case.printed, ReadMoment(case.at))
    assert reading.kind == case.kind, reading
    if case.kind == "limited":
        assert reading.reset_at is not None
    if case.reset_at is not None and reading.reset_at is not None:
        assert -2 * SECOND <= reading.reset_at - case.reset_at <= MINUTE


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("column", range(4), ids=COLUMNS)
def test_every_cell_has_cases_that_print_what_it_quotes(name: str, column: int) -> None:
    """A cell that is changed without its cases, or the other way round, is noticed."""
    cell = rows()[name][column]
    cases = [case for case in CASES if (case.adapter, case.column) == (name, column)]
    kinds = {case.kind for case in cases}
    expected: ReadingKind = "answered" if column == SUCCEEDED else "failed"
    if column in (LIMIT, LOST) and not cell.startswith("never"):
        expected = "limited" if column == LIMIT else "lost"
    assert expected in kinds or cell.startswith("never")
    if column == SUCCEEDED:
        assert "failed" in kinds, "what is not enough"
    printed = bare("\n".join(case.printed.stdout + case.printed.stderr for case in cases))
    for quoted in re.findall(r'"([^"]+)"|`([^`]+)`', cell):
        for part in "".join(quoted).split("…"):
            assert bare(part) in printed or bare(part) in NAMED_ONLY, (cell, part)


# Named by a cell because it must not be there, or as an example.
NAMED_ONLY: Final = {"abort", "resets8pm(zone)"}


def bare(text: str) -> str:
    """Without what JSON and prose write differently."""
    return re.sub(r'["\s\\]', "", text).lower()


def test_the_table_has_a_row_for_each_preset_and_only_those() -> None:
    assert list(rows()) == list(PRESETS)
    assert all(len(cells) == len(COLUMNS) and all(cells) for cells in rows().values())
    assert {name for name, _ in recorded()} == {name for name, preset in PRESETS.items() if not preset.documented_only}
