"""The API as its description says: nothing breaks it, and it answers nothing that is not described."""

import json
import re
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import SkipTest
from urllib.parse import urlencode

import pytest
import schemathesis
from fastapi import FastAPI, Response
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from jsonschema import Draft202012Validator
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012
from schemathesis import GenerationMode, checks
from schemathesis.core.failures import FailureGroup

from access import HEADERS
from edges.http.kit import Daemon, daemon
from patience import PATIENCE
from sampling import sampled
from wakeful.api.nouns import NOUNS
from wakeful.api.operation import operations_of
from wakeful.core.schedule.definition import SCHEDULE
from wakeful.core.schedule.definition_json import READ_BACK, WRITTEN
from wakeful.core.schema_json import schema_of
from wakeful.server.http import plain_routes
from wakeful.server.http.access import Caller
from wakeful.server.http.roles import AGENTS, WRITING, refusal

FEW = settings(max_examples=2, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck), database=None)
MANY = settings(FEW, max_examples=20)
SAMPLE = 3  # of the operations that are asked anything; things that exist are asked of all of them
BOUNDS = [pytest.param(FEW, id="few"), pytest.param(MANY, id="many", marks=pytest.mark.torture)]
HELD: list[Any] = [
    checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
    checks.response_headers_conformance,
    checks.negative_data_rejection,
]
JOB = {"schedule": {"type": "manual"}, "command": {"argv": ["/bin/true"]}}


FLOW = {"status": "draft", "consumers": {"c": {"subscribe": ["t"], "handler": {"command": {"argv": ["/bin/true"]}}}}}
COMMAND = {"command": {"argv": ["/bin/true"], "env": {"A": "b"}, "cwd": "/", "stdin": "x", "outputMax": 5}}
KINDS: list[dict[str, Any]] = [
    {"schedule": {"type": "cron", "expression": "0 9 * * 1-5", "timezone": "Asia/Shanghai"}, **COMMAND},
    {"schedule": {"type": "cron", "expression": "0 0 9 * * 1-5"}, "prompt": "hello"},
    {"schedule": {"type": "every", "every": "90m", "anchor": "2026-01-30T09:00:00+02:00"}, **COMMAND},
    {"schedule": {"type": "interval", "intervalMinutes": 90.5}, "http": {"url": "http://127.0.0.1:1/", "body": [1]}},
    {
        "schedule": {"type": "once", "at": "2999-01-30T09:00:00Z"},
        "http": {"url": "http://127.0.0.1:1/", "method": "GET"},
    },
    {"schedule": {"type": "at", "at": "2999-01-30T09:00:00", "timezone": "UTC"}, **COMMAND},
    {"schedule": {"type": "times", "times": ["09:00", "18:00"]}, "prompt": "hello", "sessionConfig": {"a": [1]}},
    {"schedule": {"type": "afterReset", "slot": "main", "offsetMinutes": 1}, "call": {"target": "os:getpid"}},
    {"schedule": {"type": "manual"}, "call": {"target": "os:getpid", "args": {"a": 1}, "isolate": "process"}},
]
# Options whose every value of the described shape is accepted.
PLAIN = frozenset({
    "catchUp", "overlap", "onCrash", "success", "status", "statusReason", "lastRun", "lastResult", "nextRun", "version",
    "createdAt", "description", "next",
})  # fmt: skip


