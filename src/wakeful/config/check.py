"""The heartbeat's `check`: the same object as a schedule's `check`, with the names used in a settings file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wakeful.config.faults import refusal, refusal_inside
from wakeful.config.kinds import Kind, shown
from wakeful.config.secrets import SecretReader
from wakeful.core.description import camel
from wakeful.core.fields import Fields
from wakeful.core.schedule.pre_check import PRE_CHECK, PreCheck

_EXAMPLE = '{command = {argv = ["./new-mail"]}}'


def check_table() -> Kind:
    """A table with `command` or `http`, and `on_error`."""

    def read(value: Any, _: SecretReader | None) -> Mapping[str, Any]:
        if not isinstance(value, Mapping):
            raise refusal(f"{shown(value)} is not a table; write for example {_EXAMPLE}")
        fields = Fields(_in_json(value))
        check = PRE_CHECK.read(fields)
        if check is None or fields.errors:
            raise refusal_inside([(_in_settings(error.field), error.message) for error in fields.errors])
        return PRE_CHECK.write(check)

    return Kind("table: command or http, and on_error", _EXAMPLE, read, {"type": "object"})


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
    return "".join(f"_{char.lower()}" if char.isupper() else char for char in place)
