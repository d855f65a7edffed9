"""`wakeful slots add` and `edit`: slots that live in the store, written by options."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

import click

from wakeful.cli.errors import Ended, Misused
from wakeful.cli.invocation import Invocation, command
from wakeful.cli.slot_details import slot_path, tell

F = TypeVar("F", bound=Callable[..., Any])

# Option, JSON name, help; texts as they are.
_TEXTS: Final = (
    ("--provider", "provider", "glm (default), http or command."),
    ("--base-url", "baseUrl", "The provider's address (glm)."),
    ("--model", "model", "The model a wake is sent to (glm)."),
    ("--quota-url", "quotaUrl", "GET tells the quota (http)."),
    ("--wake-url", "wakeUrl", "POST is the wake (http)."),
    ("--wake-body", "wakeBody", "JSON that is posted (http)."),
    ("--percentage-key", "percentageKey", "Where the percentage stands in the JSON."),
    ("--reset-key", "resetKey", "Where the next reset stands in the JSON."),
    ("--interval", "interval", "Wake this long after the last wake, as in 5h."),
    ("--after-reset", "afterReset", "Wake this long after each reset, as in 1m."),
    ("--tz", "timezone", "The zone of --times."),
    ("--poll", "poll", "How often the quota is read; default 30m."),
    ("--retry-window", "retryWindow", "How long a wake is looked for before it is sent once more."),
    ("--backoff-cap", "backoffCap", "The longest pause between failing polls."),
)


def definition_options(function: F) -> F:
    """The options of a slot's definition."""
    for option, name, says in reversed(_TEXTS):
        function = click.option(option, name, help=says)(function)
    others = [
        click.option("--key-env", metavar="NAME", help="The key is in this variable of the daemon's environment."),
        click.option("--key-file", metavar="PATH", help="The key is in this file."),
        click.option("--key-stdin", is_flag=True, help="Read the key from standard input; it is stored, never shown."),
        click.option("--quota-command", metavar="LINE", help="The program that prints the quota (command)."),
        click.option("--wake-command", metavar="LINE", help="The program that is the wake (command)."),
        click.option("--times", metavar="09:00,13:00", help="Wake at these times of day, at most five."),
        click.option("--errors-max", type=int, help="Errors in a row that switch waking or the slot off."),
        click.option("--enabled/--disabled", default=None, help="Whether it is woken and polled."),
        click.option("--set", "fields", metavar="FIELD=VALUE", multiple=True, help="Any other field, as JSON."),
    ]
    for add in reversed(others):
        function = add(function)
    return function


@command("add")
@click.argument("name", metavar="NAME")
@definition_options
def add_command(asked: Invocation, name: str, **given: Any) -> None:
    """Add a slot; it lives in the store. Of several nodes, each must find its key."""
    daemon = asked.daemon()
    if any(slot["name"] == name for slot in daemon.get("/api/slots")["slots"]):
        raise Ended(f"there is a slot {name!r} already; change it: wakeful slots edit {name}")
    tell(asked, daemon.ask("PUT", slot_path(name), body=_fields(given)).body)


@command("edit")
@click.argument("name", metavar="NAME")
@definition_options
@click.option("--unset", metavar="FIELD", multiple=True, help="Take a field back to its default, as in afterReset.")
def edit_command(asked: Invocation, name: str, unset: Sequence[str], **given: Any) -> None:
    """Change some of a slot that was added by command or over REST."""
    changes = {**_fields(given), **dict.fromkeys(unset)}
    if not changes:
        raise Misused("nothing is changed; say what: wakeful slots edit --help")
    tell(asked, asked.daemon().ask("PATCH", slot_path(name), body=changes).body)


def _fields(given: dict[str, Any]) -> dict[str, Any]:
    """What was said, in JSON names."""
    found: dict[str, Any] = {name: given[name] for _, name, _ in _TEXTS if given[name] is not None}
    keys = {"env": given["key_env"], "file": given["key_file"], "stdin": given["key_stdin"] or None}
    named = [name for name, value in keys.items() if value is not None]
    if len(named) > 1:
        raise Misused("the key is named twice; use one of --key-env, --key-file and --key-stdin")
    if named:
        found["apiKey"] = _key_from_stdin() if named == ["stdin"] else {named[0]: keys[named[0]]}
    for option, name in (("quota_command", "quotaArgv"), ("wake_command", "wakeArgv")):
        if given[option] is not None:
            found[name] = _argv(given[option], option)
    if given["times"] is not None:
        found["times"] = [one.strip() for one in given["times"].split(",") if one.strip()]
    if given["errors_max"] is not None:
        found["errorsMax"] = given["errors_max"]
    if given["enabled"] is not None:
        found["enabled"] = given["enabled"]
    return found | dict(map(_field, given["fields"]))


def _key_from_stdin() -> str:
    key = sys.stdin.readline().strip()
    if not key:
        raise Misused("--key-stdin: standard input is empty; as in: wakeful slots add main --key-stdin < key.txt")
    return key


def _argv(line: str, option: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError as error:
        raise Misused(f"--{option.replace('_', '-')}: {error}; close the quotes") from None


def _field(text: str) -> tuple[str, Any]:
    name, sign, value = text.partition("=")
    if not sign or not name:
        raise Misused(f"--set {text}: write FIELD=VALUE")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value
