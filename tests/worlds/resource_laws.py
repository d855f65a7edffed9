"""The law of resources: what never began is not an attempt, and fails after an hour at the earliest.

The facts: when a machine refused a run before anything of it began, and what the next commit made of that run.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from wakeful.core.run.resources import GIVE_UP_AFTER, RESOURCES
from wakeful.core.run.runs import Attempt
from wakeful.core.schedule.cadence import Cadence
from wakeful.core.time.instants import Instant, format_duration
from worlds.laws import Shift, describe


class Refusal(NamedTuple):
    """The last time a run could not begin, and the first time since its last attempt, by the clock of the node."""

    attempt: int
    first_at: Instant
    at: Instant


class Refusals:
    """What could not begin."""

    def __init__(self) -> None:
        self._of_run: dict[int, Refusal] = {}

    def refused(self, run_id: int, attempt: int, at: Instant) -> None:
        earlier = self._of_run.get(run_id)
        self._of_run[run_id] = Refusal(attempt, at if earlier is None else min(earlier.first_at, at), at)

    def began(self, run_id: int) -> None:
        self._of_run.pop(run_id, None)

    def judge(
        self,
        name: str,
        shift: Shift,
        before: Cadence | None,
        after: Cadence | None,
        attempts: Sequence[Attempt],
        *,
        is_alone: bool,
    ) -> Iterator[str]:
        """Judge what a commit made of a run; `is_alone`: it changed no other run of the schedule."""
        was, row = shift
        refusal = self._of_run.get(row.run_id)
        if refusal is None or was is None or was.outcome != "running" or was.attempt != refusal.attempt:
            return
        yield from not_an_attempt(name, shift, refusal, attempts)
        yield from waits_for_an_hour(name, shift, refusal)
        if is_alone and before is not None and after is not None and row.outcome == "waiting":
            yield from no_error(name, shift, before, after)


def not_an_attempt(name: str, shift: Shift, refusal: Refusal, attempts: Sequence[Attempt]) -> Iterator[str]:
    """L8: it is counted nowhere."""
    row = shift.after
    if (row.outcome, row.reason) != ("waiting", RESOURCES):
        return
    if row.attempt != refusal.attempt - 1 or any(one.attempt == refusal.attempt for one in attempts):
        yield f"L8 {name}: {describe(row)} counts attempt {refusal.attempt}, which never began"


def waits_for_an_hour(name: str, shift: Shift, refusal: Refusal) -> Iterator[str]:
    """L8: until then the run waits for resources and for nothing else, unless a person or a crash ends it."""
    row, waited = shift.after, refusal.at - refusal.first_at
    is_blamed = row.outcome in ("failed", "timedOut") and row.reason in (None, RESOURCES)
    is_retried = row.outcome == "waiting" and row.reason == "retry"
    if (is_blamed or is_retried) and waited < GIVE_UP_AFTER:
        yield f"L8 {name}: {describe(row)} never began, and had waited for {format_duration(waited)}"


def no_error(name: str, shift: Shift, before: Cadence, after: Cadence) -> Iterator[str]:
    """L8: it is no error in a row, and it disables nothing."""
    if after.consecutive_errors > before.consecutive_errors:
        yield f"L8 {name}: {describe(shift.after)} never began and counts as an error"
