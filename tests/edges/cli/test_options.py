"""What is typed, and the definition it stands for."""

import json
from typing import Any

import pytest

from edges.cli.kit import Cli
from wakeful.cli.add import add_command
from wakeful.cli.definition_options import definition_of
from wakeful.cli.edit import edit_command
from wakeful.cli.errors import Misused

DO = ("--manual", "--command", "true")


def given(*arguments: str, is_edit: bool = False) -> dict[str, Any]:
    """The options of these arguments, as the command gets them."""
    command = edit_command if is_edit else add_command
    params = command.make_context("test", ["slug", *arguments]).params
    return {name: value for name, value in params.items() if name not in ("slug", "source", "is_new", "dry_run")}


def written(*arguments: str, is_edit: bool = False) -> dict[str, Any]:
    return definition_of(given(*arguments, is_edit=is_edit), is_edit=is_edit)


@pytest.mark.parametrize(
    ("arguments", "schedule"),
    [
        (("--cron", "0 9 * * 1-5"), {"type": "cron", "expression": "0 9 * * 1-5"}),
        (
            ("--cron", "0 9 * * *", "--tz", "Asia/Tokyo"),
            {"type": "cron", "expression": "0 9 * * *", "timezone": "Asia/Tokyo"},
        ),
        (("--every", "2h"), {"type": "every", "every": "2h"}),
        (
            ("--every", "2h", "--anchor", "2026-01-30T09:00:00Z"),
            {"type": "every", "every": "2h", "anchor": "2026-01-30T09:00:00Z"},
        ),
        (("--at", "2030-01-30T09:00:00+01:00"), {"type": "once", "at": "2030-01-30T09:00:00+01:00"}),
        (
            ("--at", "2030-01-30T09:00", "--tz", "Asia/Tokyo"),
            {"type": "once", "at": "2030-01-30T09:00", "timezone": "Asia/Tokyo"},
        ),
        (("--times", "09:00, 18:00"), {"type": "times", "times": ["09:00", "18:00"]}),
        (("--after-reset", "main"), {"type": "afterReset", "slot": "main"}),
        (("--after-reset", "main", "--offset", "90s"), {"type": "afterReset", "slot": "main", "offsetMinutes": 1.5}),
        (("--manual",), {"type": "manual"}),
    ],
)
def test_every_timing(arguments: tuple[str, ...], schedule: dict[str, Any]) -> None:
    """Each way to say when becomes the schedule of a definition."""
    assert written(*arguments, "--command", "true")["schedule"] == schedule


def test_in_is_a_time_from_now() -> None:
    """A length from now becomes an instant with its zone."""
    schedule = written("--in", "2h", "--command", "true")["schedule"]
    assert schedule["type"] == "once"
    assert schedule["at"].endswith("Z")


@pytest.mark.parametrize(
    ("arguments", "action"),
    [
        (("--prompt", "Hello"), {"prompt": "Hello"}),
        (
            ("--prompt", "Hello", "--agent", "coder", "--ephemeral"),
            {"prompt": "Hello", "agent": "coder", "sessionConfig": {"persistSession": False}},
        ),
        (("--command", "echo 'a b' c"), {"command": {"argv": ["echo", "a b", "c"]}}),
        (("--url", "http://x/"), {"http": {"url": "http://x/"}}),
        (
            ("--url", "http://x/", "--method", "PUT", "--body", '{"a": 1}'),
            {"http": {"url": "http://x/", "method": "PUT", "body": {"a": 1}}},
        ),
        (("--call", "mod:func"), {"call": {"target": "mod:func"}}),
        (("--event", "look"), {"event": {"text": "look"}}),
    ],
)
def test_every_action(arguments: tuple[str, ...], action: dict[str, Any]) -> None:
    """Each way to say what becomes the action of a definition."""
    assert written("--manual", *arguments) == {"schedule": {"type": "manual"}, **action}


def test_every_policy() -> None:
    """The rest of a definition, and any field by its name."""
    options = ("--deliver", "phone", "--deliver", "mail", "--catch-up", "all", "--timeout", "5m", "--disabled")
    changes = ("--set", "overlap=queue", "--set", "retry.times=3", "--set", "retry.delay=1m", "--set", "lane=null")
    typed = ("--set", "slot=5", "--set", "alert.channel=true")  # text, although it looks like JSON
    assert written(*DO, *options, *changes, *typed) == {
        "schedule": {"type": "manual"},
        "command": {"argv": ["true"]},
        "deliver": [{"channel": "phone"}, {"channel": "mail"}],
        "catchUp": "all",
        "timeout": "5m",
        "enabled": False,
        "overlap": "queue",
        "retry": {"times": 3, "delay": "1m"},
        "lane": None,
        "slot": "5",
        "alert": {"channel": "true"},
    }


