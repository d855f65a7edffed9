"""Functions with an annotation that can be read by its name only: `Fire` is imported for type checkers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Optional

if TYPE_CHECKING:
    from wakeful import Fire


def by_name(days: int = 30, event: Fire | None = None) -> str:
    return f"{days} {type(event).__name__}"


def by_optional(days: int = 30, event: Optional[Fire] = None) -> str:  # noqa: UP045 - as people write it
    return f"{days} {type(event).__name__}"


def by_other(days: int = 30, event: Fireplace | None = None) -> str:  # type: ignore[name-defined]  # noqa: F821
    return f"{days} {event}"


def legacy(event=None) -> str:  # type: ignore[no-untyped-def]
    return type(event).__name__
