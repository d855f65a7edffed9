"""`wakeful workflows`: list, show, deploy, run, pause, resume, publish, messages, skip, replay, resolve."""

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import click

from wakeful.cli import times
from wakeful.cli.errors import Ended, Misused
from wakeful.cli.invocation import Invocation, group
from wakeful.cli.render import json_out, note, say

NAME: Final = "ID"
STATUSES: Final = ("pending", "reserved", "consumed", "skipped")
SKIP_STEP: Final = 1_000
DEPLOY_TIMEOUT: Final = 600.0
"""Deploying calls every handler once, each with its own timeout."""


@group("workflows")
def workflows_command(invocation: Invocation) -> None:
    """List the workflows, or manage one."""
    workflows = invocation.daemon().pages("/api/workflows", "workflows")
    if invocation.is_json:
        json_out({"workflows": workflows})
    elif not workflows:
        say("no workflows; deploy one: wakeful workflows deploy FILE")
    else:
        _list(workflows)


@workflows_command.subcommand("show")
@click.argument("name", metavar=NAME)
@click.option(
    "--sessions", type=click.IntRange(1, 500), default=5, show_default=True, help="How many past sessions to show."
)
def show_command(invocation: Invocation, name: str, sessions: int) -> None:
    """Show one workflow: handlers, topics, and its last sessions."""
    daemon = invocation.daemon()
    view = daemon.get(workflow_path(name))
    if invocation.is_json:
        json_out(view)
        return
    _show(view, daemon.get(workflow_path(name, "/sessions"), limit=sessions)["sessions"])


@workflows_command.subcommand("deploy")
@click.argument("file", type=click.Path(dir_okay=False, allow_dash=True))
@click.option("--force", is_flag=True, help="Deploy even if a handler cannot be reached.")
@click.option("--dry-run", is_flag=True, help="Check the workflow and call its handlers; change nothing.")
def deploy_command(invocation: Invocation, file: str, force: bool, dry_run: bool) -> None:
    """Deploy a workflow from a JSON file, or from stdin with -."""
    data = _read(file)
    name = data.get("id")
    if not isinstance(name, str):
        raise Misused(f'{file} has no workflow id; add "id": "…"')
    query = {"force": force or None, "dryRun": dry_run or None}
    answer = invocation.daemon().ask("PUT", workflow_path(name), query=query, body=data, timeout=DEPLOY_TIMEOUT)
    if dry_run:
        json_out({"id": name, "isAccepted": True}) if invocation.is_json else say(f"{name} would be accepted")
    elif invocation.is_json:
        json_out(answer.body)
    else:
        done = "created" if answer.status == 201 else f"deployed, version {answer.body['version']}"
        say(f"{name} {done}; it is {answer.body['status']}")
        if answer.warning:
            note(f"wakeful: {answer.warning}")


@workflows_command.subcommand("run")
@click.argument("name", metavar=NAME)
def run_command(invocation: Invocation, name: str) -> None:
    """Start a manual session: all producers, then their consumers."""
    started = invocation.daemon().ask("POST", workflow_path(name, "/run"), body={}).body
    if invocation.is_json:
        json_out(started)
    else:
        say(f"{name} runs as session {started['sessionId']}; follow it with: wakeful workflows show {name}")


@workflows_command.subcommand("pause")
@click.argument("name", metavar=NAME)
def pause_command(invocation: Invocation, name: str) -> None:
    """Pause a workflow: it starts nothing until it is resumed."""
    _tell(invocation, invocation.daemon().ask("POST", workflow_path(name, "/pause"), body={}).body)


@workflows_command.subcommand("resume")
@click.argument("name", metavar=NAME)
@click.option("--force", is_flag=True, help="For a draft: resume even if a handler cannot be reached.")
def resume_command(invocation: Invocation, name: str, force: bool) -> None:
    """Resume a workflow after a pause or an error."""
    answer = invocation.daemon().ask(
        "POST", workflow_path(name, "/resume"), query={"force": force or None}, body={}, timeout=DEPLOY_TIMEOUT
    )
    _tell(invocation, answer.body)


@workflows_command.subcommand("rm")
@click.argument("name", metavar=NAME)
def rm_command(invocation: Invocation, name: str) -> None:
    """Remove a workflow; its past runs are kept."""
    invocation.daemon().ask("DELETE", workflow_path(name))
    json_out({"id": name, "removed": True}) if invocation.is_json else say(f"{name} removed")


@workflows_command.subcommand("publish")
@click.argument("name", metavar=NAME)
@click.argument("topic")
@click.argument("message", metavar="JSON")
@click.option("--id", "message_id", metavar="TEXT", help="The message id; default: generated.")
def publish_command(invocation: Invocation, name: str, topic: str, message: str, message_id: str | None) -> None:
    """Publish a message: its payload, or {"id", "payload"}."""
    try:
        data = json.loads(message)
    except ValueError as error:
        raise Misused(f'JSON cannot be read ({error}); quote it, for example \'{{"subject": "hello"}}\'') from None
    if not (isinstance(data, dict) and "payload" in data and data.keys() <= {"id", "payload"}):
        data = {"payload": data}
    if message_id is not None:
        data["id"] = message_id
    run_id = os.environ.get("WAKEFUL_RUN_ID")  # set if a handler calls this
    headers = {} if run_id is None else {"X-Wakeful-Run": run_id}
    path = workflow_path(name, f"/topics/{_named(topic)}/messages")
    answer = invocation.daemon().ask("POST", path, body=data, headers=headers).body
    json_out(answer) if invocation.is_json else say(f"{answer['id']} {answer['result']} in {topic}")


