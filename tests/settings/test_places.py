"""The line of every key."""

from __future__ import annotations

import tomllib
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from settings.kit import CONTRACT
from wakeful.config.places import Path, dotted, find_places


def paths(value: Any, path: Path = ()) -> set[Path]:
    """Every path in a document."""
    found: set[Path] = {path} if path else set()
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        found |= paths(one, (*path, key))
    return found


def test_every_kind_of_key_has_its_line() -> None:
    """Headers, dotted and quoted keys, tables in braces, lists over several lines, lists of tables."""
    text = """\
top = 1
a.b = 2
"quoted key" = 3
'literal.key' . "esc\\u0041ped" = 4
[server] # [not.this]
text = \"\"\"
key = "inside a text"
[inside]
\\\"\"\" still inside \"\"\"
raw = '''
x = 1 '' '''
inline = {one = 1, two = {three = "a = b, c"}}
list = [
  1, # two
  [2, 3],

  {deep = 4},
]
when = 2026-01-30 09:00:00Z
[ agents . "my agent" ]
x = 1
[[many]]
y = 1
[[many]]
y = 2
[many.inner]
z = 3
"""
    lines = find_places(text).lines
    expected: dict[Path, int] = {
        ("top",): 1,
        ("a", "b"): 2,
        ("quoted key",): 3,
        ("literal.key", "escAped"): 4,
        ("server",): 5,
        ("server", "text"): 6,
        ("server", "raw"): 10,
        ("server", "inline", "two", "three"): 12,
        ("server", "list"): 13,
        ("server", "list", 0): 14,
        ("server", "list", 1): 15,
        ("server", "list", 1, 1): 15,
        ("server", "list", 2, "deep"): 17,
        ("server", "when"): 19,
        ("agents", "my agent"): 20,
        ("agents", "my agent", "x"): 21,
        ("many", 0, "y"): 23,
        ("many", 1, "y"): 25,
        ("many", 1, "inner", "z"): 27,
    }
    assert {path: lines.get(path) for path in expected} == expected
    assert set(lines) == paths(tomllib.loads(text))


def test_what_is_not_written_is_at_what_is_around_it() -> None:
    """A missing key is at its table's header, a missing table at the beginning."""
    places = find_places("\n[server]\nport = 1\n")
    assert places.line_of(("server", "token")) == 2
    assert places.line_of(("log", "days")) == 1


def test_paths_read_as_they_are_written() -> None:
    """Unusual keys in quotes, places in lists in brackets, long keys shortened."""
    assert dotted(("slots", "my slot", "times", 1)) == 'slots."my slot".times[1]'
    assert len(dotted(("x" * 10_000,))) < 100


def test_the_contract_is_found_whole() -> None:
    """Every key tomllib finds, and no other."""
    assert set(find_places(CONTRACT).lines) == paths(tomllib.loads(CONTRACT))


keys = st.sampled_from(["a", "b-c", "1", '"q"', "'l'", '"a.b"', '"\\""', "a.b", 'a . "#"'])
values = st.recursive(
    st.sampled_from(
        ["1", "true", '"a"', '"]"', "'#'", '"""x\n[y]\nz = 1"""', "'''\n'' '''", "2026-01-30T09:00:00Z", "1.5"]
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]"),
        st.lists(inner, max_size=3).map(lambda items: "[ # x\n" + "".join(f" {item},\n" for item in items) + "]"),
        st.lists(inner, max_size=3).map(lambda items: f"{{{', '.join(f'k{i} = {v}' for i, v in enumerate(items))}}}"),
    ),
    max_leaves=6,
)
statements = st.one_of(
    st.tuples(keys, values).map(" = ".join),
    keys.map(lambda key: f"[{key}]"),
    keys.map(lambda key: f"[[ {key} ]] # c"),
    st.just("# [comment]\n"),
)


@given(st.lists(statements, max_size=8).map("\n".join))
def test_the_walk_finds_what_tomllib_finds(text: str) -> None:
    """In every document that is TOML: the same keys, each on a line where it can be read."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    places = find_places(text)
    assert set(places.lines) == paths(data)
    assert places.twice == ()
    count = text.count("\n") + 1
    assert all(1 <= line <= count for line in places.lines.values())


@given(st.text(alphabet="[]{}=.\"'\\#,\n\r ab1", max_size=200))
def test_the_walk_comes_to_an_end_in_any_text(text: str) -> None:
    """Whatever it finds there."""
    places = find_places(text)
    assert all(1 <= line <= text.count("\n") + 1 for line in places.lines.values())
