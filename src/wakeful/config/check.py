"""The heartbeat's `check`: the same object as a schedule's `check`, with the names used in a settings file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from wakeful.config.kinds.reading import shown
from wakeful.core.description import Kind, camel
from wakeful.core.fields import Fields
from wakeful.core.schedule.pre_check import PRE_CHECK, PreCheck

_EXAMPLE: Final = '{command = {argv = ["./new-mail"]}}'
_CAPITAL: Final = re.compile(r"([A-Z])")


def _read(fields: Fields, name: str) -> Mapping[str, Any] | None:
    written = fields.raw(name)
    if not isinstance(written, Mapping):
        fields.fail(name, f"{shown(written)} is not a table; write for example {_EXAMPLE}")
        return None
    inner = Fields(_in_json(written))
    check = PRE_CHECK.read(inner)
    for error in inner.errors:
        fields.fail(f"{name}.{_in_settings(error.field)}", error.message)
    return None if check is None else PRE_CHECK.write(check)


CHECK: Final = Kind("table: command or http, and on_error", _read, {"type": "object"}, cure=_EXAMPLE)
"""A table with `command` or `http`, and `on_error`."""


def pre_check(written: Mapping[str, Any]) -> PreCheck:
    """The `PreCheck` for a value that was read."""
    fields = Fields(written)
    check = PRE_CHECK.read(fields)
    fields.finish()
    assert check is not None  # noqa: S101 - else `finish` raised
    return check


def _in_json(table: Mapping[str, Any]) -> dict[str, Any]:
    """The value with JSON names, for the check and for its command or request, but not inside those, where names are
    free."""
    inner = {name: _camel(value) if isinstance(value, Mapping) else value for name, value in table.items()}
    return _camel(inner)


def _camel(table: Mapping[str, Any]) -> dict[str, Any]:
    return {camel(name): value for name, value in table.items()}


def _in_settings(place: str) -> str:
    """The place in the file: the reverse of `_in_json`."""
    names = place.split(".")
    return ".".join([*(_CAPITAL.sub(r"_\1", name).lower() for name in names[:2]), *names[2:]])
