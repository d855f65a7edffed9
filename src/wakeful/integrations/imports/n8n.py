"""n8n: schedule triggers of workflows, from an export or its SQLite database. The workflow stays there; the schedule
calls its webhook.

What an interval leaves open (its minute, its second) n8n derives from the ids of the workflow and the node, and so does
this. A time that daylight saving leaves out runs in the first minute after the gap, a repeated one once, unless it runs
every hour.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from wakeful.core.errors import Invalid
from wakeful.core.slug import slug_of
from wakeful.core.time.zones import check_zone
from wakeful.integrations.imports.agent_jobs import entry_or_refusal, object_of, text_of
from wakeful.integrations.imports.cron_fields import cron_sets
from wakeful.integrations.imports.entries import Context, Entry, SourceFile, SourceRefused, refuse
from wakeful.integrations.imports.places import existing, json_of, plain_files_in, read_files, rows_of
from wakeful.integrations.imports.wall_rules import Gap, WallRules

_TRIGGER: Final = "n8n-nodes-base.scheduleTrigger"
_WEBHOOK: Final = "n8n-nodes-base.webhook"
_USUAL_ZONE: Final = "America/New_York"
_USUAL_ADDRESS: Final = "http://localhost:5678/"
_DATABASES: Final = (".sqlite", ".sqlite3", ".db")
_WORDS: Final = {"hours": 24, "minutes": 60}
_NOTE: Final = "the workflow starts at its Webhook node instead of its Schedule Trigger, which gives it other data"

_EXTRA: Final = "when the clock goes forward, n8n starts it once more, right after the gap; here it does not"


def find_n8n(context: Context) -> list[SourceFile]:
    """The database of the user's n8n."""
    home = Path(context.environ.get("N8N_USER_FOLDER") or context.user_home) / ".n8n"
    return [file for path in existing(home / "database.sqlite") for file in open_n8n(path)]


def open_n8n(path: Path) -> list[SourceFile]:
    """An exported workflow, a folder of them, or a database."""
    if path.is_dir():
        return read_files(plain_files_in(path, "*.json"))
    if path.suffix not in _DATABASES:
        return read_files([path])
    rows = rows_of(path, "workflow_entity", ("id", "name", "active", "nodes", "settings"))
    return [SourceFile(str(path), json.dumps([_parsed(row) for row in rows], default=str), path)]


def _parsed(row: Mapping[str, Any]) -> dict[str, Any]:
    workflow = dict(row)
    for name in ("nodes", "settings"):
        try:
            workflow[name] = json.loads(row.get(name) or "null")
        except (ValueError, TypeError, RecursionError):
            workflow[name] = None
    return workflow


def read_n8n(files: Sequence[SourceFile], context: Context) -> list[Entry]:
    """All intervals of all schedule triggers."""
    return [entry for file in files for workflow in _workflows(file) for entry in _of_workflow(file, workflow, context)]


def _workflows(file: SourceFile) -> list[Mapping[str, Any]]:
    data = json_of(file)
    workflows = data if isinstance(data, list) else [data]
    if not all(isinstance(workflow, Mapping) for workflow in workflows):
        raise SourceRefused(file.place, "it is not a workflow of n8n; export it there as JSON")
    return workflows


def _of_workflow(file: SourceFile, workflow: Mapping[str, Any], context: Context) -> list[Entry]:
    nodes = workflow.get("nodes")
    nodes = [node for node in nodes if isinstance(node, Mapping)] if isinstance(nodes, list) else []
    rules = [
        (node, number, rule)
        for node in nodes
        if node.get("type") == _TRIGGER and not node.get("disabled")
        for number, rule in enumerate(_rules(node), 1)
    ]
    webhook = next((node for node in nodes if node.get("type") == _WEBHOOK and not node.get("disabled")), None)
    entries: list[Entry] = []
    for node, number, rule in rules:
        ref = f"{workflow.get('id') or workflow.get('name')} {node.get('id') or node.get('name')} {number}"
        make = partial(_entry, file, ref, workflow, node, rule, webhook, len(rules), context)
        entries.append(entry_or_refusal(file, ref, {"workflow": workflow.get("name"), **rule}, make))
    return entries


