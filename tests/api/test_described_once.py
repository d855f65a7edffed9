"""Nothing is described twice: routes, methods of the app, agents' tools, settings and events each have one entry."""

import ast
import dataclasses
import inspect
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

import wakeful
from edges.http.test_access import ADMIN, bearer, guarded
from wakeful import Wakeful
from wakeful.api.agent_tools import Tools
from wakeful.api.nouns import NOUNS
from wakeful.api.operation import Blocking, Operation, operations_of
from wakeful.api.tools import TOOLS, toolbox
from wakeful.api.verbs import Verb
from wakeful.config.model import ENTRIES, SETTINGS
from wakeful.core.description import Object
from wakeful.ports import events
from wakeful.server.http.plain_routes import PLAIN
from wakeful.server.http.routing import Dispatch
from wakeful.sync import Wakeful as SyncWakeful

SOURCES: Final = Path(wakeful.__file__).parent
OPERATIONS: Final = [one for noun in NOUNS.values() for one in operations_of(noun)]
ATTRIBUTES: Final = {
    "schedules": "schedules", "runs": "ledger", "workflows": "workflows", "quota": "slots", "people": "people",
    "money": "money", "turns": "turns", "daemon": "system",
}  # fmt: skip
"""The attribute of the app that has a noun's operations, by its tag."""

_FORM: Final = "its operation takes other arguments, or returns a page"
BY_HAND: Final = {
    "add": "a definition as Python options",
    "add_many": "definitions as Python options",
    "update": "a part of a definition as Python options",
    "list": _FORM, "pause": _FORM, "resume": _FORM, "why": _FORM, "run_now": _FORM, "runs": _FORM, "cancel": _FORM,
    "replay": _FORM, "backfill": _FORM, "request_wake": _FORM, "forecast": _FORM,
    "find": "`get`, with None in place of an error",
    "wait_for": "no other way of asking waits for a run",
    "start": "the lifecycle of this process", "stop": "the lifecycle of this process",
    "sleep": "the clock of this process",
}  # fmt: skip
"""Coroutine methods of the app that are no operation's, and why."""


async def test_every_route_is_in_one_of_the_two_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a server finds its functions by are the operations and the plain routes, and OpenAPI has no others."""
    served: list[str] = []

    class Recorded(Dispatch):
        def _add(self, route: str, endpoint: Any) -> None:
            served.append(route)
            super()._add(route, endpoint)

    monkeypatch.setattr("wakeful.server.http.api.Dispatch", Recorded)
    async with guarded(tmp_path) as api:
        paths = (await api.get("/api/openapi.json", headers=bearer(ADMIN))).body["paths"]
    operations, plain = [one.route for one in OPERATIONS], [one.route for one in PLAIN]
    assert sorted(served) == sorted({*operations, *plain})
    assert twice(operations) == twice(plain) == []
    assert {*operations} & {*plain} == {"GET /healthz"}  # with 503 while the daemon fails, and open to strangers
    described = {
        f"{method.upper()} {path}": told for path, methods in paths.items() for method, told in methods.items()
    }
    assert described.keys() == {*operations, *(one.route for one in PLAIN if one.summary)}
    assert twice(told["operationId"] for told in described.values()) == []
    assert {one.route: one.summary for one in OPERATIONS} == {
        one.route: described[one.route]["summary"] for one in OPERATIONS
    }


def test_a_body_is_described() -> None:
    """Parameters in a body need a name for the object that they make."""
    assert [
        one.route
        for one in OPERATIONS
        if any(given.where == "body" for given in one.parameters) and not {"body_name", "body"} & one.about.keys()
    ] == []


def test_every_operation_is_a_method_of_its_noun(tmp_path: Path) -> None:
    """In Python by its noun, and blocking by the noun's twin: the same descriptions, none of them again."""
    app, blocking = Wakeful(tmp_path / "one.db"), SyncWakeful(tmp_path / "two.db")
    try:
        for tag, noun in NOUNS.items():
            assert type(getattr(app, ATTRIBUTES[tag])) is noun
            twin = type(getattr(blocking, ATTRIBUTES[tag]))
            assert issubclass(twin, noun) and issubclass(twin, Blocking)
            assert operations_of(twin) == operations_of(noun)
            assert twice(one.verb for one in operations_of(noun)) == []
    finally:
        blocking.stop()


