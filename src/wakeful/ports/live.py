"""A value that a person may change while the program runs.

Whoever works by it holds on to the `Live` and asks for its value each time; nobody keeps the value itself for longer
than one decision. The value is frozen and exchanged as a whole, so that a decision never sees half a change.
"""

from typing import Generic, TypeVar

T = TypeVar("T")


class Live(Generic[T]):
    """Holds the value that counts now."""

    __slots__ = ("value",)

    def __init__(self, value: T) -> None:
        self.value = value
