"""Workflows as JSON, and the answers of handlers: whatever is written, it is read or refused in words."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sampling import examples
from wakeful.core.errors import Invalid
from wakeful.core.workflow.answers import Mutated, WrongAnswer, read_mutated, read_prepared, read_published
from wakeful.core.workflow.definition_json import (
    check_workflow,
    decode_workflow,
    encode_workflow,
    resolved,
    workflow_from_json,
    workflow_to_json,
)

NOW = 1_800_000_000_000
HTTP = {"http": {"url": "http://127.0.0.1:9100/poll"}}
FLOW: dict[str, Any] = {
    "id": "inbox",
    "producers": {
        "poll": {"schedule": {"type": "every", "every": "5m"}, "publishes": ["mail"], "handler": HTTP},
        "look": {
            "schedule": {"type": "cron", "expression": "0 9 * * *"},
            "publishes": ["mail"],
            "timeout": "30s",
            "handler": {"command": {"argv": ["look"], "cwd": "/", "env": {"A": "b"}}},
        },
    },
    "consumers": {
        "digest": {"subscribe": ["mail"], "publishes": ["out"], "mutate": False, "handler": HTTP},
        "out": {
            "subscribe": ["out"],
            "publishes": [],
            "handler": {"http": {"url": "https://x", "headers": {"a": "b"}}},
        },
    },
}
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from(["mail", "out"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
NAMES = ["reservations", "data", "ui", "wakeAt", "messages", "state", "result", "topic", "ids", "id", "payload"]
ANSWERS = VALUES | st.dictionaries(
    st.sampled_from(NAMES), VALUES | st.lists(st.dictionaries(st.sampled_from(NAMES), VALUES))
)


def test_a_workflow_reads_back_as_it_was_written() -> None:
    """With the zone filled in, and what is usual left out."""
    definition, status = workflow_from_json({**FLOW, "status": "paused"}, name="inbox")
    assert status == "paused"
    filled = resolved(definition, None, now=NOW, default_zone="Europe/Berlin")
    written = workflow_to_json(filled)
    assert written["producers"]["poll"]["schedule"] == {"type": "every", "every": "5m"}
    assert written["producers"]["look"]["schedule"]["timezone"] == "Europe/Berlin"
    assert written["producers"]["look"]["handler"] == FLOW["producers"]["look"]["handler"]
    assert written["consumers"] == FLOW["consumers"]
    assert list(written["producers"]) == ["poll", "look"]
    assert decode_workflow(encode_workflow(filled)) == filled


def test_writing_the_same_again_changes_nothing() -> None:
    """An anchor that was left open stays where it is while the interval does."""
    definition, _ = workflow_from_json(FLOW)
    first = resolved(definition, None, now=NOW, default_zone="UTC")
    again = resolved(definition, first, now=NOW + 12_345, default_zone="UTC")
    assert encode_workflow(again) == encode_workflow(first)
    other = json.loads(json.dumps(FLOW))
    other["producers"]["poll"]["schedule"]["every"] = "6m"
    moved = resolved(workflow_from_json(other)[0], first, now=NOW + 12_345, default_zone="UTC")
    assert encode_workflow(moved) != encode_workflow(first)


@settings(max_examples=examples(150))
@given(VALUES | st.dictionaries(st.sampled_from(["id", "status", "producers", "consumers"]), VALUES))
def test_any_json_is_a_workflow_or_is_refused(data: Any) -> None:
    """Never anything else."""
    try:
        definition, _ = workflow_from_json(data)
    except Invalid as invalid:
        assert invalid.errors
    else:
        check_workflow(definition)


@settings(max_examples=examples(150))
@given(ANSWERS)
def test_any_answer_is_read_or_said_to_be_wrong(data: Any) -> None:
    """In every phase; what is read keeps the rights of its phase."""
    try:
        prepared = read_prepared(data, subscribe=["mail"])
        assert set(prepared.reservations) <= {"mail"}
        json.loads(prepared.answer)
    except WrongAnswer as wrong:
        assert str(wrong)
    for is_required in (True, False):
        try:
            published = read_published(data, publishes=["mail"], is_required=is_required)
            assert {one.topic for one in published.messages} <= {"mail"}
        except WrongAnswer as wrong:
            assert str(wrong)
    mutated = read_mutated(data)
    assert mutated.result is None or (mutated.wrong is None and json.loads(mutated.result) is not None)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"messages": [{"topic": "mail", "id": "", "payload": 1}]}, "messages[0].id: is empty"),
        ({"messages": [{"topic": "mail", "id": "x" * 501}]}, "characters long"),
        ({"messages": {"topic": "mail"}}, "is not a list"),
        ({"messages": [5]}, "is not an object"),
        ({"messages": [], "reservations": []}, "unknown field"),
        ({"messages": [{"topic": "mail", "id": "a", "payload": float("nan")}]}, "not a number"),
        ({}, "messages: missing"),
    ],
)
def test_what_is_wrong_with_a_produced_answer_is_named(data: Any, words: str) -> None:
    """With the place and the cure."""
    with pytest.raises(WrongAnswer) as found:
        read_published(data, publishes=["mail"], is_required=True)
    assert words in str(found.value)


def test_the_rights_of_the_phases_are_kept() -> None:
    """`prepare` cannot publish or keep state, `mutate` can do neither and cannot reserve; but what it did is done."""
    with pytest.raises(WrongAnswer, match="messages, which this phase does not allow"):
        read_prepared({"reservations": [], "messages": [{"topic": "mail", "id": "a"}]}, subscribe=["mail"])
    with pytest.raises(WrongAnswer, match="state, which this phase does not allow"):
        read_prepared({"reservations": [], "state": {"n": 1}}, subscribe=["mail"])
    mutated = read_mutated({"messages": [{"topic": "mail", "id": "a"}], "result": 1})
    assert mutated.result is None
    assert "the side effect happened" in str(mutated.wrong) and "messages, which mutate does not" in str(mutated.wrong)


def test_what_a_service_returned_is_the_result_whatever_its_fields_are_called() -> None:
    """An issue that was created has a `state`, and it is not the state of the workflow."""
    created = {"id": 7, "state": "open"}
    assert read_mutated(created) == Mutated(json.dumps(created, separators=(",", ":")))
    assert read_mutated({"result": 1, "state": {"n": 1}}).result is None
