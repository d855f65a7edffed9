"""Adding a schedule."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import click

from wakeful.cli import action_options, add_sentence, timing_options
from wakeful.cli.client import Answer, Daemon, Refused, schedule_path
from wakeful.cli.definition_options import definition_of, definition_options, in_options
from wakeful.cli.errors import Ended, Fault, Misused
from wakeful.cli.invocation import Invocation, command
from wakeful.cli.render import json_out, note, plural, say

TIMES_SHOWN: Final = 5
CREATED: Final = 201
PROPOSED: Final = 202
EXISTS: Final = 412


@command("add")
@click.argument("slug", metavar="SLUG|TEXT")
@definition_options
@click.option("--from", "source", type=click.File(), metavar="FILE", help="Start from a definition.json (- is stdin).")
@click.option("--new", "is_new", is_flag=True, help="Fail if a schedule with this name exists.")
@click.option("--dry-run", is_flag=True, help="Check the definition and show its times; change nothing.")
@click.option("--yes", "is_sure", is_flag=True, help="With TEXT: add it without asking.")
def add_command(
    invocation: Invocation, slug: str, source: Any, is_new: bool, dry_run: bool, is_sure: bool, **given: Any
) -> None:
    """Add a schedule, and show its next five times.

    In words: wakeful add 'every weekday at 9 summarise my mail, send to phone' shows how it is understood, and asks
    before it adds the schedule.

    Otherwise give exactly one timing (--when, --cron, --every, --at, --in, --times, --after-reset or --manual) and
    exactly one action (--prompt, --command, --url, --call, --dispatch or --event). An existing schedule is updated and
    keeps its state.
    """
    if source is None and add_sentence.is_sentence(slug, given):
        _add_sentence(invocation, slug, given, dry_run=dry_run, is_sure=is_sure)
        return
    _refuse_slug(slug)
    definition = {**_written(source), **definition_of(given)}
    _refuse_incomplete(definition)
    daemon = invocation.daemon(what="so the schedule would never fire")
    answer = _put(daemon, slug, definition, given, is_new=is_new, dry_run=dry_run)
    view = answer.body
    is_given = dry_run or "result" in view  # an agent's write returns its times itself
    upcoming = view["next"] if is_given else daemon.get(schedule_path(slug, "/next"), count=TIMES_SHOWN)["times"]
    if invocation.is_json:
        json_out({**view, "next": upcoming})
    else:
        if answer.status == PROPOSED:
            say(f"{view['slug']} waits for a person's approval; nothing runs until then")
            return
        done = "is valid; nothing was written" if dry_run else "added" if answer.status == CREATED else "updated"
        tell(view, upcoming, done)
        tell_cost(view.get("cost"))
    warn(daemon, answer)


def _add_sentence(invocation: Invocation, text: str, given: Mapping[str, Any], *, dry_run: bool, is_sure: bool) -> None:
    daemon = invocation.daemon(what="so the schedule would never fire")
    is_asking = not is_sure and add_sentence.is_on_terminal(invocation)
    definition, found = add_sentence.understood(daemon, text, given, is_asking=is_asking)
    if not invocation.is_json:
        add_sentence.tell_understood(definition, found)
    elif dry_run:
        json_out({**found, "definition": definition})
    if dry_run:
        return
    if not is_sure:
        add_sentence.confirm(invocation)
    answer = _put(daemon, definition["slug"], definition, given, is_new=True, dry_run=False)
    if invocation.is_json:
        json_out({**answer.body, "next": found["next"]})
    else:
        say(f"{definition['slug']} added")
    warn(daemon, answer)


def tell_cost(cost: Mapping[str, Any] | None) -> None:
    """Print what a month of a prompt schedule costs at this rhythm."""
    from wakeful.cli.costs import dollars

    if cost is None or not (cost.get("perMonth") or {}).get("runs"):
        return
    month = cost["perMonth"]
    estimate = "unknown until it has run" if month["cost"] is None else f"about {dollars(month['cost'])}"
    say(f"Cost of 30 days: {estimate} ({plural(month['runs'], 'run')})")


def tell(view: Mapping[str, Any], upcoming: list[str], done: str) -> None:
    """Print what was done and the next fire times."""
    from wakeful.cli.schedule_words import when
    from wakeful.cli.timetable import explain_no_times, show_times

    say(f"{view['slug']} {done}: {when(view)}")
    is_off = view.get("enabled") is False
    if is_off or not upcoming:
        explain_no_times(view)
    if upcoming:
        if is_off:
            say("Its times would be:")
        show_times(upcoming, view.get("schedule", {}))


def warn(daemon: Daemon, answer: Answer) -> None:
    """Print warnings, also if the daemon would not fire the schedule right now."""
    from wakeful.cli.health import why_idle

    if answer.warning:
        note(f"wakeful: {answer.warning}")
    reason = why_idle(daemon)
    if reason is not None:
        note(f"wakeful: no schedule fires at the moment: {reason}")


def _refuse_slug(slug: str) -> None:
    from wakeful.core.errors import Invalid
    from wakeful.core.schedule.definition import check_slug

    try:
        check_slug(slug)
    except Invalid as invalid:
        raise Misused("not accepted", [(error.field, error.message) for error in invalid.errors]) from invalid


def _written(source: Any) -> dict[str, Any]:
    """The definition in the --from file; the daemon ignores read-only fields."""
    if source is None:
        return {}
    try:
        written = json.load(source)
    except (ValueError, OSError) as error:
        raise Misused("not accepted", [("--from", f"{source.name} is not JSON ({error})")]) from error
    if not isinstance(written, dict):
        raise Misused(
            "not accepted", [("--from", f"{source.name} is not a JSON object; a definition looks like {{…}}")]
        )
    written.pop("slug", None)  # the name on the command line wins
    return written


def _refuse_incomplete(definition: Mapping[str, Any]) -> None:
    missing: list[Fault] = []
    if "schedule" not in definition:
        missing.append(("when", f"is missing; give exactly one of {timing_options.WORDS}"))
    if not {"prompt", "command", "http", "call", "event", "dispatch"} & set(definition):
        missing.append(("what", f"is missing; give exactly one of {action_options.WORDS}"))
    if missing:
        raise Misused("not accepted", missing)


def _put(
    daemon: Daemon, slug: str, definition: Mapping[str, Any], given: Mapping[str, Any], *, is_new: bool, dry_run: bool
) -> Answer:
    query = {"dryRun": True} if dry_run else None
    headers = {"If-None-Match": "*"} if is_new else None
    try:
        return daemon.ask("PUT", schedule_path(slug), query=query, body=definition, headers=headers)
    except Refused as refused:
        if refused.status == EXISTS:
            raise Ended(f"schedule {slug} already exists", hint=f"change it: wakeful edit {slug} …") from refused
        raise
    except Misused as misused:
        misused.faults = tuple(in_options(misused.faults, given))
        raise
