"""Text of others does nothing to a terminal, and is not lost."""

import json

import pytest

from wakeful.cli import terminal_text as inert


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ünïcode 日本語 🎉", "plain ünïcode 日本語 🎉"),
        ("\x1b[31mred\x1b[0m", "␛[31mred␛[0m"),
        ("title\x1b]0;pwned\x07", "title␛]0;pwned␇"),
        ("a\rb\x08c\x00d", "a␍b␈c␀d"),
        ("\x9b31m", "<U+009B>31m"),
        ("del\x7f", "del␡"),
        ("abc\u202egnp.exe", "abc<U+202E>gnp.exe"),
        ("a\u2066b\u2069", "a<U+2066>b<U+2069>"),
        ("zero\u200bwidth\ufeff", "zero<U+200B>width<U+FEFF>"),
        ("line\u2028end", "line<U+2028>end"),
        ("half\ud800", "half<U+D800>"),
        ("tag\U000e0041", "tag<U+E0041>"),
    ],
)
def test_active_characters_are_shown_not_sent(text: str, shown: str) -> None:
    """Controls, escape sequences, direction marks and invisible characters become visible replacements."""
    assert inert.line(text) == shown


def test_joiners_of_scripts_and_emoji_stay() -> None:
    """What is written with joiners is still readable."""
    assert inert.line("👩\u200d💻 क्\u200dष न\u200c") == "👩\u200d💻 क्\u200dष न\u200c"


def test_a_line_shows_its_line_breaks() -> None:
    """In a cell of a table a line break would begin a row of its own."""
    assert inert.line("one\ntwo\tthree") == "one␊two␉three"


def test_a_block_keeps_its_lines() -> None:
    """A reply of several lines stays one, its escapes do not."""
    assert inert.block("one\r\n\ttwo\x1b[2J") == "one\n    two␛[2J"


@pytest.mark.parametrize("text", ["\x9b31m\u202e\x7f", "half\ud800", "tag\U000e0041", "日本\n語\x1b", "\u2028"])
def test_json_is_lossless_and_harmless(text: str) -> None:
    """A program reads back exactly what was there, and printing it does nothing."""
    for write in (inert.as_json, inert.as_json_line):
        written = write({"text": text})
        assert json.loads(written) == {"text": text}
        assert inert.block(written) == written


def test_json_stays_readable() -> None:
    """Letters of any script are not escaped."""
    assert '"日本語 ü"' in inert.as_json(["日本語 ü"])