# Routes that always have something to answer; others need settings or things that are not here.
OF_SCHEDULES = ("/api/schedule", "/api/runs", "/api/upcoming", "/api/nodes", "/api/config", "/healthz", "/metrics")
SIMULATED = ("/api/simulate", "/api/forecast")  # each starts a process
LINE_MAX = 60_000  # what is longer does not fit the first line of a request, and is refused before the API sees it
# A receipt needs the token of its run; nothing is removed; and what is written rightly is asked by a test of its own.
ALWAYS_REFUSED = frozenset(
    {
        "POST /api/runs/{id}/receipt",
        "POST /api/runs/{id}/cancel",  # the run has ended
        "POST /api/schedule/{slug}/backfill",  # a manual schedule has no instants
        "DELETE /api/schedule/{slug}",
        "PUT /api/schedule/{slug}",
    }
)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A daemon that finds no program, whatever is written into its schedules."""
    with daemon(tmp_path_factory.mktemp("api") / "home", environ={"PATH": "/nowhere"}) as one:
        send(one, "PUT", "/api/schedule/known", JOB)
        send(one, "POST", "/api/schedule/known/run?wait=true")
        send(one, "PUT", "/api/workflows/1", FLOW)
        yield one


@pytest.fixture(scope="module")
def operations(running: Daemon) -> list[Any]:
    schema = schemathesis.openapi.from_url(f"{running.address}/api/openapi.json", headers=HEADERS)
    found = [result.ok() for result in schema.get_all_operations()]
    return [operation for operation in found if operation.path != "/api/stream"]  # that one never ends


@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("mode", sampled(GenerationMode, every=len(GenerationMode)))
def test_whatever_is_asked_is_answered_as_described(
    operations: list[Any], mode: GenerationMode, bounds: settings
) -> None:
    """Anything the description allows, and anything that it does not. What is written never runs."""

    def asked(case: Any) -> None:
        if len(urlencode(case.query or {}, doseq=True)) > LINE_MAX:
            return
        if isinstance(case.body, dict) and case.path.startswith(("/api/schedule/{slug}", "/api/slots/{name}")):
            case.body["enabled"] = False
        if isinstance(case.body, dict) and case.path.startswith("/api/workflows/{id}") and case.method != "POST":
            case.body["status"] = "draft"  # one that is not tried out: no handler is asked
        case.call_and_validate(checks=HELD, headers=HEADERS, timeout=PATIENCE)

    for operation in operations if bounds is MANY else operations[::SAMPLE]:
        if not operation.path.endswith(("/run", "/slots/{name}/wake", "/slots/{name}/poll")):  # nobody is asked
            fuzz(operation, mode, asked, bounds)


@pytest.mark.parametrize("bounds", BOUNDS)
def test_what_is_there_is_answered_as_described(operations: list[Any], bounds: settings) -> None:
    """The same, asked of things that exist; writes are only rehearsed, and nothing is removed."""
    known = {"slug": "known", "id": "1", "name": "door", "topic": "t", "run": "1", "agent": "default"}
    statuses: dict[str, set[int]] = {}

    def asked(case: Any) -> None:
        case.path_parameters = {name: known[name] for name in case.path_parameters or {}}
        if case.method in ("PUT", "PATCH"):
            case.query = {"dryRun": "true"}
        if case.method == "DELETE":
            case.headers = {"If-Match": '"another"'}
        response = case.call_and_validate(
            timeout=PATIENCE, checks=[c for c in HELD if c is not checks.negative_data_rejection], headers=HEADERS
        )
        statuses.setdefault(f"{case.method.upper()} {case.path}", set()).add(response.status_code)

    for operation in operations:
        fuzz(operation, GenerationMode.POSITIVE, asked, bounds)
    assert len(statuses) == len(operations)
    never = {name for name, seen in statuses.items() if min(seen) >= 400 and name.split()[1].startswith(OF_SCHEDULES)}
    assert never <= ALWAYS_REFUSED, "asked, and never answered as one who asks rightly is"


def test_every_route_is_asked(running: Daemon, operations: list[Any]) -> None:
    """What the application answers and does not describe would escape: there is no such route."""
    told = {(operation.method.upper(), operation.path) for operation in operations}
    described = json.loads(urllib.request.urlopen(f"{running.address}/api/openapi.json").read())["paths"]
    every = {(method.upper(), path) for path, methods in described.items() for method in methods}
    assert every - told == {("GET", "/api/stream")}
    operations_in_table = {one.route for noun in NOUNS.values() for one in operations_of(noun)}
    hidden = {one.route for one in plain_routes.PLAIN if not one.summary} - operations_in_table
    assert {path for _, path in every} <= set(send(running, "GET", "/api/routes")["paths"])
    assert hidden == {"GET /page/{path:path}", "GET /mcp", "POST /mcp", "DELETE /mcp", "GET /api/openapi.json"}


@pytest.mark.parametrize("answer", ["boom", "odd", "lie", "text"])
def test_the_checks_catch_what_they_are_for(answer: str) -> None:
    """An API that breaks, or answers what it does not describe, does not pass."""
    broken = FastAPI()

    @broken.get("/thing", response_model=int)
    async def thing() -> Any:
        if answer == "boom":
            raise RuntimeError("it broke")
        bodies = {"odd": (418, b"1", "application/json"), "lie": (200, b'"x"', "application/json")}
        status, body, kind = bodies.get(answer, (200, b"1", "text/plain"))
        return Response(body, status, media_type=kind)

    operations = [one.ok() for one in schemathesis.openapi.from_asgi("/openapi.json", broken).get_all_operations()]
    with pytest.raises((FailureGroup, RuntimeError)):
        fuzz(operations[0], GenerationMode.POSITIVE, lambda case: case.call_and_validate(checks=HELD))


@pytest.mark.parametrize("examples", [30, pytest.param(200, marks=pytest.mark.torture)])
def test_what_is_written_reads_back_as_described(operations: list[Any], examples: int) -> None:
    """Definitions of every kind, with any options the description allows, are accepted and answered as it says."""
    (put,) = [one for one in operations if one.method.upper() == "PUT" and one.path == "/api/schedule/{slug}"]
    statuses: Counter[int] = Counter()

    def asked(case: Any) -> None:
        index = sum(statuses.values())
        options = case.body if isinstance(case.body, dict) else {}
        kept = {name: value for name, value in options.items() if name in PLAIN}
        case.path_parameters = {"slug": f"kind-{index % 40}"}
        case.headers, case.query = {}, {}
        case.body = {**kept, **KINDS[index % len(KINDS)], "enabled": False}
        statuses[case.call_and_validate(checks=HELD[:-1], headers=HEADERS, timeout=PATIENCE).status_code] += 1

    fuzz(put, GenerationMode.POSITIVE, asked, settings(FEW, max_examples=examples))
    assert statuses[201] >= len(KINDS), statuses
    assert statuses[201] + statuses[200] > statuses[400], statuses


def fuzz(operation: Any, mode: GenerationMode, asked: Callable[[Any], None], bounds: settings = FEW) -> None:
    """Some examples of one operation; an operation without anything to get wrong has none of the other kind."""
    if operation.path in SIMULATED:
        bounds = settings(bounds, max_examples=2)
    try:
        bounds(given(operation.as_strategy(generation_mode=mode))(asked))()
    except (Unsatisfiable, SkipTest):
        assert mode is GenerationMode.NEGATIVE


def test_the_description_has_every_route_and_no_answer_we_never_give(running: Daemon) -> None:
    """Never 422; every refusal is a problem."""
    told = json.loads(urllib.request.urlopen(f"{running.address}/api/openapi.json").read())
    assert {"/api/schedule", "/api/schedule/{slug}", "/api/runs/{id}/receipt", "/healthz", "/metrics", "/"} <= set(
        told["paths"]
    )
    for methods in told["paths"].values():
        for operation in methods.values():
            assert "422" not in operation["responses"]
            refusals = [answer for status, answer in operation["responses"].items() if status >= "400"]
            assert all("application/problem+json" in answer["content"] for answer in refusals)
    assert told["components"]["schemas"]["Definition"]["additionalProperties"] is False


def test_every_reference_resolves_and_every_default_is_valid(running: Daemon) -> None:
    """Generated clients need both."""
    told = json.loads(urllib.request.urlopen(f"{running.address}/api/openapi.json").read())
    registry = Registry().with_resource("", Resource(told, DRAFT202012))
    parts = list(_parts_of(told, ""))
    references = [(at, part["$ref"]) for at, part in parts if isinstance(part.get("$ref"), str)]
    assert len(references) > 300
    assert [one for one in references if not _resolves(told, one[1])] == []
    for at, part in parts:
        if "default" in part and "/examples/" not in at:
            Draft202012Validator({**part, "$id": ""}, registry=registry).validate(part["default"])


def _parts_of(part: Any, at: str) -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(part, dict):
        yield at, part
    for name, inner in part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ():
        yield from _parts_of(inner, f"{at}/{name}")


def _resolves(told: Any, reference: str) -> bool:
    found = told
    for name in reference.removeprefix("#/").split("/"):
        found = found.get(name) if isinstance(found, dict) else None
    return found is not None


def test_the_page_names_every_route(operations: list[Any]) -> None:
    """docs/rest.md and the code tell of the same routes."""
    page = (Path(__file__).parents[3] / "docs" / "rest.md").read_text()
    told = " ".join(line.partition(" | ")[0] for line in page.splitlines() if line.startswith("| "))
    for operation in operations:
        path = operation.path.rpartition("/")[2] if operation.path.endswith(("/resume", "/readyz")) else operation.path
        assert path in told, operation.path


def test_the_shape_of_a_definition_has_the_fields_that_are_read() -> None:
    """Every field the core reads or ignores, and no other."""
    described_fields = set(schema_of(SCHEDULE)["properties"])
    assert described_fields == {*WRITTEN, *READ_BACK}


def send(one: Daemon, method: str, path: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(one.address + path, data, method=method)
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        return json.loads(answer.read())


def test_every_route_that_changes_something_says_which_role_it_needs(running: Daemon) -> None:
    """A route that is forgotten needs `admin`; whoever adds one decides."""
    described = send(running, "GET", "/api/openapi.json")["paths"]
    routes = {
        f"{method.upper()} {path}"
        for path, methods in described.items()
        for method in methods.keys() & {"post", "put", "patch", "delete"}
    }
    assert len(routes) > 30
    assert sorted(routes - WRITING.keys()) == []


@pytest.mark.parametrize("route", sorted(WRITING))
def test_each_role_may_use_exactly_the_routes_it_is_listed_for(route: str) -> None:
    """By an address of that route; one that is longer or shorter is another."""
    method, _, template = route.partition(" ")
    path = re.sub(r"\{\w+\}", "7", template)
    needs = WRITING[route]
    for role, has in (("read", ()), ("agent", ("agent",)), ("operate", ("agent", "operate"))):
        caller = Caller(role, "x")  # type: ignore[arg-type]  # one of the roles
        is_permitted = needs in has or (
            needs in ("own", "open") and path == template
        )  # others never ask: they bring a proof
        is_permitted = is_permitted or (role == "agent" and AGENTS.fullmatch(f"{method} {path}") is not None)
        assert (refusal(caller, method, path) is None) == is_permitted, role
        assert refusal(caller, method, f"{path}/more") is not None
    assert refusal(Caller("admin", "x"), method, path) is None
