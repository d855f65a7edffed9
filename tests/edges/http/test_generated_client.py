"""A client that a generator which knows nothing of Wakeful makes of its OpenAPI document."""

import importlib
import inspect
import json
import pkgutil
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from datetime import datetime
from types import ModuleType
from typing import Any

import pytest

from access import HEADERS, TOKEN
from edges.http.kit import daemon
from patience import PATIENCE

PACKAGE = "generated_client"
MANUAL = {"schedule": {"type": "manual"}, "command": {"argv": ["echo", "hello"]}}
TIME = re.compile(r"\d{4}-\d\d-\d\dT.*")
READERS_MIN = 20


class Generated:
    """The generated package, and a client that asks the daemon."""

    def __init__(self, address: str) -> None:
        self.package = importlib.import_module(PACKAGE)
        self.client = self.package.AuthenticatedClient(base_url=address, token=TOKEN, raise_on_unexpected_status=True)

    def model(self, name: str) -> Any:
        return getattr(importlib.import_module(f"{PACKAGE}.models"), name)

    def call(self, module: str, *arguments: Any, **options: Any) -> Any:
        """What an operation returned, as an object of the generated package."""
        return self.answer(module, *arguments, **options).parsed

    def answer(self, module: str, *arguments: Any, **options: Any) -> Any:
        operation = importlib.import_module(f"{PACKAGE}.api.{module}")
        return operation.sync_detailed(*arguments, client=self.client, **options)

    def readers(self) -> Iterator[ModuleType]:
        """The operations that need no arguments, change nothing, and return an object: no streams, no texts."""
        api = importlib.import_module(f"{PACKAGE}.api")
        for found in pkgutil.walk_packages(api.__path__, f"{api.__name__}."):
            if found.name.endswith("_get"):
                module = importlib.import_module(found.name)
                parameters = inspect.signature(module.sync_detailed).parameters.values()
                needed = [one.name for one in parameters if one.default is inspect.Parameter.empty]
                success, _, _ = inspect.getsource(module._parse_response).partition("return response_200")
                if needed == ["client"] and ".from_dict(" in success:
                    yield module


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Generated]:
    """A client, generated from the document that a daemon serves."""
    folder = tmp_path_factory.mktemp("generated")
    with daemon(folder / "home") as ours:
        request = urllib.request.Request(f"{ours.address}/api/openapi.json", headers=HEADERS)
        with urllib.request.urlopen(request, timeout=PATIENCE) as response:
            (folder / "openapi.json").write_bytes(response.read())
        # No hooks: they would format the generated code, which is only run.
        (folder / "config.yaml").write_text("post_hooks: []\n", encoding="utf-8")
        done = subprocess.run(
            [
                *(sys.executable, "-m", "openapi_python_client", "generate", "--fail-on-warning", "--meta", "none"),
                *("--path", folder / "openapi.json", "--config", folder / "config.yaml"),
                *("--output-path", folder / PACKAGE),
            ],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr  # a warning: an operation would be missing
        sys.path.insert(0, str(folder))
        try:
            generated = Generated(ours.address)
            with generated.client:
                yield generated
        finally:
            sys.path.remove(str(folder))
            for name in [name for name in sys.modules if name.partition(".")[0] == PACKAGE]:
                del sys.modules[name]


def comparable(value: Any) -> Any:
    """A JSON value in which one time is always written in the same way."""
    match value:
        case dict():
            return {name: comparable(inner) for name, inner in value.items()}
        case list():
            return [comparable(inner) for inner in value]
        case str() if TIME.fullmatch(value):
            return datetime.fromisoformat(value)
        case _:
            return value


def test_it_writes_runs_and_removes_a_schedule(generated: Generated) -> None:
    """The life of a schedule, each answer read into the object that the document describes."""
    call, model = generated.call, generated.model
    body = model("Definition").from_dict(MANUAL)
    written = call("schedules.put_schedule_api_schedule_slug_put", "hello", body=body)
    assert (type(written).__name__, written.slug, written.version) == ("Schedule", "hello", 1)
    changed = call(
        "schedules.patch_schedule_api_schedule_slug_patch",
        "hello",
        body=model("MergePatch").from_dict({"timeout": "5m"}),
    )
    assert (changed.version, changed.to_dict()["timeout"]) == (2, "5m")
    run = call("schedules.run_schedule_api_schedule_slug_run_post", "hello", wait=True)
    assert (type(run).__name__, run.outcome.value) == ("Run", "succeeded")
    runs = call("schedules.list_runs_api_schedule_slug_runs_get", "hello")
    assert [one.run_id for one in runs.runs] == [run.run_id]
    paused = call("schedules.pause_schedule_api_schedule_slug_pause_post", "hello", body=model("Pause").from_dict({}))
    assert paused.to_dict()["status"] == "paused"
    listed = call("schedules.list_schedules_api_schedule_get")
    assert [one.slug for one in listed.schedules] == ["hello"]
    assert generated.answer("schedules.delete_schedule_api_schedule_slug_delete", "hello").status_code == 204
    missing = call("schedules.get_schedule_api_schedule_slug_get", "hello")
    assert (type(missing).__name__, missing.status) == ("Problem", 404)


def test_it_reads_everything(generated: Generated) -> None:
    """Each operation that reads without arguments returns what the document says, with nothing beside it."""
    modules = list(generated.readers())
    assert len(modules) >= READERS_MIN
    for module in modules:
        answer = module.sync_detailed(client=generated.client)
        assert comparable(answer.parsed.to_dict()) == comparable(json.loads(answer.content)), module.__name__
