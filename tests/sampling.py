"""Many similar cases, such as a crash at every commit: `make test` runs a sample, `make torture` the others."""

import os
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from _pytest.mark import ParameterSet

IS_THOROUGH = bool(os.environ.get("WAKEFUL_THOROUGH"))
"""As `make torture` sets it."""


def sampled(cases: Iterable[Any], *, every: int, offset: int = 0) -> list[Any]:
    """All cases as parameters; all but each n-th are marked `torture`."""
    return [case if n % every == offset else _rarely(case) for n, case in enumerate(cases)]


def examples(number: int) -> int:
    """How many examples of a property are tried: `make torture` runs all properties again, with this number."""
    return number if IS_THOROUGH else max(10, number // 5)


def _rarely(case: Any) -> Any:
    if isinstance(case, ParameterSet):
        return pytest.param(*case.values, marks=[*case.marks, pytest.mark.torture], id=case.id)
    values: Sequence[Any] = case if isinstance(case, tuple) else (case,)
    return pytest.param(*values, marks=pytest.mark.torture)