def _rules(node: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    intervals = object_of(object_of(node, "parameters"), "rule").get("interval")
    return [rule for rule in intervals if isinstance(rule, Mapping)] if isinstance(intervals, list) else [{}]


def _entry(
    file: SourceFile,
    ref: str,
    workflow: Mapping[str, Any],
    node: Mapping[str, Any],
    rule: Mapping[str, Any],
    webhook: Mapping[str, Any] | None,
    count: int,
    context: Context,
) -> Entry:
    name = text_of(workflow, "name") or "workflow"
    zone = _zone(workflow, context)
    seed = f"{workflow.get('id') or ''}:{node.get('id') or ''}"
    expression = _expression(rule, seed)
    sets = cron_sets(expression, has_open_steps=True)
    is_hourly = len(sets.hours) == 24
    gap: Gap = "skip" if is_hourly else "minute"
    times = WallRules(zone, sets.matches_day, sets.times, gap, "twice" if is_hourly else "once")
    if webhook is None:
        refuse("it can only be started from outside by a Webhook node: add one to the workflow, and import it again")
    return Entry(
        file.place,
        ref,
        json.dumps({"workflow": name, **rule}, ensure_ascii=False),
        slug_of(name),
        schedule={"type": "cron", "expression": expression, "timezone": zone},
        action={"http": _request(webhook, context)},
        options={"maxConsecutiveErrors": 0, **({"lane": f"n8n-{slug_of(name)}"} if count > 1 else {})},
        times=times,
        notes=(_NOTE, *([_EXTRA] if is_hourly and len(sets.minutes) == 1 else [])),
        is_paused=workflow.get("active") in (False, 0),
        by_hand="disable the Schedule Trigger in the workflow, and keep the workflow active",
    )


def _zone(workflow: Mapping[str, Any], context: Context) -> str:
    named = text_of(object_of(workflow, "settings"), "timezone")
    zone = named if named not in (None, "DEFAULT") else context.environ.get("GENERIC_TIMEZONE") or _USUAL_ZONE
    try:
        return check_zone(zone)
    except Invalid:
        refuse(f"its time zone {zone[:80]!r} is not one that is known here")


def _request(webhook: Mapping[str, Any], context: Context) -> dict[str, Any]:
    parameters = object_of(webhook, "parameters")
    path = text_of(parameters, "path") or text_of(webhook, "webhookId")
    if path is None or ":" in path:
        refuse("its Webhook node has no path, or one with parameters")
    if parameters.get("authentication") not in (None, "none"):
        refuse("its Webhook node asks for credentials: write the schedule by hand, with its header")
    method = parameters.get("httpMethod", "GET")
    address = context.environ.get("WEBHOOK_URL") or _USUAL_ADDRESS
    return {"method": method if isinstance(method, str) else "POST", "url": f"{address.rstrip('/')}/webhook/{path}"}


def _expression(rule: Mapping[str, Any], seed: str) -> str:
    """The cron expression that n8n makes of an interval."""
    field = rule.get("field", "days")
    if field == "cronExpression":
        return " ".join(str(rule.get("expression", "")).split())
    if field == "seconds":
        return f"*/{_number(rule, 'secondsInterval', 30, 59)} * * * * *"
    second = _derived(seed, "second", 0, 60)
    if field == "minutes":
        return f"{second} */{_dividing(rule, 'minutesInterval', 5, 60)} * * * *"
    minute = _number(rule, "triggerAtMinute", _derived(seed, "minute", 0, 60), 59, least=0)
    if field == "hours":
        return f"{second} {minute} */{_dividing(rule, 'hoursInterval', 1, 24)} * * *"
    hour = _number(rule, "triggerAtHour", _derived(seed, "hour", 0, 24), 23, least=0)
    every = _number(rule, f"{field}Interval", 1, 366)
    if every != 1 and not (field == "months" and 12 % every == 0):
        refuse(f"it runs every {every} {field}, counted from its last run, which a cron schedule cannot express")
    if field == "days":
        return f"{second} {minute} {hour} * * *"
    if field == "weeks":
        days = rule.get("triggerAtDay", [0])
        return f"{second} {minute} {hour} * * {','.join(map(str, days)) if days else '*'}"
    if field != "months":
        refuse(f"its interval {str(field)[:40]!r} is not one of n8n")
    day = _number(rule, "triggerAtDayOfMonth", _derived(seed, "dayOfMonth", 1, 29), 31)
    return f"{second} {minute} {hour} {day} */{every} *"


def _dividing(rule: Mapping[str, Any], name: str, usual: int, whole: int) -> int:
    every = _number(rule, name, usual, whole - 1)
    if whole % every:
        refuse(
            f"it runs every {every} {name.removesuffix('Interval')}, which do not divide {whole}: write `every` by hand"
        )
    return every


def _number(rule: Mapping[str, Any], name: str, usual: int, most: int, *, least: int = 1) -> int:
    value = rule.get(name)
    if value is None:
        return usual
    if not isinstance(value, int) or not least <= value <= most:
        refuse(f"its {name} is {str(value)[:80]!r}, not {least} to {most}")
    return value


def _derived(seed: str, label: str, low: int, high: int) -> int:
    """The number that n8n uses for what an interval leaves open."""
    digest = hashlib.sha256(f"{seed}:{label}".encode()).digest()
    return low + int.from_bytes(digest[:4]) % (high - low)
