"""Dispatch as it is written: what is refused, what reads back, and that no secret is in it."""

from typing import Any

import pytest

from wakeful.core.errors import Invalid
from wakeful.core.schedule.actions import Dispatch
from wakeful.core.schedule.definition_json import action_from_json, definition_from_json, definition_to_json
from wakeful.engine.clock import SystemClock
from wakeful.integrations.actions.dispatch import DispatchAction, task_id_of
from wakeful.ports.action import Fire

TASK: dict[str, Any] = {"broker": "redis://127.0.0.1:6379/0", "task": "reports.build"}


def _written(**changes: Any) -> dict[str, Any]:
    return {"schedule": {"type": "manual"}, "dispatch": {"celery": {**TASK, **changes}}}


def test_it_reads_back_as_written() -> None:
    """With every field, and with a variable in place of a URL."""
    full = {"backend": {"env": "BACKEND_SECRET"}, "args": [1, "two"], "kwargs": {"a": {"b": None}}, "queue": "q"}
    written = _written(**full, receipt=True)
    definition = definition_from_json(written, default_zone="UTC", slug="a")
    assert isinstance(definition.action, Dispatch)
    assert definition_to_json(definition)["dispatch"] == written["dispatch"]


@pytest.mark.parametrize(
    ("changes", "field", "message"),
    [
        ({"broker": "redis://:hunter2@host/0"}, "broker", "contains a password"),
        ({"backend": "redis://me:hunter2@host/0"}, "backend", "contains a password"),
        ({"broker": "somewhere"}, "broker", "is not a URL"),
        ({"broker": {"env": "not a name"}}, "broker", "does not name a variable"),
        ({"broker": None}, "broker", "is missing"),
        ({"task": ""}, "task", "write the name of a registered task"),
        ({"args": {"a": 1}}, "args", "is not a list"),
        ({"retries": 3}, "retries", ""),
    ],
)
def test_what_cannot_work_is_refused(changes: dict[str, Any], field: str, message: str) -> None:
    """By field, with the cure, and without the secret."""
    with pytest.raises(Invalid) as refused:
        definition_from_json(_written(**changes), default_zone="UTC", slug="a")
    (error,) = refused.value.errors
    assert error.field == f"dispatch.celery.{field}"
    assert message in error.message
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    ("env", "fault"),
    [
        ({}, "the variable BROKER_SECRET is not set"),
        ({"BROKER_SECRET": "hunter2"}, "the variable BROKER_SECRET is not a URL"),
        ({"BROKER_SECRET": "redis://:hunter2@host/0"}, None),
    ],
)
def test_a_variable_is_looked_up_when_it_is_needed(env: dict[str, str], fault: str | None) -> None:
    """What is wrong with it is said without its value."""
    spec = action_from_json("dispatch", {"celery": {**TASK, "broker": {"env": "BROKER_SECRET"}}})
    found = DispatchAction(SystemClock(), env=env).check(spec)
    assert (found is None) == (fault is None)
    assert fault is None or (fault in (found or "") and "hunter2" not in (found or ""))


def test_the_highest_rung_depends_on_the_proof() -> None:
    """Only a backend or a receipt can prove the end."""
    action = DispatchAction(SystemClock())
    for more, rung in (({}, "accepted"), ({"backend": TASK["broker"]}, "finished"), ({"receipt": True}, "finished")):
        assert action.proves(action_from_json("dispatch", {"celery": {**TASK, **more}})) == rung


def test_attempts_have_ids_of_their_own() -> None:
    """The first is the key; the others begin with it."""
    fire = Fire(1, 1, "a", 0, 0, "schedule", 3, "store-1-5")
    assert [task_id_of(fire, attempt) for attempt in (1, 2, 3)] == ["store-1-5", "store-1-5.2", "store-1-5.3"]