@workflows_command.subcommand("messages")
@click.argument("name", metavar=NAME)
@click.argument("topic")
@click.option("--status", type=click.Choice(STATUSES), help="Show only this status.")
@click.option("--consumer", metavar="NAME", help="Show only messages for this consumer.")
@click.option(
    "--limit", "-n", type=click.IntRange(1, 10_000), default=50, show_default=True, help="Show at most this many."
)
def messages_command(
    invocation: Invocation, name: str, topic: str, status: str | None, consumer: str | None, limit: int
) -> None:
    """List the messages of a topic, oldest first."""
    path = workflow_path(name, f"/topics/{_named(topic)}/messages")
    messages = invocation.daemon().pages(path, "messages", limit=limit, status=status, consumer=consumer)
    if invocation.is_json:
        json_out({"messages": messages})
    elif not messages:
        say(f"{topic} has no messages" if status is None else f"{topic} has no {status} messages")
    else:
        _list_messages(messages)


@workflows_command.subcommand("skip")
@click.argument("name", metavar=NAME)
@click.argument("topic")
@click.argument("messages", metavar="MESSAGE...", nargs=-1)
@click.option("--consumer", metavar="NAME", help="Skip only for this consumer of the topic; default: all.")
@click.option("--all", "is_all", is_flag=True, help="Skip every pending message of the topic.")
def skip_command(
    invocation: Invocation, name: str, topic: str, messages: tuple[str, ...], consumer: str | None, is_all: bool
) -> None:
    """Skip pending messages: consumers no longer see them."""
    if is_all == bool(messages):
        raise Misused("name the messages to skip, or give --all")
    daemon, path = invocation.daemon(), workflow_path(name, f"/topics/{_named(topic)}")
    if is_all:
        pending = daemon.pages(f"{path}/messages", "messages", status="pending", consumer=consumer)
        messages = tuple(dict.fromkeys(message["id"] for message in pending))
    skipped = 0
    for first in range(0, len(messages), SKIP_STEP):
        body = {"ids": messages[first : first + SKIP_STEP], **({} if consumer is None else {"consumer": consumer})}
        skipped += daemon.ask("POST", f"{path}/skip", body=body).body["skipped"]
    json_out({"topic": topic, "skipped": skipped}) if invocation.is_json else say(f"{skipped} skipped in {topic}")


@workflows_command.subcommand("replay")
@click.argument("name", metavar=NAME)
@click.argument("topic")
@click.argument("messages", metavar="[MESSAGE...]", nargs=-1)
@click.option("--consumer", metavar="NAME", help="Only for this consumer of the topic; default: all.")
@click.option(
    "--apply", "is_applied", is_flag=True, help="Make them pending; without this option they are only counted."
)
def replay_command(
    invocation: Invocation, name: str, topic: str, messages: tuple[str, ...], consumer: str | None, is_applied: bool
) -> None:
    """Make skipped messages pending again, those named or all. Without --apply, only count them."""
    body = {**({"ids": messages} if messages else {}), **({} if consumer is None else {"consumer": consumer})}
    query = {} if is_applied else {"dryRun": "true"}
    path = workflow_path(name, f"/topics/{_named(topic)}/replay")
    answer = invocation.daemon().ask("POST", path, query=query, body=body).body
    if invocation.is_json:
        json_out(answer)
        return
    many = "1 skipped message" if answer["messages"] == 1 else f"{answer['messages']} skipped messages"
    say(f"{many} of {topic} {'pending again' if is_applied else 'would be pending again'}")
    if answer["messages"] and not is_applied:
        note("nothing was changed; to make these changes, add --apply")


@workflows_command.subcommand("resolve")
@click.argument("name", metavar=NAME)
@click.argument("run", metavar="RUN")
@click.argument("choice", type=click.Choice(["retry", "didNotHappen", "skip"]))
def resolve_command(invocation: Invocation, name: str, run: str, choice: str) -> None:
    """Resolve a run whose side effect is uncertain."""
    if not run.isascii() or not run.isdigit():
        raise Ended(f"there is no run {run!r}")
    view = invocation.daemon().ask("POST", workflow_path(name, f"/runs/{run}/resolve"), body={"choice": choice}).body
    json_out(view) if invocation.is_json else say(f"run {run} of {name}: {choice}")


def workflow_path(name: str, question: str = "") -> str:
    """The API path of a workflow; an impossible name is refused without a request."""
    from wakeful.core.slug import SLUG_PATTERN

    if not SLUG_PATTERN.fullmatch(name):
        raise Ended(f"there is no workflow {name!r}")
    return f"/api/workflows/{name}{question}"


