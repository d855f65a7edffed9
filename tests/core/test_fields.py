"""Reading a JSON object field by field."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful.core.errors import FieldError, Invalid
from wakeful.core.fields import DEPTH_MAX, DURATION_MAX, UNKNOWN_MAX, Fields, check_plain, shown

CHARACTERS = st.sampled_from("abc019smhd /:.\n\0\ud800\udfff\u00e9\U0001f600'\"{")
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(CHARACTERS, max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(CHARACTERS, max_size=5), inner, max_size=3),
    max_leaves=8,
)


def faults(fields: Fields) -> dict[str, str]:
    return {error.field: error.message for error in fields.errors}


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def test_a_left_out_field_and_null_are_the_same() -> None:
    """Both answer the default, and are no fault."""
    fields = Fields({"a": None})
    assert [fields.text(name, "usual") for name in ("a", "b")] == ["usual", "usual"]
    assert (fields.flag("a", True), fields.integer("a", 3, least=1), fields.duration("a", 5)) == (True, 3, 5)
    assert fields.choice("a", "x", ("x", "y")) == "x"
    assert not fields.has("a") and fields.errors == []


@pytest.mark.parametrize(
    ("read", "value", "message"),
    [
        (lambda f: f.text("a"), 5, "5 is not a string; put it in quotes"),
        (lambda f: f.flag("a", True), "yes", "'yes' is not true or false"),
        (lambda f: f.integer("a", 1, least=0), "7", "'7' is not a whole number"),
        (lambda f: f.integer("a", 1, least=0), 1.5, "1.5 is not a whole number"),
        (lambda f: f.integer("a", 1, least=0), True, "True is not a whole number"),
        (lambda f: f.integer("a", 1, least=1), 0, "0 is too small; give at least 1"),
        (lambda f: f.integer("a", 1, least=1, most=9), 10, "10 is too large; give at most 9"),
        (lambda f: f.choice("a", "x", ("x", "y")), "z", "'z' is not one of x, y"),
        (lambda f: f.choice("a", None, (None, "y")), [], "[] is not one of null, y"),
        (lambda f: f.mapping("a"), [], "[] is not an object; write {…}"),
        (lambda f: f.nested("a", lambda inner: inner.text("b")), 5, "5 is not an object; write {…}"),
        (lambda f: f.filled("a", "write it"), "  ", "is empty; write it"),
        (lambda f: f.filled("a", "write it"), None, "is missing; write it"),
        (lambda f: f.filled("a", "write it"), 5, "5 is not a string; put it in quotes"),
        (lambda f: f.duration("a", None), 90, "90 is not a duration; write it in quotes, like 90s, 30m, 2h or 1d"),
        (lambda f: f.duration("a", None), "soon", "'soon' is not a duration; write it like 90s, 30m, 2h, 1d or 1h30m"),
        (lambda f: f.duration("a", None), "", "'' is not a duration; write it like 90s, 30m, 2h, 1d or 1h30m"),
        (lambda f: f.duration("a", 1, least=1), "0s", "'0s' is too short; give at least 1ms"),
        (lambda f: f.duration("a", 1), "9000d", "'9000d' is too long; give at most 3653d"),
    ],
)
def test_a_fault_names_the_field_the_value_and_the_cure(read: Any, value: Any, message: str) -> None:
    """One complaint for one fault."""
    fields = Fields({"a": value})
    read(fields)
    assert faults(fields) == {"a": message}


@given(st.dictionaries(st.sampled_from("abcdefgh"), ANYTHING))
def test_reading_never_raises_and_finishing_raises_only_invalid(data: dict[str, Any]) -> None:
    """Whatever the fields hold; a bad one answers its default."""
    fields = Fields(data)
    assert isinstance(fields.text("a", "usual"), str)
    assert isinstance(fields.flag("b", True), bool)
    assert 1 <= fields.integer("c", 1, least=1, most=5) <= 5
    assert fields.choice("d", "x", ("x", "y")) in ("x", "y")
    assert 0 <= (fields.duration("e", 0) or 0) <= DURATION_MAX
    assert isinstance(fields.mapping("f"), dict)
    fields.texts("g")
    fields.nested("h", lambda inner: inner.filled("a", "write it"))
    fields.refuse_unknown(("a",))
    if fields.errors:
        with pytest.raises(Invalid):
            fields.finish()
    else:
        fields.finish()


def test_faults_inside_an_object_carry_the_path_to_them() -> None:
    """As a person would write it."""
    fields = Fields({"outer": {"inner": {"n": "x"}, "env": {"A": 1}, "odd": 1}})

    def read(outer: Fields) -> None:
        outer.nested("inner", lambda inner: inner.integer("n", 0, least=0))
        outer.texts("env")
        outer.refuse_unknown(("inner", "env"))

    fields.nested("outer", read)
    assert list(faults(fields)) == ["outer.inner.n", "outer.env.A", "outer.odd"]


def test_an_inner_reader_that_refuses_loses_none_of_the_faults_before() -> None:
    """All faults at once."""
    fields = Fields({"a": 1, "b": {}})
    fields.text("a")

    def refusing(_: Fields) -> None:
        raise Invalid(FieldError("b", "no"))

    assert fields.nested("b", refusing) is None
    assert list(faults(fields)) == ["a", "b"]


def test_an_unknown_field_is_refused_with_the_name_it_resembles() -> None:
    """A misspelt field would otherwise be lost in silence."""
    fields = Fields({"catchup": 1, "zzz": 2, "timeout": "5m"})
    fields.refuse_unknown(("catchUp", "timeout"))
    assert faults(fields) == {
        "catchup": "unknown field; did you mean 'catchUp'?",
        "zzz": "unknown field; the fields are catchUp, timeout",
    }


def test_a_flood_of_unknown_fields_is_told_in_a_few_lines() -> None:
    """Comparing each with every known name would hold up the clock."""
    fields = Fields({f"field{number}": 1 for number in range(50_000)} | {"x" * 100_000: 1})
    fields.refuse_unknown(("catchUp", "timeout"))
    assert len(fields.errors) == UNKNOWN_MAX + 1
    assert fields.errors[-1].message == "unknown field, and 49990 more; remove them"


def test_a_number_of_thousands_of_digits_is_a_fault_and_not_a_crash() -> None:
    """Python refuses to convert it."""
    fields = Fields({"a": "9" * 5000 + "s", "b": 10**5000})
    fields.duration("a", None)
    fields.integer("b", 0, least=0, most=5)
    assert list(faults(fields)) == ["a", "b"]


@given(ANYTHING)
def test_a_value_is_shown_short(value: Any) -> None:
    """Whatever it is, and however large."""
    assert shown([value] * 3)
    assert len(shown("x" * 10**6)) < 100
    assert len(shown(nested(900))) < 100


def test_small_values_are_shown_whole() -> None:
    """As they were written."""
    assert [shown(value) for value in ("soon", 5, None, [1], {"a": 1})] == ["'soon'", "5", "None", "[1]", "{'a': 1}"]


@given(ANYTHING)
def test_plain_is_what_can_be_written_as_json_and_as_text(value: Any) -> None:
    """Finite numbers, whole characters, no NUL."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        text.encode()
        is_plain = "\\u0000" not in text
    except ValueError:
        is_plain = False
    if is_plain:
        check_plain(value)
    else:
        with pytest.raises(Invalid):
            check_plain(value)


