"""Errors in the settings: all reported together, each with its line and cure."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pydantic_core import PydanticCustomError

REFUSED = "refused"
"""The pydantic error type for errors that already have one of our messages."""


@dataclass(frozen=True, slots=True)
class LocatedError:
    """One error: the line, the setting, what is wrong with its value and what to write instead.

    A value that is not from the file (a command line option) has no line.
    """

    field: str
    message: str
    line: int | None
    column: int | None = None

    def __str__(self) -> str:
        column = f", column {self.column}" if self.column else ""
        place = f"line {self.line}{column}" if self.line else "command line"
        return f"{place}: {self.field}: {self.message}" if self.field else f"{place}: {self.message}"


class SettingsRefused(ValueError):
    """The settings are invalid. `errors` holds every error, in the order of the file.

    `files` are those the result depended on: when one of them changes, loading may succeed.
    """

    def __init__(self, file: Path, errors: tuple[LocatedError, ...], files: frozenset[Path] = frozenset()) -> None:
        super().__init__(file, errors)
        self.file = file
        self.errors = errors
        self.files = files | {file}

    def __str__(self) -> str:
        count = "1 error" if len(self.errors) == 1 else f"{len(self.errors)} errors"
        return "\n".join([f"{self.file}: {count}", *(f"  {error}" for error in self.errors)])


def refusal(message: str, *, at: tuple[str, ...] | None = None) -> PydanticCustomError:
    """Raised when reading one value.

    `at` moves the error from the field being read to another field in the same table: a check that involves two fields
    runs when the later one is read, and may concern the earlier one.
    """
    # Passed as a value: in a template, the braces of a cure such as {env = "NAME"} would be interpolated.
    return PydanticCustomError(REFUSED, "{message}", {"message": message, "at": at, "inner": ()})


def refusal_inside(faults: list[tuple[str | int, str]]) -> PydanticCustomError:
    """Raised when reading a list or a table: all errors of its items, each with the item's position."""
    message = "; ".join(f"{place}: {text}" for place, text in faults)
    return PydanticCustomError(REFUSED, "{message}", {"message": message, "at": None, "inner": tuple(faults)})


Refusal = PydanticCustomError