def _named(topic: str) -> str:
    from wakeful.core.workflow.definition import NAME_PATTERN

    if not NAME_PATTERN.fullmatch(topic):
        raise Ended(f"there is no topic {topic!r}")
    return topic


def _read(file: str) -> dict[str, Any]:
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
        data = json.loads(text)
    except OSError as error:
        raise Misused(f"{file} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise Misused(f"{file} is not JSON: {error}") from None
    if not isinstance(data, dict):
        raise Misused(f"{file} is not a workflow; write a JSON object")
    return data


def _tell(invocation: Invocation, view: Mapping[str, Any]) -> None:
    if invocation.is_json:
        json_out(view)
    else:
        say(f"{view['id']} is {view['status']}")
        if view.get("error"):
            note(f"  {view['error']}")


def _list(workflows: list[dict[str, Any]]) -> None:
    from wakeful.cli.tables import Column, table

    since = times.now()
    columns = [
        Column("WORKFLOW", least=16),
        Column("STATUS", is_state=True),
        Column("NEXT"),
        Column("PENDING"),
        Column("NOW", drop=2),
        Column("ERROR", drop=1, least=20),
    ]
    table(columns, [_row(view, since) for view in workflows])


def _row(view: Mapping[str, Any], since: Any) -> list[str]:
    pending = sum(counts["pending"] for counts in view["topics"].values())
    run = view.get("openRun")
    return [
        view["id"],
        view["status"],
        times.relative(times.parse(view.get("nextRun")), since),
        str(pending),
        f"{run['handler']} {run['phase']}" if run else times.NONE,
        view.get("error") or times.NONE,
    ]


def _list_messages(messages: list[dict[str, Any]]) -> None:
    from wakeful.cli.tables import Column, table

    since = times.now()
    columns = [
        Column("MESSAGE", least=10),
        Column("CONSUMER", drop=1),
        Column("STATUS", is_state=True),
        Column("ATTEMPT", drop=2),
        Column("PUBLISHED"),
        Column("PAYLOAD", least=10, drop=3),
    ]
    rows = []
    for message in messages:
        published = times.relative(times.parse(message["publishedAt"]), since)
        row = [
            message["id"],
            message.get("consumer") or times.NONE,
            message["status"],
            str(message["attempt"]),
            published,
        ]
        rows.append([*row, json.dumps(message["payload"], ensure_ascii=False)])
    table(columns, rows)


def _show(view: Mapping[str, Any], sessions: list[dict[str, Any]]) -> None:
    from wakeful.cli.tables import Column, facts, table

    since = times.now()
    pairs: list[tuple[str, object]] = [("workflow", view["id"]), ("status", view["status"])]
    if view.get("error"):
        pairs.append(("error", view["error"]))
    limited = times.parse(view.get("limitedUntil"))
    if limited:
        pairs.append(
            ("rate limit", f"its consumers publish to their own topics; they continue {times.relative(limited, since)}")
        )
    run = view.get("openRun")
    if run:
        awaits = f", needs a person ({run['awaits']})" if run.get("awaits") else ""
        pairs.append(("now", f"run {run['runId']}: {run['handler']}, {run['phase']}, {run['outcome']}{awaits}"))
    for name, producer in view["producers"].items():
        at = times.parse(producer.get("nextRun"))
        queued = ", queued" if producer.get("queued") else ""
        pairs.append((f"producer {name}", f"next {times.relative(at, since)}{queued}{_held(producer, since)}"))
    for name, consumer in view["consumers"].items():
        wake = times.parse(consumer.get("wakeAt"))
        dirty = "new messages" if consumer.get("dirty") else "nothing new"
        wakes = f", wakes {times.relative(wake, since)}" if wake else ""
        pairs.append((f"consumer {name}", f"{dirty}{wakes}{_held(consumer, since)}"))
    for name, counts in view["topics"].items():
        pairs.append((f"topic {name}", _counted(counts)))
        readers = {
            key: consumer["messages"][name]
            for key, consumer in view["consumers"].items()
            if name in consumer["messages"]
        }
        if len(readers) > 1:
            pairs += [(f"  for {key}", _counted(counts)) for key, counts in readers.items()]
    facts(pairs)
    if sessions:
        say("")
        table(
            [
                Column("SESSION"),
                Column("KIND"),
                Column("RESULT", is_state=True),
                Column("WHEN"),
                Column("RUNS", least=20),
            ],
            [_session_row(session, since) for session in sessions],
        )


def _held(handler: Mapping[str, Any], since: Any) -> str:
    until = times.parse(handler.get("heldUntil"))
    if until is None:
        return ""
    return f", unreachable, next try {times.relative(until, since)} ({handler.get('lastError')})"


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {status}" for status, count in counts.items() if count) or "empty"


def _session_row(session: Mapping[str, Any], since: Any) -> list[str]:
    runs = " ".join(f"{run['handler']}:{run['phase']}" for run in session["runs"][:20])
    return [
        session["sessionId"],
        session["kind"],
        session["result"] or "running",
        times.relative(times.parse(session["startedAt"]), since),
        runs or times.NONE,
    ]
