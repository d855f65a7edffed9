"""How the core says that something written is wrong.

Theory of operation: a definition is read as a whole and every fault in it is found before anything is refused, so a
person corrects a file once and not once per mistake. One fault is a `FieldError`: the field as the person wrote it,
and a message that says what is wrong with the value and what to write instead. All faults of one definition travel in
one `Invalid`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn


@dataclass(frozen=True, slots=True)
class FieldError:
    """One fault: where it is, and a message naming the value and the cure."""

    field: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}" if self.field else self.message


class Invalid(ValueError):
    """Something written cannot be accepted; `errors` lists every fault, `str()` is all of them on one line."""

    def __init__(self, *errors: FieldError) -> None:
        super().__init__(*errors)
        self.errors: tuple[FieldError, ...] = errors

    def __str__(self) -> str:
        return "; ".join(str(error) for error in self.errors)


def refuse(field: str, message: str) -> NoReturn:
    """Raise `Invalid` with a single fault."""
    raise Invalid(FieldError(field, message))
