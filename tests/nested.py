"""Functions of a test's own, scheduled with `add`."""

from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def top_level(function: F) -> F:
    """The function, as if it stood at the top level of its module: `add` refuses what a restart could not find, and
    these tests do not restart, or are about what is found then."""
    function.__qualname__ = function.__name__.strip("<>")
    return function
