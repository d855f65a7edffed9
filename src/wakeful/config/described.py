"""Settings tables as described objects, so that their fields are shown like those of definitions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from wakeful.config.messages import choices_of, kind_of
from wakeful.config.table import Table
from wakeful.core.description import REQUIRED, Entry, Field, Kind, Object
from wakeful.core.fields import Fields


def described_table(
    name: str, *tables: type[Table], says: str = "", spelt: Callable[[str], str] = str, is_partial: bool = False
) -> Object[Any]:
    """The fields of these tables, each once; `is_partial`: none is required, because they depend on one another."""
    entries = {
        field: _entry([one for one in tables if field in one.model_fields], field, spelt(field), is_partial)
        for table in tables
        for field in table.model_fields
    }
    return Object(name, says or (tables[0].__doc__ or "").strip(), entries.values(), dict)


def _entry(tables: Sequence[type[Table]], attribute: str, name: str, is_partial: bool) -> Entry:
    described = tables[0].model_fields[attribute]
    default = REQUIRED if described.is_required() else described.default
    if is_partial and (default is REQUIRED or len(tables) < 2):
        default = None
    field = Field(_kind(tables, attribute), described.description or "", default=default)
    return Entry(name, attribute, field, default, REQUIRED)


def _kind(tables: Sequence[type[Table]], attribute: str) -> Kind:
    kind = kind_of(tables[0], attribute)
    if kind is not None:
        return Kind(kind.words, Fields.raw, kind.schema)
    words = [word for table in tables for word in choices_of(table, attribute)]
    return Kind(" or ".join(f"`{word}`" for word in words) or "table", Fields.raw, {"enum": words})
