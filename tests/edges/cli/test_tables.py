"""Tables that fit the terminal."""

import pytest

from wakeful.cli.tables import Column, facts, paragraph, table

COLUMNS = [Column("SLUG", least=8), Column("STATUS", is_state=True), Column("NOTE", drop=1)]


def lines_of(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().out.splitlines()


def test_nothing_is_cut_in_a_pipe(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that reads the table gets every slug whole."""
    monkeypatch.delenv("COLUMNS", raising=False)
    table(COLUMNS, [["x" * 300, "idle", "fine"]])
    heading, row = lines_of(capsys)
    assert row == f"{'x' * 300}  idle    fine"
    assert heading.split() == ["SLUG", "STATUS", "NOTE"]


def test_a_narrow_terminal_cuts_what_may_be_cut(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The longest column is cut with an ellipsis; no row wraps."""
    monkeypatch.setenv("COLUMNS", "60")
    table(COLUMNS, [["x" * 64, "idle", "fine"], ["日本語" * 20, "running", "ok"]])
    lines = lines_of(capsys)
    assert len(lines) == 3
    assert "…" in lines[1]
    assert lines[1].endswith("idle     fine")


def test_columns_that_can_be_missed_go_first(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """When cutting is not enough a column is left out as a whole, and the rest has its room back."""
    monkeypatch.setenv("COLUMNS", "40")
    table(COLUMNS, [["daily-standup", "idle", "y" * 30]])
    heading, row = lines_of(capsys)
    assert heading == "SLUG           STATUS"
    assert row == "daily-standup  idle"


def test_markup_is_text(capsys: pytest.CaptureFixture[str]) -> None:
    """What looks like a style or an emoji of the library is shown as it was written."""
    table([Column("NAME")], [["[bold red]x[/] :smile: [/"]])
    assert lines_of(capsys)[1] == "[bold red]x[/] :smile: [/"


def test_facts_go_on_under_their_beginning(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A prompt of many words is broken at words; nothing is lost."""
    monkeypatch.setenv("COLUMNS", "40")
    facts([("a", "word " * 20), ("longer", "one\ntwo")])
    lines = lines_of(capsys)
    assert all(len(line) <= 40 for line in lines)
    assert " ".join(lines[:-2]).split() == ["a:", *["word"] * 20]
    assert lines[-2:] == ["longer: one", "        two"]


def test_a_paragraph_is_broken_between_words_only(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A path or a command in it can still be copied, however long it is."""
    monkeypatch.setenv("COLUMNS", "40")
    path = "/a" * 40
    paragraph(f"some words and then a few more words, start it: {path} up", label="ok  ")
    lines = lines_of(capsys)
    assert lines[0].startswith("ok  some words")
    assert all(line.startswith("    ") for line in lines[1:])
    assert all(len(line) <= 40 for line in lines if path not in line)
    assert path in " ".join(lines)
