"""The output of a measuring process: one figure per line, as JSON."""

import json
import sys
from collections.abc import Mapping
from typing import NamedTuple


class Figure(NamedTuple):
    """One measured value."""

    measure: str
    value: float
    facts: Mapping[str, float | str]


def emit(measure: str, value: float, **facts: float | str) -> None:
    """Print a figure."""
    sys.stdout.write(json.dumps({"measure": measure, "value": value, "facts": facts}) + "\n")
    sys.stdout.flush()


def parse(line: str) -> Figure | None:
    """A line of a measuring process; None for anything else that a library printed."""
    try:
        read = json.loads(line)
        return Figure(str(read["measure"]), float(read["value"]), dict(read.get("facts", {})))
    except (ValueError, KeyError, TypeError):
        return None