def test_a_method_of_the_app_is_an_operation_or_says_why_not() -> None:
    """Deprecated ones call the new name (tests/embedding); for the others there is a reason."""
    by_hand = set()
    for name in (name for name in dir(Wakeful) if not name.startswith("_")):
        method = inspect.getattr_static(Wakeful, name)
        if isinstance(method, Verb):
            assert method._operation in OPERATIONS, name
        elif inspect.iscoroutinefunction(method) and not (inspect.getdoc(method) or "").startswith("Deprecated"):
            by_hand.add(name)
    assert by_hand == BY_HAND.keys()


def test_every_tool_is_an_operation_of_tools(tmp_path: Path) -> None:
    """What models are offered is the noun, one for one."""
    assert list(TOOLS.values()) == operations_of(Tools)
    assert [one.name for one in toolbox(Wakeful(tmp_path / "one.db")).tools()] == list(TOOLS)
    assert all(isinstance(one, Operation) and one.noun is Tools for one in TOOLS.values())


def tables() -> Iterator[Object[Any]]:
    """The described tables of the settings, each once."""
    waiting: list[Object[Any]] = [SETTINGS]
    waiting += [table for named in ENTRIES.values() for table in named.tables.values()]
    seen: set[int] = set()
    while waiting:
        table = waiting.pop()
        if id(table) in seen:
            continue
        seen.add(id(table))
        yield table
        waiting += [inner for one in table for inner in one.kind.inner]


def test_every_setting_comes_from_a_description() -> None:
    """The fields of what the settings are read into are those of their table, and no table is made twice."""
    made: dict[Any, list[Object[Any]]] = {}
    for table in tables():
        made.setdefault(table._make, []).append(table)
    assert {make: names for make, one in made.items() if len(names := [table.name for table in one]) > 1} == {}
    for make, (table,) in made.items():
        assert dataclasses.is_dataclass(make), table.name
        assert [field.name for field in dataclasses.fields(make) if field.init] == [*table.names], table.name
    rows = [row for section in SETTINGS for row in section.kind.inner]
    alone = {"plugins"}  # a value, and no table
    assert len(rows) + len(ENTRIES) + len(alone) == len(SETTINGS.names)


def test_every_event_is_made_in_the_table() -> None:
    """Its stream and its name are one description (tests/docs/test_events.py compares the rest)."""
    kinds = [kind for stream in events.STREAMS.values() for kind in stream.kinds]
    assert twice((kind.stream, kind.what) for kind in kinds) == []
    made = {
        str(path.relative_to(SOURCES))
        for path, tree in sources()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("EventStream", "EventKind")
    }
    assert made == {"ports/event.py", "ports/events.py"}


def test_no_framework_describes_anything_a_second_time() -> None:
    """Nothing is imported that has shapes or routes of its own."""
    imported = {
        (str(path.relative_to(SOURCES)), name)
        for path, tree in sources()
        for node in ast.walk(tree)
        for name in names_of(node)
        if name.partition(".")[0] in ("fastapi", "pydantic", "pydantic_core", "pydantic_settings")
    }
    assert imported == set()


def sources() -> Iterator[tuple[Path, ast.Module]]:
    for path in sorted(SOURCES.rglob("*.py")):
        yield path, ast.parse(path.read_text(encoding="utf-8"))


def names_of(node: ast.AST) -> list[str]:
    """The modules that a statement imports."""
    if isinstance(node, ast.ImportFrom):
        return [node.module or ""]
    return [one.name for one in node.names] if isinstance(node, ast.Import) else []


def twice(names: Iterable[Any]) -> list[Any]:
    """What is there more than once."""
    return [name for name, count in Counter(names).items() if count > 1]
