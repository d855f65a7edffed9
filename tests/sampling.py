"""Many similar cases, such as a crash at every commit: `make test` runs a fixed sample, `make torture` the others."""

from collections.abc import Iterable, Sequence
from typing import Any

import pytest


def sampled(cases: Iterable[Any], *, every: int, offset: int = 0) -> list[Any]:
    """All cases as parameters; all but each n-th are marked `torture`."""
    return [case if n % every == offset else _rarely(case) for n, case in enumerate(cases)]


def _rarely(case: Any) -> Any:
    values: Sequence[Any] = case if isinstance(case, tuple) else (case,)
    return pytest.param(*values, marks=pytest.mark.torture)
