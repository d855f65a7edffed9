"""A value that a person may change while the program runs.

Users of the value keep the `Live` and read its value each time; no code keeps the value itself for longer than one
decision. The value is frozen and replaced as a whole, so a decision never sees half a change.
"""

from typing import Generic, TypeVar

T = TypeVar("T")


class Live(Generic[T]):
    """Holds the current value."""

    __slots__ = ("value",)

    def __init__(self, value: T) -> None:
        self.value = value
