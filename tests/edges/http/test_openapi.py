"""The API as its description says: nothing breaks it, and it answers nothing that is not described."""

import json
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any
from unittest import SkipTest

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode, checks

from edges.http.kit import Daemon, daemon
from wakeful.core.definition_json import READ_BACK, WRITTEN
from wakeful.http import shapes

BOUNDED = settings(
    max_examples=15, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck), database=None
)
HELD: list[Any] = [
    checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
    checks.response_headers_conformance,
    checks.negative_data_rejection,
]
JOB = {"schedule": {"type": "manual"}, "command": {"argv": ["/bin/true"]}}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A daemon that finds no program, whatever is written into its schedules."""
    with daemon(tmp_path_factory.mktemp("api") / "home", environ={"PATH": "/nowhere"}) as one:
        send(one, "PUT", "/api/schedule/known", JOB)
        send(one, "POST", "/api/schedule/known/run?wait=true")
        yield one


@pytest.fixture(scope="module")
def operations(running: Daemon) -> list[Any]:
    schema = schemathesis.openapi.from_url(f"{running.address}/api/openapi.json")
    found = [result.ok() for result in schema.get_all_operations()]
    return [operation for operation in found if operation.path != "/api/stream"]  # that one never ends


@pytest.mark.parametrize("mode", list(GenerationMode))
def test_whatever_is_asked_is_answered_as_described(operations: list[Any], mode: GenerationMode) -> None:
    """Anything the description allows, and anything that it does not. What is written never runs."""

    def asked(case: Any) -> None:
        if isinstance(case.body, dict) and case.path.startswith("/api/schedule/{slug}"):
            case.body["enabled"] = False
        case.call_and_validate(checks=HELD)

    for operation in operations:
        if not operation.path.endswith("/run"):
            fuzz(operation, mode, asked)


@pytest.mark.parametrize("mode", list(GenerationMode))
def test_what_is_there_is_answered_as_described(operations: list[Any], mode: GenerationMode) -> None:
    """The same, asked of things that exist; writes are only rehearsed, and nothing is removed."""
    known = {"slug": "known", "id": "1"}

    def asked(case: Any) -> None:
        case.path_parameters = {name: known[name] for name in case.path_parameters or {}}
        if case.method in ("PUT", "PATCH"):
            case.query = {"dryRun": "true"}
        if case.method == "DELETE":
            case.headers = {"If-Match": '"another"'}
        case.call_and_validate(checks=[check for check in HELD if check is not checks.negative_data_rejection])

    for operation in operations:
        fuzz(operation, mode, asked)


def fuzz(operation: Any, mode: GenerationMode, asked: Callable[[Any], None]) -> None:
    """Some examples of one operation; an operation without anything to get wrong has none of the other kind."""
    try:
        BOUNDED(given(operation.as_strategy(generation_mode=mode))(asked))()
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


def test_the_shape_of_a_definition_has_the_fields_that_are_read() -> None:
    """Every field the core reads or ignores, and no other."""
    described_fields = set(shapes.Definition.model_json_schema()["properties"])
    assert described_fields == {*WRITTEN, *READ_BACK}


def send(one: Daemon, method: str, path: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(one.address + path, data, method=method), timeout=10) as answer:
        return json.loads(answer.read())
