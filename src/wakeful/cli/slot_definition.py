"""`wakeful slots add` and `edit`: slots kept in the store, defined by options."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

import click

from wakeful.cli.definition_options import value_of
from wakeful.cli.errors import Ended, Misused
from wakeful.cli.invocation import Invocation, command
from wakeful.cli.slot_details import slot_path, tell
from wakeful.config.one_slot import SLOT

F = TypeVar("F", bound=Callable[..., Any])

# The options that are passed on as text; other fields have their own option, or `--set`.
_TEXTS: Final = [field for field in SLOT if field.kind.schema.get("type") == "string" or "enum" in field.kind.schema]
_SHORT: Final = {"timezone": "--tz"}


def definition_options(function: F) -> F:
    """The options of a slot's definition."""
    for field in reversed(_TEXTS):
        option = _SHORT.get(field.attribute, f"--{field.attribute.replace('_', '-')}")
        says, words = field.says, field.kind.schema.get("enum")
        add = click.option(option, field.name, metavar=words and "|".join(words), help=f"{says[0].upper()}{says[1:]}.")
        function = add(function)
    others = [
        click.option("--key-env", metavar="NAME", help="Variable in the daemon's environment that holds the key."),
        click.option("--key-file", metavar="PATH", help="File that holds the key."),
        click.option(
            "--key-stdin", is_flag=True, help="Read the key from standard input; it is stored and never shown."
        ),
        click.option("--quota-command", metavar="LINE", help="Program that prints the quota (provider command)."),
        click.option("--wake-command", metavar="LINE", help="Program that sends the wake (provider command)."),
        click.option("--times", metavar="09:00,13:00", help="Wake at these times of day; at most five."),
        click.option(
            "--errors-max", type=int, help="Consecutive errors after which wakes, or the slot itself, are disabled."
        ),
        click.option("--enabled/--disabled", default=None, help="Whether the slot is woken and polled."),
        click.option("--set", "fields", metavar="FIELD=VALUE", multiple=True, help="Any other field, as JSON."),
    ]
    for add in reversed(others):
        function = add(function)
    return function


@command("add")
@click.argument("name", metavar="NAME")
@definition_options
def add_command(invocation: Invocation, name: str, **given: Any) -> None:
    """Add a slot to the store. With several nodes, every node needs access to the key."""
    daemon = invocation.daemon()
    if any(slot["name"] == name for slot in daemon.get("/api/slots")["slots"]):
        raise Ended(f"slot {name!r} already exists; change it: wakeful slots edit {name}")
    tell(invocation, daemon.ask("PUT", slot_path(name), body=_fields(given)).body)


@command("edit")
@click.argument("name", metavar="NAME")
@definition_options
@click.option("--unset", metavar="FIELD", multiple=True, help="Reset a field to its default, e.g. afterReset.")
def edit_command(invocation: Invocation, name: str, unset: Sequence[str], **given: Any) -> None:
    """Change a slot in the store."""
    changes = {**_fields(given), **dict.fromkeys(unset)}
    if not changes:
        raise Misused("no change given; see: wakeful slots edit --help")
    tell(invocation, invocation.daemon().ask("PATCH", slot_path(name), body=changes).body)


def _fields(given: dict[str, Any]) -> dict[str, Any]:
    """The given options, by JSON name."""
    fields: dict[str, Any] = {field.name: given[field.name] for field in _TEXTS if given[field.name] is not None}
    keys = {"env": given["key_env"], "file": given["key_file"], "stdin": given["key_stdin"] or None}
    named = [name for name, value in keys.items() if value is not None]
    if len(named) > 1:
        raise Misused("more than one key given; use one of --key-env, --key-file and --key-stdin")
    if named:
        fields["apiKey"] = _key_from_stdin() if named == ["stdin"] else {named[0]: keys[named[0]]}
    for option, name in (("quota_command", "quotaArgv"), ("wake_command", "wakeArgv")):
        if given[option] is not None:
            fields[name] = _argv(given[option], option)
    if given["times"] is not None:
        fields["times"] = [part.strip() for part in given["times"].split(",") if part.strip()]
    if given["errors_max"] is not None:
        fields["errorsMax"] = given["errors_max"]
    if given["enabled"] is not None:
        fields["enabled"] = given["enabled"]
    return fields | dict(map(_field, given["fields"]))


def _key_from_stdin() -> str:
    key = sys.stdin.readline().strip()
    if not key:
        raise Misused("--key-stdin: standard input is empty; for example: wakeful slots add main --key-stdin < key.txt")
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
    return name, value_of(SLOT, name, value)
