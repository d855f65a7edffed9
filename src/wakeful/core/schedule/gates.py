"""Gates: whether a run may start now.

A gate checks a run that is about to be claimed and admits it, defers it, or skips it with a reason. Gates are checked
in order, inside the claiming transaction; the first one that does not admit decides.
"""

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from wakeful.core.time.instants import Instant

ELSEWHERE: Final = "callable elsewhere"
"""The reason why a run waits whose function is not loaded in this process."""


@dataclass(frozen=True, slots=True)
class Defer:
    """The run waits until `until`, and is then checked again."""

    until: Instant
    reason: str
    error: str | None = None  # why, in words


@dataclass(frozen=True, slots=True)
class Skip:
    """The run will not happen."""

    reason: str
    error: str | None = None  # why, in words
    outcome: Literal["skipped", "missed"] = "skipped"


@dataclass(frozen=True, slots=True)
class Leave:
    """The run stays due as it is, for another node to take. Only for a moment: this node checks it again and again."""


Decision: TypeAlias = Defer | Skip | None
"""None admits the run."""
