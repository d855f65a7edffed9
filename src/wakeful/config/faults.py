"""How the settings say that what was written cannot be accepted: every fault at once, each with its line and cure."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pydantic_core import PydanticCustomError

REFUSED = "refused"
"""The type pydantic gives to an error whose message is already ours."""


@dataclass(frozen=True, slots=True)
class LocatedError:
    """One fault: the line, the setting, what is wrong with its value and what to write instead.

    A value that was not in the file (an option of the command line) has no line.
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
    """The settings cannot be used. `errors` holds every fault, in the order of the file.

    `files` are those the result depended on: as soon as one of them changes, another attempt may succeed.
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
    """What a reader of one value raises.

    `at` moves the fault from the field being read to another one of the same table: a check of two fields together is
    made when the later one is read, and may be about the earlier one.
    """
    # The text goes in as a value: in a template, the braces of a cure such as {env = "NAME"} would be filled in.
    return PydanticCustomError(REFUSED, "{message}", {"message": message, "at": at, "inner": ()})


def refusal_inside(faults: list[tuple[str | int, str]]) -> PydanticCustomError:
    """What a reader of a list or a table raises: all faults of its items, each with the item's place."""
    message = "; ".join(f"{place}: {text}" for place, text in faults)
    return PydanticCustomError(REFUSED, "{message}", {"message": message, "at": None, "inner": tuple(faults)})


Refusal = PydanticCustomError
