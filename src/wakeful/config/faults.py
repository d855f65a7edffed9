"""Errors in the settings: all reported together, each with its line and cure."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


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


class Refusal(ValueError):
    """One value is refused; the text says why, and what to write instead."""


def refusal(message: str) -> Refusal:
    """Raised by the function that reads one value."""
    return Refusal(message)
