"""Files that another program did not write so: a value of another type, a byte, a line that is missing. Whatever it is,
the file or the entry is refused, and nothing else happens."""

import base64
import copy
import json
import plistlib
import random
import sqlite3
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml

from moving.kit import CORPUS, STARTS, read
from moving.test_celery_beat import SETTINGS
from moving.test_launchd import JOB
from moving.test_workflow_systems import AUTOMATIONS, DAGS, WORKFLOW, workflow
from wakeful.core.errors import Invalid
from wakeful.integrations.imports.entries import SourceRefused

ROUNDS = 120
ODD: tuple[Any, ...] = (
    None, True, 0, -1, 3.5, 10**30, "", "x", "\x00", "0 0 31 2 *", "ééé", [], {}, [1], {"a": 1}, [[]], "2030-01-01",
    "*/0", "99:99", "@daily", ["x"], 1e308,
)  # fmt: skip
JSON: dict[str, tuple[Any, Callable[[Any], str]]] = {
    "n8n": (workflow({"field": "weeks", "triggerAtDay": [1], "triggerAtHour": 3}), json.dumps),
    "celery-beat": (json.loads((CORPUS / "django-celery-beat-2.9.0.json").read_text()), json.dumps),
    "github-actions": (yaml.safe_load(WORKFLOW), yaml.safe_dump),
    "home-assistant": (yaml.safe_load(AUTOMATIONS.replace("!secret ", "")), yaml.safe_dump),
    "launchd": (
        {**JOB, "StartInterval": 5, "StartCalendarInterval": [{"Hour": 1, "Minute": 2}, {"Hour": 3, "Minute": 2}]},
        lambda data: plistlib.dumps(data).decode(),
    ),
}


def places(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, inner in items:
        yield (*path, key)
        yield from places(inner, (*path, key))


def damaged(data: Any, chance: random.Random) -> Any:
    """With another value at one place, or without one."""
    data = copy.deepcopy(data)
    *path, last = chance.choice(list(places(data)))
    holder = data
    for key in path:
        holder = holder[key]
    if chance.random() < 0.2 and isinstance(holder, dict):
        del holder[last]
    else:
        holder[last] = chance.choice(ODD)
    return data


def survives(kind: str, text: str) -> None:
    """Entries or refusals, and times of the entries."""
    try:
        entries = read(kind, content=text)
    except SourceRefused:
        return
    for entry in entries:
        if entry.refused is None and entry.times is not None:
            try:
                entry.times(STARTS[0], 2)
            except Invalid:
                continue


@pytest.mark.parametrize("kind", JSON)
def test_a_value_of_another_type(kind: str) -> None:
    """Or a field that is missing."""
    data, written = JSON[kind]
    chance = random.Random(kind)
    for _ in range(ROUNDS):
        try:
            text = written(damaged(data, chance))
        except (ValueError, TypeError, OverflowError, yaml.YAMLError):  # the format cannot have that value
            continue
        survives(kind, text)


@pytest.mark.parametrize(("kind", "source"), [("airflow", DAGS), ("celery-beat", SETTINGS)])
def test_another_character_in_a_program(kind: str, source: str) -> None:
    """Or a line that is missing."""
    chance = random.Random(kind)
    for _ in range(ROUNDS):
        lines = source.split("\n")
        number = chance.randrange(len(lines))
        at = chance.randrange(len(lines[number]) + 1)
        changed = lines[number][:at] + chance.choice("()[]{}=,0x'\"*@.") + lines[number][at + 1 :]
        lines[number : number + 1] = [changed] if chance.random() < 0.7 else []
        survives(kind, "\n".join(lines))


def test_another_byte_in_a_pickle() -> None:
    """Also in its opcodes."""
    store = sqlite3.connect(":memory:")
    store.executescript((CORPUS / "apscheduler-3.11.3.sql").read_text())
    pickles = [row[0] for row in store.execute("SELECT job_state FROM apscheduler_jobs")]
    store.close()
    chance = random.Random(0)
    for _ in range(ROUNDS):
        data = bytearray(chance.choice(pickles))
        data[chance.randrange(len(data))] = chance.randrange(256)
        job = {"id": "x", "next_run_time": 1.0, "job_state": base64.b64encode(bytes(data)).decode()}
        survives("apscheduler", json.dumps([job]))