@pytest.mark.parametrize(
    ("arguments", "option", "words"),
    [
        (("--every", "1h", "--cron", "* * * * *"), "--every", "cannot be combined"),
        (("--prompt", "x", "--command", "true", "--manual"), "--command", "cannot be combined"),
        (("--manual", "--tz", "UTC", "--command", "true"), "--tz", "only works with --when"),
        (("--manual", "--anchor", "2026-01-01T00:00:00Z"), "--anchor", "only works with --every"),
        (("--manual", "--offset", "1m"), "--offset", "only works with --after-reset"),
        (("--command", "true", "--agent", "x"), "--agent", "only works with --prompt"),
        (("--command", "true", "--body", "1"), "--body", "only works with --url"),
        (("--in", "soon"), "--in", "write it like 90s"),
        (("--in", "2026-01-30T09:00:00Z"), "--in", "is not a duration"),
        (("--in", "99999999w"), "--in", "write a shorter duration"),
        (("--at", "tomorrow"), "--at", "write it like 2026-01-30T09:00:00Z"),
        (("--at", "2030-01-30T09:00"), "--at", "or --tz "),
        (("--after-reset", "main", "--offset", "x"), "--offset", "is not a duration"),
        (("--command", "echo 'a"), "--command", "close every quote"),
        (("--command", " "), "--command", "is empty"),
        (("--url", "http://x", "--body", "{"), "--body", "is not JSON"),
        (("--set", "overlap"), "--set", "is not FIELD=VALUE"),
        (("--timeout", "1h", "--set", "timeout.x=1"), "--set", "already has a value"),
    ],
)
def test_what_cannot_be_meant_is_refused(arguments: tuple[str, ...], option: str, words: str) -> None:
    """Each fault names its option and its cure, before anybody is asked."""
    with pytest.raises(Misused) as refused:
        written(*arguments)
    assert [message for name, message in refused.value.faults if name == option and words in message]


def test_all_faults_at_once(alone: Cli) -> None:
    """A person corrects a line once, not once per mistake; nothing but the complaint is printed."""
    said = alone.ask("add", "x", "--at", "soon", "--tz", "UTC", "--anchor", "1", "--command", "'", "--set", "x")
    assert (said.code, said.out) == (2, "")
    assert said.err.splitlines()[0] == "wakeful: 3 errors:"
    assert [line.split(":")[0] for line in said.err.splitlines()[1:]] == ["  --anchor", "  --command", "  --set"]


def test_when_and_what_are_needed(alone: Cli) -> None:
    """Without both there is nothing to add."""
    said = alone.ask("add", "x")
    assert said.code == 2
    assert "when: is missing; give exactly one of --when" in said.err
    assert "what: is missing; give exactly one of --prompt" in said.err


def test_an_edit_of_the_kind_takes_the_others_away() -> None:
    """A schedule that becomes a command is no prompt any more, nor has it an agent."""
    assert written("--command", "true", is_edit=True) == {
        "prompt": None,
        "http": None,
        "call": None,
        "dispatch": None,
        "event": None,
        "agent": None,
        "sessionConfig": None,
        "command": {"argv": ["true"]},
    }


@pytest.mark.parametrize(
    ("arguments", "changes"),
    [
        (("--tz", "UTC"), {"schedule": {"timezone": "UTC"}}),
        (("--anchor", "2026-01-30T09:00:00Z"), {"schedule": {"anchor": "2026-01-30T09:00:00Z"}}),
        (("--offset", "2m"), {"schedule": {"offsetMinutes": 2}}),
        (("--agent", "coder"), {"agent": "coder"}),
        (("--method", "GET"), {"http": {"method": "GET"}}),
        (("--enabled",), {"enabled": True}),
        ((), {}),
    ],
)
def test_an_edit_changes_only_what_is_given(arguments: tuple[str, ...], changes: dict[str, Any]) -> None:
    """What belongs to something that is already there may stand alone."""
    assert written(*arguments, is_edit=True) == changes


@pytest.mark.parametrize(
    ("content", "words"),
    [("{", "is not JSON"), ("[]", "is not a JSON object"), (json.dumps({"slug": "y"}), "is missing")],
)
def test_a_file_that_is_no_definition_is_refused(alone: Cli, content: str, words: str) -> None:
    """What --from reads must be the object a definition is."""
    said = alone.ask("add", "x", "--from", "-", feed=content)
    assert said.code == 2
    assert words in said.err
