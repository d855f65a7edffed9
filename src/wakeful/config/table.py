"""The base class of all settings tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict


class Table(BaseModel):
    """One table of the file: no unknown keys, immutable, and no values in error messages."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


@dataclass(frozen=True, slots=True)
class NamedTables:
    """A table of named tables, `[agents.NAME]`: one key of each entry selects its model."""

    by: str | None
    default: str | None
    models: Mapping[str, type[Table]]

    def tag(self, written: Any) -> str | None:
        """The tag that selects the entry's model; None if it is not a string."""
        if isinstance(written, Table):
            return str(getattr(written, self.by or ""))
        if not isinstance(written, Mapping):
            return None
        value = written.get(self.by, self.default)
        return value if isinstance(value, str) else None

    def model_of(self, written: Any) -> type[Table] | None:
        """The model of an entry."""
        if self.by is None:
            return next(iter(self.models.values()))
        return self.models.get(self.tag(written) or "")
