"""`wakeful add "every weekday at 9 summarise my mail"`: shows how a sentence is understood, then adds it."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from typing import Any

import click

from wakeful.cli.client import Daemon
from wakeful.cli.definition_options import definition_of
from wakeful.cli.errors import Ended, Misused
from wakeful.cli.invocation import Invocation
from wakeful.cli.render import note, say


def is_sentence(text: str, given: Mapping[str, Any]) -> bool:
    """Whether this is a sentence and no slug: several words, and no option that says when or what."""
    from wakeful.cli.action_options import ACTIONS
    from wakeful.cli.timing_options import TIMINGS

    return len(text.split()) > 1 and all(given[name] is None for name in (*TIMINGS, *ACTIONS))


def understood(
    daemon: Daemon, text: str, given: Mapping[str, Any], *, is_asking: bool
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The definition that the sentence and the other options make, and how the daemon understood the sentence. What is
    unclear is asked on a terminal, and refused elsewhere."""
    from wakeful.cli.times import user_zone

    zone = given["tz"] or user_zone()[0]
    while True:
        found = daemon.ask("POST", "/api/understand", body={"text": text, "timezone": zone}).body
        if found["definition"] is not None:
            break
        (question, *_) = found["unclear"]
        if not is_asking or not question["options"]:
            options = [f"wakeful add {shlex.quote(option)}" for option in question["options"]]
            raise Misused(question["question"], hint="\n  ".join(options) or None)
        text = _chosen(question)
    definition = found["definition"]
    return {**definition, **definition_of({**given, "tz": None, "prompt": definition["prompt"]})}, found


def _chosen(question: Mapping[str, Any]) -> str:
    """The option that the user chooses; each makes the sentence clearer, so that the questions end."""
    note(question["question"])
    for number, option in enumerate(question["options"], start=1):
        note(f"  {number}  {option}")
    number = click.prompt("Which one", type=click.IntRange(1, len(question["options"])), err=True)
    return str(question["options"][number - 1])


def is_on_terminal(invocation: Invocation) -> bool:
    """Whether there is a person who can answer."""
    return not invocation.is_json and sys.stdin.isatty()


def tell_understood(definition: Mapping[str, Any], found: Mapping[str, Any]) -> None:
    """Print how it was understood."""
    from wakeful.cli.add import tell_cost
    from wakeful.cli.schedule_words import when
    from wakeful.cli.timetable import show_times

    say(f"{definition['slug']}: {when(found)}")
    say(f"  prompt   {definition['prompt']}")
    if "deliver" in definition:
        addressees = [definition["deliver"]] if isinstance(definition["deliver"], dict) else definition["deliver"]
        say(f"  sent to  {', '.join(one['channel'] for one in addressees)}")
    for assumed in found["assumed"]:
        say(f"  assumed  {assumed}")
    show_times(found["next"], definition["schedule"])
    tell_cost({"perMonth": found["estimate"]})


def confirm(invocation: Invocation) -> None:
    """Ask on a terminal; elsewhere, `--yes` has to be given."""
    if not is_on_terminal(invocation):
        raise Misused("nothing was added", [("--yes", "is missing; give it to add what was understood")])
    if not click.confirm("Add it?", err=True):
        raise Ended("nothing was added")
