"""Whatever is in the file, it is read or refused with located faults: nothing else ever comes out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sampling import examples
from settings.kit import CONTRACT, ENVIRON
from wakeful.config import MASK, SettingsRefused, load, to_json
from wakeful.config.model import ENTRIES, SETTINGS, plain_tables

SECTIONS = [*SETTINGS.names, "agent", "x y"]
FIELDS = sorted(
    {name for entries in ENTRIES.values() for table in entries.tables.values() for name in table.names}
    | {name for _, table in plain_tables() for name in table.names}
    | {"start", "end", "env", "file", "typo"}
)
WORDS = [
    "sessions", "openai", "anthropic", "command", "call", "echo", "telegram", "webhook", "console", "inbox", "apprise",
    "glm", "http", "local", "Europe/Berlin", "09:00", "24:00", "30m", "1h30m", "0s", "1MiB", "https://example.org",
    "http://127.0.0.1:1", "sqlite:///x", "postgresql://u:p@h/d", "GLM_KEY", "default", "a.b:c", "(x)", "{session}",
    "{}", "serial", "edges", "", " ", "\0", "\u202e", "é" * 50, "http://[", "//@:", "~nobody/x", "../..", "/dev/zero"
]  # fmt: skip


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    """One folder for all examples: only the file in it changes."""
    with TemporaryDirectory() as folder:
        yield Path(folder)


def check(home: Path, content: bytes) -> bool:
    """The law: read, or refused with at least one located fault. True if it was read."""
    (home / "wakeful.toml").write_bytes(content)
    try:
        found = load(home, environ=ENVIRON)
    except SettingsRefused as refused:
        lines = content.count(b"\n") + 1
        assert refused.errors
        for error in refused.errors:
            assert error.line is not None
            assert 1 <= error.line <= lines
            assert error.message
            assert len(str(error)) < 2_000
        str(refused).encode()
        return False
    json.dumps(to_json(found)).encode()
    repr(found).encode()
    return True


def toml(value: Any) -> str:
    """A value as TOML writes it."""
    match value:
        case bool():
            return str(value).lower()
        case str():
            return json.dumps(value, ensure_ascii=True)
        case float():
            return repr(value)
        case dict():
            return "{" + ", ".join(f"{json.dumps(key)} = {toml(inner)}" for key, inner in value.items()) + "}"
        case list():
            return "[" + ", ".join(map(toml, value)) + "]"
        case _:
            return str(value)


scalars = st.one_of(
    st.sampled_from(WORDS),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.integers(0, 100),
    st.floats(),
    st.sampled_from(["1979-05-27", "07:32:00", "1979-05-27T07:32:00Z"]).map(
        lambda text: type("Raw", (), {"__str__": lambda _: text})()
    ),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(FIELDS), inner, max_size=3)),
    max_leaves=5,
)
tables = st.dictionaries(st.sampled_from(FIELDS), values, max_size=6)


@st.composite
def documents(draw: st.DrawFn) -> str:
    """Files with the right names in them and anything as their values."""
    lines = []
    for section in draw(st.lists(st.sampled_from(SECTIONS), unique=True, max_size=5)):
        header = json.dumps(section)
        if section in ENTRIES and draw(st.integers(0, 9)):
            header += "." + json.dumps(draw(st.sampled_from(["default", "a", "last", "inbox", "", "b c"])))
        lines.append(f"[{header}]")
        lines += [f"{key} = {toml(value)}" for key, value in draw(tables).items()]
    return "\n".join(lines)


@settings(max_examples=examples(150))
@given(text=documents())
def test_any_document_is_read_or_refused(home: Path, text: str) -> None:
    """Known names, unknown names, values of every kind in every place."""
    check(home, text.encode())


@settings(max_examples=examples(100))
@given(
    content=st.one_of(st.binary(max_size=300), st.text(max_size=300).map(lambda text: text.encode(errors="replace")))
)
def test_any_bytes_are_read_or_refused(home: Path, content: bytes) -> None:
    """Not even text."""
    check(home, content)


@settings(max_examples=examples(100))
@given(data=st.data())
def test_a_damaged_file_is_read_or_refused(home: Path, data: st.DataObject) -> None:
    """The contract's own example with pieces cut out, doubled and put elsewhere."""
    text = CONTRACT
    for _ in range(data.draw(st.integers(1, 5))):
        start = data.draw(st.integers(0, len(text)))
        end = min(len(text), start + data.draw(st.integers(0, 40)))
        piece = data.draw(
            st.sampled_from(["", "\n", '"', "'", "[", "]", "{", "=", "#", ".", '"""', text[start:end] * 2])
        )
        text = text[:start] + piece + text[end:]
    check(home, text.encode())


@settings(max_examples=examples(50))
@given(values=st.fixed_dictionaries({}, optional={
    "port": st.integers(0, 65_535).map(lambda port: f"[server]\nport = {port}\n"),
    "days": st.integers(1, 365).map(lambda days: f"[log]\ndays = {days}\n"),
    "every": st.integers(1, 1_000).map(lambda every: f'[heartbeat]\nevery = "{every}m"\n'),
    "token": st.text("abcdef", min_size=8, max_size=9).map(lambda token: f'[hooks.a]\ntoken = "{token}"\n'),
}))  # fmt: skip
def test_any_valid_document_is_read(home: Path, values: dict[str, str]) -> None:
    """And no secret in it is shown."""
    text = "".join(values.values())
    assert check(home, text.encode())
    if "token" in values:
        token = values["token"].split('"')[1]
        answer = json.dumps(to_json(load(home)), ensure_ascii=False)
        assert token not in answer
        assert MASK in answer
