"""How a measuring process talks to the runner: one figure a line, as JSON, on standard output."""

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
    """Tell the runner."""
    sys.stdout.write(json.dumps({"measure": measure, "value": value, "facts": facts}) + "\n")
    sys.stdout.flush()


def parse(line: str) -> Figure | None:
    """A line of a measuring process; None for anything a library chose to print."""
    try:
        read = json.loads(line)
        return Figure(str(read["measure"]), float(read["value"]), dict(read.get("facts", {})))
    except (ValueError, KeyError, TypeError):
        return None
