"""Journals of takeovers from other schedulers."""

from typing import Literal, NamedTuple, TypeAlias

from wakeful.core.time.instants import Instant
from wakeful.ports.database import columns_of
from wakeful.ports.table import Rows

Stage: TypeAlias = Literal["written", "switching", "done", "abandoned"]


class Handover(NamedTuple):
    """The journal of one takeover from another scheduler, in the order of its columns."""

    handover_id: str
    source: str
    host: str  # the machine that has the source
    stage: Stage
    hand_at: Instant  # instants before it belong to the source
    off_at: Instant | None  # when switching the source off began
    body: str  # JSON: what to switch off in the source, and what to start in Wakeful
    problem: str | None
    created_at: Instant
    updated_at: Instant


# Journals that are not finished; there are few.
OPEN = f"""
SELECT {columns_of(Handover, "handovers")} FROM handovers WHERE stage IN ('written', 'switching')
ORDER BY created_at, handover_id
"""


class HandoverJournals(Rows[Handover]):
    """Journals of takeovers."""

    row, table, key, fixed = Handover, "handovers", "handover_id", ("created_at",)

    def open(self) -> list[Handover]:
        """Unfinished handovers, oldest first."""
        return self._made(self._db.rows(OPEN))
