"""Runs that start as they are written: most are, and what is blank in every such row need not travel."""

from typing import Final

from wakeful.core.run.runs import Run

# The last columns of a run that starts as it is written, from `next_attempt_at` on.
_BLANK: Final = (None, None, None, None, None, None, None, 0)


def is_just_started(row: Run) -> bool:
    """Whether every column that a store's `ADD_STARTED` leaves out is what it takes it for."""
    return (
        row[24:] == _BLANK
        and row[9:11] == ("running", None)
        and row[12:15] == (1, 0, 0)
        and row[5:7] == (None, 1)
        and row[18] == 1
        and row[22] is None
    )
