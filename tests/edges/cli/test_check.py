"""Files are checked before anybody depends on them, without a daemon."""

import json
from pathlib import Path

import pytest

from edges.cli.kit import Cli

RIGHT = {"schedule": {"type": "cron", "expression": "0 9 * * 1-5", "timezone": "Asia/Shanghai"}, "prompt": "Hello"}


def file_with(folder: Path, name: str, content: object) -> str:
    file = folder / name
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    return str(file)


def test_a_right_definition_is_shown_with_its_times(alone: Cli, tmp_path: Path) -> None:
    """In words, and with the next five times."""
    file = file_with(tmp_path, "definition.json", {**RIGHT, "slug": "daily"})
    said = alone.run("check", file)
    assert (said.code, said.err) == (0, "")
    first, heading, *rows = said.out.splitlines()
    assert first == f"{file} is valid: every weekday at 09:00 (Asia/Shanghai)"
    assert heading.split()[:2] == ["TIME", "LEFT"]
    assert len(rows) == 5
    answer = alone.ask("check", file, "-o", "json").json
    assert (answer["valid"], answer["errors"], len(answer["next"])) == (True, [], 5)


def test_the_folder_of_a_definition_file_is_its_slug(alone: Cli, tmp_path: Path) -> None:
    """As the daemon reads it; a slug in the file must be the same."""
    folder = tmp_path / "schedule" / "daily"
    folder.mkdir(parents=True)
    answer = alone.ask("check", file_with(folder, "definition.json", RIGHT), "-o", "json").json
    assert (answer["valid"], answer["definition"]["slug"]) == (True, "daily")
    said = alone.ask("check", file_with(folder, "definition.json", {**RIGHT, "slug": "weekly"}))
    assert said.code == 1
    assert "slug: 'weekly' does not match 'daily'" in said.err


@pytest.mark.parametrize(
    ("content", "place", "words"),
    [
        ('{\n  "slug": "x"\n"', ":3:", "is not JSON"),
        ("[" * 100_000, ":", "nested too deeply"),
        ({**RIGHT, "slug": "x", "promt": "y"}, ": promt:", "did you mean 'prompt'?"),
        ({"slug": "x", "prompt": "y"}, ": schedule:", "missing; say when"),
        ({**RIGHT, "slug": "Not one"}, ": slug:", "is not a slug"),
        (
            {**RIGHT, "slug": "x", "schedule": {"type": "cron", "expression": "61 * * * *"}},
            ": schedule.expression:",
            "0-59",
        ),
        ({**RIGHT, "slug": "x", "schedule": {"type": "interval", "intervalMinutes": 5}}, ": schedule:", "60 minutes"),
        ({**RIGHT, "slug": "x", "schedule": {"type": "once", "at": "1999-01-01T00:00:00Z"}}, "schedule.at:", "past"),
        ("[]", ":", "a definition is a JSON object"),
    ],
)
def test_a_broken_definition(alone: Cli, tmp_path: Path, content: object, place: str, words: str) -> None:
    """Each fault with its place and its cure; exit code 1, stdout empty."""
    said = alone.ask("check", file_with(tmp_path, "definition.json", content))
    assert (said.code, said.out) == (1, "")
    assert place in said.err
    assert words in said.err


def test_broken_settings(alone: Cli, tmp_path: Path) -> None:
    """Every fault with its line, for people and for programs."""
    file = file_with(tmp_path, "wakeful.toml", '[server]\nport = "many"\n\n[limts]\nevery_min = "10s"\n')
    said = alone.ask("check", file)
    assert (said.code, said.out) == (1, "")
    assert f"{file}:2: server.port: " in said.err
    assert f"{file}:4: limts: " in said.err
    assert "wakeful: 2 errors in" in said.err
    answer = alone.ask("check", file, "-o", "json")
    assert answer.code == 1
    assert [(fault["line"], fault["field"]) for fault in answer.json["errors"]] == [(2, "server.port"), (4, "limts")]


def test_settings_that_are_no_toml(alone: Cli, tmp_path: Path) -> None:
    """The line of the mistake."""
    said = alone.ask("check", file_with(tmp_path, "wakeful.toml", "[server]\nport = \n"))
    assert said.code == 1
    assert "wakeful.toml:2:" in said.err


def test_right_settings(alone: Cli, tmp_path: Path) -> None:
    """Warnings are told beside the answer."""
    file = file_with(tmp_path, "wakeful.toml", '[server]\ntoken = "a-secret-in-the-open"\n')
    Path(file).chmod(0o644)
    said = alone.ask("check", file)
    assert (said.code, said.out.splitlines()[0]) == (0, f"{file} is valid")
    assert "warning: server.token: other users of this machine can read it" in said.err
    assert "a-secret" not in said.err


def test_the_content_tells_what_an_unnamed_file_is(alone: Cli, tmp_path: Path) -> None:
    """Without an ending that says so, an object is a definition and everything else settings."""
    assert alone.ask("check", file_with(tmp_path, "one", {**RIGHT, "slug": "x"})).code == 0
    assert alone.ask("check", file_with(tmp_path, "two", "[server]\nport = 1\n")).code == 0


def test_a_prompt_may_be_as_frequent_as_the_settings_allow(alone: Cli, tmp_path: Path) -> None:
    """The settings of the home count, as they would for the daemon."""
    alone.home.mkdir()
    (alone.home / "wakeful.toml").write_text('[limits]\nagent_interval_min = "5m"\n')
    often = {**RIGHT, "slug": "x", "schedule": {"type": "interval", "intervalMinutes": 5}}
    assert alone.ask("check", file_with(tmp_path, "definition.json", often)).code == 0


@pytest.mark.parametrize("name", ["missing.toml", "missing.json", "missing"])
def test_a_file_that_is_not_there(alone: Cli, tmp_path: Path, name: str) -> None:
    """Said in a sentence, with exit code 1."""
    said = alone.ask("check", str(tmp_path / name))
    assert (said.code, said.out) == (1, "")
    assert name in said.err
