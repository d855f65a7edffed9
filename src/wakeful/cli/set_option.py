"""`--set FIELD=VALUE`: the value in the type of the field."""

from __future__ import annotations

import json
from typing import Any

from wakeful.core.description import Object


def value_of(described: Object[Any], field: str, text: str) -> Any:
    """Text for a field that is text (`lane=5`), otherwise JSON if it parses (`retry.times=3`); `null` removes."""
    known = described.find(field)
    if known is not None and known.kind.schema.get("type") == "string" and text != "null" and not text.startswith('"'):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text
