"""The options of `add` and `edit` that describe an action, and the definition fields they set."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any, Final

import click

from wakeful.cli.errors import Fault, Misused
from wakeful.cli.shell_syntax import shell_form, shell_syntax
from wakeful.cli.timing_options import flag

ACTIONS: Final = ("prompt", "command", "url", "call", "dispatch", "event")
WORDS: Final = "--prompt, --command, --url, --call, --dispatch and --event"
# The field of the definition behind each option.
_FIELDS: Final[Mapping[str, str]] = {
    "prompt": "prompt",
    "agent": "agent",
    "command": "command.argv",
    "url": "http.url",
    "method": "http.method",
    "body": "http.body",
    "call": "call.target",
    "dispatch": "dispatch.celery.task",
    "broker": "dispatch.celery.broker",
    "backend": "dispatch.celery.backend",
    "event": "event.text",
}
_OBJECT_OF: Final = {name: _FIELDS[name].partition(".")[0] for name in ACTIONS}
FIELDS: Final[Mapping[str, str]] = {
    **{field: flag(name) for name, field in _FIELDS.items()},
    **{field: flag(name) for name, field in _OBJECT_OF.items()},
}
"""The option of each field, so that errors can name it."""
_COMPANIONS: Final[Mapping[str, str]] = {
    **{"agent": "prompt", "ephemeral": "prompt", "method": "url", "body": "url"},
    **{"broker": "dispatch", "backend": "dispatch"},
}
OPTIONS: Final = (
    click.option("--prompt", metavar="TEXT", help="Send this prompt to an agent."),
    click.option("--agent", metavar="NAME", help="The agent for --prompt; by default the agent named default."),
    click.option("--ephemeral", is_flag=True, default=None, help="Start a new session for every run."),
    click.option(
        "--command",
        metavar="ARGV",
        help="Run a program. Quote it as in a shell, but no shell runs it; for pipes use \"sh -c '…'\".",
    ),
    click.option("--url", metavar="URL", help="Send an HTTP request."),
    click.option("--method", metavar="M", help="HTTP method; default: POST."),
    click.option("--body", metavar="JSON", help="HTTP body, as JSON."),
    click.option("--call", metavar="MODULE:FUNC", help="Call a Python function."),
    click.option("--dispatch", metavar="TASK", help="Hand the run over to Celery workers, as this task."),
    click.option("--broker", metavar="URL", help="The broker URL for --dispatch, or a variable that holds it."),
    click.option(
        "--backend", metavar="URL", help="The result backend URL for --dispatch, or a variable that holds it."
    ),
    click.option("--event", metavar="TEXT", help="Queue a system event for the heartbeat."),
)


def action_of(given: Mapping[str, Any], *, is_edit: bool = False) -> tuple[dict[str, Any], list[Fault]]:
    """The definition fields that these options set (empty if none was given), and what is wrong with them."""
    chosen = [name for name in ACTIONS if given[name] is not None]
    if len(chosen) > 1:
        words = " and ".join(map(flag, chosen))
        return {}, [(flag(chosen[-1]), f"{words} cannot be combined; give exactly one of {WORDS}")]
    faults: list[Fault] = [
        (flag(name), f"only works with {flag(owner)}; add it, or leave this out")
        for name, owner in _COMPANIONS.items()
        if given[name] is not None and owner not in chosen and (chosen or not is_edit)
    ]
    fields: dict[str, Any] = {}
    if is_edit and chosen:
        # An edit that changes the kind removes the others.
        fields = dict.fromkeys(field for name, field in _OBJECT_OF.items() if name != chosen[0])
        if chosen[0] != "prompt":
            fields |= {"agent": None, "sessionConfig": None}
    for name in (*ACTIONS, *_COMPANIONS):
        if given[name] is not None:
            try:
                _merge(fields, _written(name, given[name]))
            except Misused as misused:
                faults += misused.faults
    return fields, faults


def _merge(fields: dict[str, Any], more: Mapping[str, Any]) -> None:
    for name, value in more.items():
        known = fields.get(name)
        if isinstance(known, dict) and isinstance(value, dict):
            _merge(known, value)
        else:
            fields[name] = value


def _argv(text: str) -> list[str]:
    try:
        argv = shlex.split(text)
    except ValueError as error:
        raise Misused(
            "--command", [("--command", f"cannot be split into arguments ({error}); close every quote")]
        ) from error
    if not argv:
        raise Misused("--command", [("--command", "is empty; write a program and its arguments, e.g. 'make report'")])
    syntax = shell_syntax(text)
    if syntax is not None:
        words = f"has {syntax} outside quotes, and no shell runs the command; quote it, or run all of it in a shell"
        raise Misused("--command", [("--command", f"{words}:\n  {shell_form(text)}")])
    return argv


def _body(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        cure = """write for example '{"a": 1}', or a string as '"hello"'"""
        raise Misused("--body", [("--body", f"is not JSON ({error}); {cure}")]) from error


def _written(name: str, value: Any) -> dict[str, Any]:
    if name == "ephemeral":
        return {"sessionConfig": {"persistSession": False}}
    field, *inner = _FIELDS[name].split(".")
    given = {"command": _argv, "body": _body, "broker": _address, "backend": _address}.get(name, str)(value)
    for part in reversed(inner):
        given = {part: given}
    return {field: given}


def _address(text: str) -> Any:
    """A URL, or the name of the variable that holds one."""
    return text if "://" in text else {"env": text}