@pytest.mark.parametrize(
    ("data", "field", "message"),
    [
        ({"a": {"b": ["x", "\ud800"]}}, "a.b[1]", "half of a character"),
        ({"a": "x\0"}, "a", "NUL"),
        ({"a": float("nan")}, "a", "nan is not a number"),
        ({"a": {"b": float("-inf")}}, "a.b", "-inf is not a number"),
        ({"a": {"\ud800": 1}}, "a", "half of a character"),
        ({"a": {1, 2}}, "a", "is not a JSON value"),
        ({"a": {(1, 2): 1}}, "a", "is not a string"),
    ],
)
def test_what_is_not_plain_is_refused_where_it_is(data: Any, field: str, message: str) -> None:
    """Before anything of it reaches a store or a target."""
    with pytest.raises(Invalid) as refused:
        check_plain(data)
    (error,) = refused.value.errors
    assert error.field == field and message in error.message
    str(refused.value).encode()


@pytest.mark.parametrize(("depth", "is_fine"), [(DEPTH_MAX, True), (DEPTH_MAX + 1, False), (900, False)])
def test_what_is_nested_too_deep_is_refused(depth: int, is_fine: bool) -> None:
    """It would break whoever reads it next, at a place that depends on the weather."""
    if is_fine:
        check_plain(nested(depth))
    else:
        with pytest.raises(Invalid, match="nested deeper than 64 levels"):
            check_plain(nested(depth))


def test_what_is_wide_is_not_deep() -> None:
    """A thousand small objects are fine."""
    check_plain({"a": [{"b": [number]} for number in range(1000)]})


def test_what_holds_itself_is_refused() -> None:
    """A Python program can do that."""
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(Invalid):
        check_plain(loop)
