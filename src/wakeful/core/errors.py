"""Validation errors of the core.

Theory of operation: a definition is read as a whole and all its errors are collected before it is refused, so a person
corrects a file once instead of once per mistake. One error is a `FieldError`: the field as the person wrote it, and a
message that says what is wrong with the value and what to write instead. All errors of one definition are raised in
one `Invalid`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn


@dataclass(frozen=True, slots=True)
class FieldError:
    """One error: the field, and a message with the value and the cure."""

    field: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}" if self.field else self.message


class Invalid(ValueError):
    """The input cannot be accepted; `errors` lists every error, `str()` joins them on one line."""

    def __init__(self, *errors: FieldError) -> None:
        super().__init__(*errors)
        self.errors: tuple[FieldError, ...] = errors

    def __str__(self) -> str:
        return "; ".join(str(error) for error in self.errors)


def refuse(field: str, message: str) -> NoReturn:
    """Raise `Invalid` with a single error."""
    raise Invalid(FieldError(field, message))
