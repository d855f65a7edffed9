"""What a history tells about one turn, and what of an agent's words is kept: for any input."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wakeful.core.run.usage import added, usage_of
from wakeful.integrations.actions.reply import READ_MAX, REPLY_MAX, reply_of
from wakeful.integrations.agents.history import HistoryVerdict, tell
from wakeful.integrations.agents.history_places import _lines, _listed
from wakeful.integrations.agents.reply import session_id_of


def asked(key: str | None = None, text: str = "q") -> dict[str, Any]:
    event: dict[str, Any] = {"type": "user.message", "data": {"content": text}}
    return {**event, "correlationId": key} if key else event


def said(text: Any) -> dict[str, Any]:
    return {"type": "assistant.message", "data": {"content": text}}


IDLE = {"type": "session.idle"}


def test_the_turn_of_a_key() -> None:
    """From its message to its terminal event; what others said before and after is not in it."""
    events = [asked("a"), said("no"), IDLE, asked("b"), said("yes"), IDLE, asked("c"), said("no"), IDLE]
    story = tell(events, "b")
    assert (story.is_found, story.is_proven, story.reply) == (True, True, "yes")


def test_a_turn_without_an_end_does_not_borrow_the_next_ones() -> None:
    """Ours was cut off, a person's went well."""
    story = tell([asked("a"), said("half"), asked("b"), said("whole"), IDLE], "a")
    assert story.is_alive and not story.is_ended and not story.is_proven and story.reply == "half"


@pytest.mark.parametrize(
    ("events", "is_proven"),
    [
        ([asked(), said("x"), IDLE], True),
        ([asked(), said(""), IDLE], True),  # an empty answer is one
        ([asked(), IDLE], False),
        ([asked(), said("x")], False),  # it may go on: the session must be seen idle as well
        ([asked(), said(5), IDLE], False),
        ([asked(), said("x"), {"type": "tool.execution_start"}, IDLE], False),
        ([asked(), {"type": "assistant.message", "data": {"content": "x", "toolRequests": [{}]}}, IDLE], False),
        ([asked(), {"type": "session.idle", "correlationId": "a"}], True),
        ([asked(), {"type": "session.idle", "correlationId": "other"}], False),
        ([{"type": "session.idle", "correlationId": "a"}], True),
        ([asked(), said("x"), {"type": "session.error"}], False),
        ([asked(), said("x"), asked(text="next"), said("y"), IDLE], False),
    ],
)
def test_what_proves_an_end(events: list[dict[str, Any]], is_proven: bool) -> None:
    """An answer as the last thing before the terminal event, or a terminal event under our key."""
    assert tell(events, "a", ("q",)).is_proven is is_proven


def test_the_last_message_under_a_key_counts() -> None:
    """An attempt at the same run has the same key."""
    story = tell([asked("a"), {"type": "session.error", "data": {"message": "x"}}, asked("a"), said("ok"), IDLE], "a")
    assert story.error is None and story.reply == "ok"


def test_text_counts_only_where_no_message_has_a_key() -> None:
    """The same words of someone else are not ours."""
    assert tell([asked(text=" q "), IDLE], "a", ("q",)).is_ended
    assert not tell([asked("other", "q"), IDLE], "a", ("q",)).is_found
    assert not tell([asked(text="q"), IDLE], "a").is_found


@pytest.mark.parametrize(
    ("event", "error"),
    [
        ({"type": "session.error", "data": {"message": "out of\ntokens"}}, "out of tokens"),
        ({"type": "session.error", "error": {"message": "deep"}}, "deep"),
        ({"type": "session.error", "data": {"message": 5}}, "the session ended in error"),
        ({"type": "session.error"}, "the session ended in error"),
    ],
)
def test_an_error_event(event: dict[str, Any], error: str) -> None:
    """In its own words, where it has some."""
    assert tell([asked("a"), event], "a").error == error


def test_usage_is_added_up() -> None:
    """Of every call the turn made."""
    counts = {"type": "assistant.usage", "data": {"inputTokens": 3, "outputTokens": 1, "cost": 5, "model": "m"}}
    on_message = {"type": "assistant.message", "data": {"content": "x", "usage": {"input_tokens": 10}}}
    assert tell([asked("a"), counts, counts, on_message, IDLE], "a").usage == {"input": 16, "output": 2, "total": 18}
    assert added(None, None) is None


EVENTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.sampled_from(["user.message", "session.idle"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["type", "data", "content", "message", "usage", "correlationId"]), inner)
    ),
    max_leaves=10,
)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.dictionaries(st.sampled_from(["type", "data", "content", "correlationId"]), EVENTS), max_size=6))
def test_no_history_whatever_its_shape_does_harm(events: list[dict[str, Any]]) -> None:
    """There is always a story, if only an empty one."""
    assert isinstance(tell(events, "a", ("x",)), HistoryVerdict)
    assert isinstance(_listed(events), list)


@settings(max_examples=40, deadline=None)
@given(st.text())
def test_lines_of_anything(text: str) -> None:
    """Events are found, or there are none."""
    assert _lines(text) is None or all(isinstance(event, dict) for event in _lines(text) or ())


@settings(max_examples=40, deadline=None)
@given(st.text() | st.binary() | st.integers() | st.none())
def test_replies_are_fit_for_every_store(value: object) -> None:
    """Text that UTF-8 can write, without what a terminal would obey; anything else is none."""
    reply = reply_of(value)
    assert (reply is not None) == isinstance(value, str)
    if reply is not None:
        reply.encode()
        assert not any(ord(char) < 32 and char not in "\t\n\r" for char in reply)


def test_a_long_reply_keeps_its_beginning_and_its_end() -> None:
    """Up to the limit, whatever is left out is counted."""
    reply = reply_of("a" * READ_MAX + "b" * READ_MAX)
    assert reply is not None and len(reply) < REPLY_MAX + 100 and "left out" in reply


@settings(max_examples=40, deadline=None)
@given(st.dictionaries(st.text(max_size=3) | st.integers(), st.integers() | st.booleans() | st.text() | st.floats()))
def test_usage_holds_counts_and_nothing_else(counts: dict[Any, Any]) -> None:
    """Names one can read, whole numbers that are not negative."""
    usage = usage_of(counts) or {}
    assert all(type(count) is int and count >= 0 and name.isascii() for name, count in usage.items())


def test_usage_is_bounded() -> None:
    """Names that mean nothing are not kept, nor is a number beyond all counting."""
    assert usage_of({f"n{number}": 1 for number in range(1000)}) is None
    assert usage_of({"input": 10**400}) is None and usage_of([("n", 1)]) is None


@pytest.mark.parametrize("value", ["-x", ".x", "a/b", "a b", "a\n", "", None, 5, "ü", "x" * 201])
def test_what_is_no_session_id(value: object) -> None:
    """Options, paths, several words, nothing."""
    assert session_id_of(value) is None
