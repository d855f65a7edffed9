"""docs/events.md names every stream and every event that the code tells, and no other."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import get_args

from docs.blocks import ROOT
from wakeful.core.workflow.rows import Status
from wakeful.ports.sink import ScheduleChangeKind
from wakeful.server.http.stream import STREAMS

PAGE = (ROOT / "docs" / "events.md").read_text(encoding="utf-8")
SOURCES = ROOT / "src" / "wakeful"
NAMED = {"HEARTBEAT": "heartbeat", "EVENTS": "events"}
OWN_STREAM = {"delivery": "deliveries", "quota": "slots", "workflows": "workflows"}
"""The stream a feature's own function tells on: `report(tx, what, …)`, `tell(tx, row, what, …)`."""
PLACE_OF_WHAT = {"report": 1, "_report": 1, "tell": 2}


def calls(file: Path) -> Iterator[tuple[str, list[ast.expr]]]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield node.func.id, node.args


def text(expression: ast.expr) -> str | None:
    return expression.value if isinstance(expression, ast.Constant) and isinstance(expression.value, str) else None


def constants(file: Path) -> dict[str, str]:
    """Those that a module defines, and those that it imports from other modules of ours."""
    source = file.read_text(encoding="utf-8")
    found = {**NAMED, **dict(re.findall(r'^([A-Z]+): Final = "(\w+)"', source, re.M))}
    for node in ast.parse(source).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("wakeful.features."):
            names = {alias.name for alias in node.names if alias.name.isupper()}
            if names:
                theirs = constants(SOURCES.parent / f"{(node.module or '').replace('.', '/')}.py")
                found |= {name: theirs[name] for name in names & theirs.keys()}
    return found


@cache
def told_by_features() -> dict[str, set[str]]:
    """What features report, as it stands in their source."""
    found: dict[str, set[str]] = defaultdict(set)
    for file in sorted((SOURCES / "features").rglob("*.py")):
        feature = file.relative_to(SOURCES / "features").parts[0]
        for name, arguments in calls(file):
            if name == "Report":
                stream = text(arguments[0]) or constants(file)[ast.unparse(arguments[0])]
                what = text(arguments[1])
            elif name in PLACE_OF_WHAT and feature in OWN_STREAM:
                stream, what = OWN_STREAM[feature], text(arguments[PLACE_OF_WHAT[name]])
            else:
                continue
            if what is not None:
                found[stream].add(what)
    found["workflows"] |= {"paused", "resumed"} | (set(get_args(Status)) - {"active"})  # `what` is the status there
    return found


@cache
def told_by_the_engine() -> dict[str, set[str]]:
    """What the engine's facts become."""
    found: dict[str, set[str]] = defaultdict(set)
    for name, arguments in calls(SOURCES / "observe" / "events.py"):
        if name == "_of_runs" and (what := text(arguments[0])):
            found["runs"].add(what)
        elif name in ("EventBatch", "_one") and (stream := text(arguments[0])) and (what := text(arguments[1])):
            found[stream].add(what)
    found["schedules"] = set(get_args(ScheduleChangeKind))
    return found


def told() -> dict[str, set[str]]:
    """Both: the engine and features share the streams of runs and schedules."""
    engine, features = told_by_the_engine(), told_by_features()
    return {
        stream: engine.get(stream, set()) | features.get(stream, set()) for stream in engine.keys() | features.keys()
    }


def documented() -> dict[str, set[str]]:
    chapters = re.split(r"^## ", PAGE, flags=re.M)[1:]
    return {chapter.split("`")[1]: set(re.findall(r"^\| `([\w-]+)` \|", chapter, re.M)) for chapter in chapters}


def test_the_page_names_what_is_told_and_nothing_else() -> None:
    """Stream by stream."""
    assert documented() == told()
    assert set(STREAMS) == set(documented())


def test_the_sources_are_really_read() -> None:
    """An event that nobody would miss shows that the test looks where events are made."""
    found = told()
    assert {"claimed", "settled", "climbed"} <= found["runs"]
    assert {"dead", "queued", "deferred"} <= found["deliveries"]
    assert {"confirmed", "wakeFailed"} <= found["slots"]
