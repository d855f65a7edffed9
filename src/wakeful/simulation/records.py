"""Reads each schedule's record: what its last attempts did."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, get_args

from wakeful.core.money.charges import Charge
from wakeful.core.money.prices import dollars
from wakeful.core.run.runs import Attempt
from wakeful.core.run.usage import Usage, usage
from wakeful.core.schedule.pre_check import CHECK_FAILED, NOTHING_TO_DO
from wakeful.core.simulation.draws import RECORDED_MAX, Record, Sample, SampleOutcome
from wakeful.core.time.instants import Instant
from wakeful.ports.charges import Charges
from wakeful.ports.store import RunGlance, Tx

STEP: Final = 50
_SAMPLED: Final = frozenset(get_args(SampleOutcome))


class Recorded:
    """The records of some owners, and the charges they contain."""

    def __init__(self) -> None:
        self.by_owner: dict[int, Record] = {}
        self.charges: list[Charge] = []


def read_records(tx: Tx, owner_ids: Sequence[int]) -> Recorded:
    """The records of these owners of runs."""
    recorded = Recorded()
    for start in range(0, len(owner_ids), STEP):
        latest = tx.runs.latest(owner_ids[start : start + STEP], limit=RECORDED_MAX)
        run_ids = [row.run_id for rows in latest.values() for row in rows if row.started_at is not None]
        charges = tx[Charges].of_runs(run_ids)
        attempts = tx.runs.attempts(run_ids)
        claimed = {run_id: run.claimed_at for run_id, run in tx.runs.lock(sorted(attempts)).items()}
        used = {(charge.run_id, charge.attempt): _usage(charge) for charge in charges}
        for owner_id, rows in latest.items():
            recorded.by_owner[owner_id] = record_of(rows, attempts, claimed, used)
        recorded.charges += charges
    return recorded


def record_of(
    rows: Iterable[RunGlance],
    attempts: Mapping[int, Sequence[Attempt]],
    claimed: Mapping[int, Instant | None],
    used: Mapping[tuple[int, int], Usage | None],
) -> Record:
    """The record from these rows. `claimed` is when the last attempt began, for runs with several."""
    samples: list[Sample] = []
    checked = nothing = 0
    for row in rows:
        earlier = attempts.get(row.run_id, ())
        samples += [sample for attempt in earlier if (sample := _attempt(attempt, used)) is not None]
        if row.outcome == "skipped" and row.reason in (NOTHING_TO_DO, CHECK_FAILED):
            nothing += row.instants
            checked += row.instants
        began = claimed.get(row.run_id) if earlier else row.started_at
        if row.outcome in _SAMPLED and began is not None and row.ended_at is not None:
            checked += 1
            known = used.get((row.run_id, _last(row, earlier, used)))
            took = max(row.ended_at - began, 0)
            samples.append(Sample(row.outcome, took, known, row.reason, row.error))  # type: ignore[arg-type]  # one of these
    return Record(tuple(samples), checked, nothing)


def _last(row: RunGlance, earlier: Sequence[Attempt], used: Mapping[tuple[int, int], Usage | None]) -> int:
    """The number of the last attempt: a check counts as one too."""
    least = earlier[-1].attempt + 1 if earlier else 1
    return next((attempt for attempt in (least, least + 1) if (row.run_id, attempt) in used), least)


def _attempt(attempt: Attempt, used: Mapping[tuple[int, int], Usage | None]) -> Sample | None:
    if attempt.claimed_at is None or attempt.outcome not in ("failed", "timedOut"):
        return None  # a busy target or a crash says nothing about the schedule
    known, took = used.get((attempt.run_id, attempt.attempt)), max(attempt.ended_at - attempt.claimed_at, 0)
    return Sample("failed" if attempt.outcome == "failed" else "timedOut", took, known, None, attempt.error)


def _usage(charge: Charge) -> Usage | None:
    return usage(
        input=charge.input,
        cachedInput=charge.cached_input,
        output=charge.output,
        reasoning=charge.reasoning,
        total=charge.tokens,
        model=charge.model,
        cost=None if charge.cost is None else dollars(charge.cost),
    )
