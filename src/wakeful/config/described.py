"""Settings tables as described objects, so that their fields are shown like those of definitions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from wakeful.config.messages import choices_of, kind_of
from wakeful.config.table import Table
from wakeful.core.description import REQUIRED, Field, Kind, Object
from wakeful.core.fields import Fields
from wakeful.core.kinds import any_of


def described_table(
    name: str, *tables: type[Table], says: str = "", spelt: Callable[[str], str] = str, is_partial: bool = False
) -> Object[Any]:
    """The fields of these tables, without duplicates; `is_partial`: none is required, because they depend on each
    other."""
    fields = {
        field: _field([table for table in tables if field in table.model_fields], field, spelt(field), is_partial)
        for table in tables
        for field in table.model_fields
    }
    return Object(name, says or (tables[0].__doc__ or "").strip(), fields.values(), dict)


def _field(tables: Sequence[type[Table]], attribute: str, name: str, is_partial: bool) -> Field:
    described = tables[0].model_fields[attribute]
    default = REQUIRED if described.is_required() else described.default
    if is_partial and (default is REQUIRED or len(tables) < 2):
        default = None
    kind = _kind(tables, attribute)
    return Field(kind, described.description or "", name=name, attribute=attribute, default=default)


def _kind(tables: Sequence[type[Table]], attribute: str) -> Kind:
    kind = kind_of(tables[0], attribute)
    if kind is not None:
        return Kind(kind.words, Fields.raw, kind.schema)
    words = [word for table in tables for word in choices_of(table, attribute)]
    return Kind(any_of(words) or "table", Fields.raw, {"enum": words})
