"""Gates: whether a run may start now.

A gate looks at a run about to be claimed and admits it, defers it, or skips it with a reason. Gates are asked in
order, inside the claiming transaction; the first that does not admit decides.
"""

from dataclasses import dataclass
from typing import TypeAlias

from wakeful.core.time.instants import Instant


@dataclass(frozen=True, slots=True)
class Admit:
    """The run may start."""


@dataclass(frozen=True, slots=True)
class Defer:
    """The run waits, and is asked again then."""

    until: Instant
    reason: str


@dataclass(frozen=True, slots=True)
class Skip:
    """The run will not happen."""

    reason: str


Decision: TypeAlias = Admit | Defer | Skip
ADMIT = Admit()
