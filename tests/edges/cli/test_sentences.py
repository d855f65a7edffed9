"""`wakeful add "…"`: a sentence becomes a schedule after it was shown how it is understood."""

from collections.abc import Iterator

import pytest

from edges.cli.kit import Cli, daemon

SENTENCE = "every weekday at 9 summarise my mail, send to inbox"


@pytest.fixture(scope="module")
def cli(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cli]:
    """A daemon with an agent."""
    home = tmp_path_factory.mktemp("home") / "wakeful"
    home.mkdir()
    (home / "wakeful.toml").write_text('[agents.default]\nadapter = "echo"\n')
    with daemon(home) as started:
        yield started


def test_a_sentence_is_shown_as_understood_and_added_with_yes(cli: Cli) -> None:
    """In the user's zone, as for `--when`."""
    said = cli.ask("add", SENTENCE, "--yes", "--timeout", "5m")
    assert (said.code, said.err) == (0, "")
    first, prompt, channel, heading, *rows = said.out.splitlines()
    assert first == "summarise-my-mail: every weekday at 09:00 (Europe/Berlin)"
    assert (prompt.split(), channel.split()) == (["prompt", "summarise", "my", "mail"], ["sent", "to", "inbox"])
    assert heading.split() == ["TIME", "LEFT"]
    assert len([row for row in rows if " 09:00 " in row]) == 5
    assert rows[-1] == "summarise-my-mail added"
    stored = cli.ask("-o", "json", "show", "summarise-my-mail").json
    assert stored["schedule"] == {"type": "cron", "expression": "0 9 * * 1-5", "timezone": "Europe/Berlin"}
    assert (stored["prompt"], stored["deliver"]) == ("summarise my mail", {"channel": "inbox"})
    assert stored["timeout"] == "5m"


def test_without_yes_nothing_is_added_by_a_program(cli: Cli) -> None:
    said = cli.ask("add", "every day at 9:00 write a poem")
    assert (said.code, said.err) == (2, "wakeful: --yes: is missing; give it to add what was understood\n")
    assert cli.ask("show", "write-a-poem").code == 1


def test_a_terminal_asks_before_it_is_added(cli: Cli) -> None:
    refused = cli.on_terminal("add", "every day at 9:00 buy milk", typed="n\n")
    assert "Add it? [y/N]" in refused
    assert cli.ask("show", "buy-milk").code == 1
    assert "buy-milk added" in cli.on_terminal("add", "every day at 9:00 buy milk", typed="y\n")
    assert cli.ask("show", "buy-milk").code == 0


def test_what_is_unclear_is_asked_in_one_line_with_sentences_that_are_clear(cli: Cli) -> None:
    said = cli.ask("add", "every day at 5 feed the cat", "--yes")
    assert (said.code, said.out) == (2, "")
    assert said.err.splitlines() == [
        "wakeful: 'at 5' can mean 05:00 or 17:00; which one?",
        "  wakeful add 'every day at 05:00 feed the cat'",
        "  wakeful add 'every day at 17:00 feed the cat'",
    ]


def test_a_terminal_lets_one_choose(cli: Cli) -> None:
    shown = cli.on_terminal("add", "every day at 5 feed the dog", typed="2\ny\n")
    assert "  2  every day at 17:00 feed the dog" in shown
    assert "feed-the-dog added" in shown
    assert cli.ask("-o", "json", "show", "feed-the-dog").json["schedule"]["times"] == ["17:00"]


def test_a_rehearsal_and_json(cli: Cli) -> None:
    said = cli.ask("-o", "json", "add", "every morning water the plants", "--dry-run", "--tz", "Asia/Tokyo")
    assert said.code == 0
    assert said.json["definition"]["schedule"] == {"type": "times", "times": ["08:00"], "timezone": "Asia/Tokyo"}
    assert said.json["assumed"] == ["no time was given: 08:00"]
    assert cli.ask("show", "water-the-plants").code == 1
    added = cli.ask("-o", "json", "add", "every morning water the plants", "--yes").json
    assert (added["slug"], len(added["next"])) == ("water-the-plants", 5)


def test_a_name_with_spaces_and_a_timing_is_still_no_slug(cli: Cli) -> None:
    said = cli.ask("add", "Morning Digest", "--when", "every 2h", "--prompt", "x")
    assert said.code == 2
    assert "is not a slug" in said.err
