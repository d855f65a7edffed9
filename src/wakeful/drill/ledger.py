"""The ledger checker: every planned instant is one run or one reasoned row, and everything seen has its row.

Theory of operation
-------------------
What should be in the ledger is counted from the definitions; the scheduler's own state (its border, its next times) is
only used to know how far it claims to have planned. What really happened comes from outside, as observations that
targets wrote themselves. Both are compared with the rows:

- `missing`: a planned instant that no row covers, or a run that is recorded as succeeded but was never seen;
- `extra`: a row where nothing was planned, a second row of an instant, an attempt that was not recorded, one too many;
- `overlapping`: rows that cover an instant twice, attempts of one run or of one lane at the same time.

It works on any store through the port, changes nothing, and needs no running scheduler: a copy of the data is enough.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

from wakeful.core.run.runs import NOT_RUN, OUTSIDE_PLAN, Attempt, Run
from wakeful.core.schedule.cadence import Cadence
from wakeful.core.time.instants import Instant
from wakeful.core.time.timing import Manual, Timing
from wakeful.drill import laws
from wakeful.drill.observed import Observation
from wakeful.features.schedules.compiled import Compiled, read_stored
from wakeful.ports.store import Schedule, Tx

Kind: TypeAlias = Literal["missing", "extra", "overlapping"]

PAGE: Final = 1_000


class Finding(NamedTuple):
    """Something that is not as it must be."""

    kind: Kind
    slug: str
    sentence: str


History: TypeAlias = Sequence[laws.Era]
"""What is known about a schedule from outside: which timing it had, and since when. Without it, the store is
trusted."""


class Verdict(NamedTuple):
    """What was checked, and what was found."""

    schedules: int
    instants: int  # covered by rows
    runs: int
    attempts_seen: int
    findings: tuple[Finding, ...]

    @property
    def is_clean(self) -> bool:
        return not self.findings

    def in_words(self) -> str:
        """The verdict in one line, or in one line per finding."""
        looked = f"{self.instants:,} instants of {self.schedules:,} schedules, {self.attempts_seen:,} attempts seen"
        if self.is_clean:
            return f"{looked}: nothing missing, nothing extra, nothing overlapping"
        return "\n".join([looked, *(f"{finding.kind}: {finding.sentence}" for finding in self.findings)])


def audit(
    tx: Tx,
    observed: Sequence[Observation] | None = None,
    *,
    histories: Mapping[str, History] | None = None,
    since: Instant | None = None,
) -> Verdict:
    """Check every schedule of a store. `observed` are all attempts; None: none were observed.

    `since` is where the ledger begins (what is older may have been pruned). Call it while nothing runs, or in a read,
    which is one consistent moment."""
    seen: dict[int, list[Observation]] = defaultdict(list)
    for observation in observed or ():
        seen[observation.run_id].append(observation)
    findings: list[Finding] = []
    counts = [0, 0, 0]
    known: set[int] = set()
    for schedule, cadence in schedules_of(tx):
        rows = rows_of(tx, schedule.schedule_id)
        attempts = tx.runs.attempts([row.run_id for row in rows])
        given = None if histories is None else histories.get(schedule.slug)
        findings += _of_schedule(tx, schedule, cadence, rows, given, since)
        unrepeated = _unrepeated(schedule)
        findings += _of_runs(schedule.slug, rows, attempts, seen if observed is not None else None, unrepeated)
        known.update(row.run_id for row in rows)
        counts = [counts[0] + 1, counts[1] + sum(row.instants for row in rows), counts[2] + len(rows)]
    for run_id in sorted(seen.keys() - known):
        sentence = f"run {run_id} was seen {len(seen[run_id])} times and is not in the ledger"
        findings.append(Finding("extra", "?", sentence))
    findings += _overlaps(observed or ())
    return Verdict(counts[0], counts[1], counts[2], len(observed or ()), tuple(findings))


def schedules_of(tx: Tx) -> Iterator[tuple[Schedule, Cadence]]:
    """All existing schedules that have a plan, page by page, in slug order."""
    after: str | None = None
    while page := tx.schedules.page(after=after, limit=PAGE):
        cadences = tx.cadences.lock([schedule.schedule_id for schedule in page])
        for schedule in page:
            if schedule.schedule_id in cadences:  # otherwise `drill.references` reports it
                yield schedule, cadences[schedule.schedule_id]
        after = page[-1].slug


def rows_of(tx: Tx, schedule_id: int) -> list[Run]:
    """A schedule's ledger rows, newest first."""
    rows: list[Run] = []
    before: int | None = None
    while page := tx.runs.page(schedule_id=schedule_id, before_id=before, limit=PAGE):
        rows += page
        before = page[-1].run_id
    return rows


def _of_schedule(
    tx: Tx, schedule: Schedule, cadence: Cadence, rows: Sequence[Run], given: History | None, since: Instant | None
) -> Iterator[Finding]:
    """Rows of instants tile the time from its beginning to its border."""
    planned = [row for row in rows if row.trigger not in OUTSIDE_PLAN]
    eras = given if given is not None else _eras(tx, schedule, planned)
    if not eras:
        return  # its definition cannot be read, and nothing is known of it
    after = max(eras[0].after, since or eras[0].after)
    through = cadence.planned_through
    within = [row for row in planned if after < row.planned_at <= through]
    for sentence in laws.tiles(schedule.slug, eras, within, after=after, through=through):
        yield Finding(_kind_of(sentence), schedule.slug, sentence)
    for row in planned:
        if row.planned_at > max(through, cadence.ran_through):  # ahead of the clock, which never caught up
            sentence = f"{laws.describe(row)} lies beyond {laws.at(through)}, up to where it is planned"
            yield Finding("extra", schedule.slug, f"L1 {schedule.slug}: {sentence}")
    for sentence in laws.one_row_per_instant(schedule.slug, rows):
        yield Finding("extra", schedule.slug, sentence)


def _kind_of(sentence: str) -> Kind:
    if "covers again" in sentence:
        return "overlapping"
    return "missing" if "no row covers" in sentence else "extra"


def _eras(tx: Tx, schedule: Schedule, rows: Sequence[Run]) -> list[laws.Era]:
    """The timings a schedule had, as far as the rows and their copies show.

    The moment of an edit is not kept. The old timing decided everything up to it and the new one everything after it,
    so it lies between the last row of the one and the first of the other; nothing is expected in between. A caller that
    knows more passes a `History`."""
    firsts: dict[int, Instant] = {}
    lasts: dict[int, Instant] = {}
    for row in rows:
        firsts[row.version] = min(firsts.get(row.version, row.planned_at), row.planned_at)
        lasts[row.version] = max(lasts.get(row.version, row.planned_at), laws.last_instant(row))
    eras: list[laws.Era] = []
    last = schedule.created_at
    for version in sorted({*firsts, schedule.version}):
        timing = _timing(tx, schedule, version)
        if timing is None:
            return []
        if not eras:
            eras.append(laws.Era(schedule.created_at, timing))
        elif eras[-1].timing != timing:
            begins = firsts.get(version, schedule.updated_at + 1) - 1
            eras += [laws.Era(last, Manual()), laws.Era(max(begins, last), timing)]
        last = max(last, lasts.get(version, last))
    return eras


def _timing(tx: Tx, schedule: Schedule, version: int) -> Timing | None:
    text: str | None = schedule.definition
    if version != schedule.version:
        text = tx.runs.kept_definition(schedule.schedule_id, version)
    read = None if text is None else read_stored(schedule.schedule_id, version, text)
    return read.rules.timing if isinstance(read, Compiled) else None


def _unrepeated(schedule: Schedule) -> frozenset[int]:
    """The versions that rule out a repetition after a crash, as far as the current definition shows."""
    read = read_stored(schedule.schedule_id, schedule.version, schedule.definition)
    is_unrepeated = isinstance(read, Compiled) and read.definition.on_crash == "unknown"
    return frozenset({schedule.version} if is_unrepeated else ())


def _of_runs(
    slug: str,
    rows: Iterable[Run],
    attempts: Mapping[int, Sequence[Attempt]],
    seen: Mapping[int, Sequence[Observation]] | None,
    unrepeated: frozenset[int],
) -> Iterator[Finding]:
    """Each run against what its target saw of it. `unrepeated` are the versions with `onCrash: unknown`."""
    for row in rows:
        ended = attempts.get(row.run_id, ())
        of_run = [] if seen is None else [_as_seen(row, observation) for observation in seen.get(row.run_id, ())]
        for sentence in laws.attempts_are_bounded(slug, row, ended, of_run):
            yield Finding("extra", slug, sentence)
        for sentence in (*laws.attempts_begin_once(slug, of_run), *laws.attempts_begin_in_order(slug, of_run)):
            yield Finding("extra", slug, sentence)
        for sentence in laws.begun_is_recorded(slug, row, ended, of_run):
            yield Finding("extra", slug, sentence)
        if row.version in unrepeated:
            for sentence in laws.unknown_is_not_repeated(slug, row, ended, of_run):
                yield Finding("extra", slug, sentence)
        if of_run and row.outcome in NOT_RUN and row.attempt == 0:
            yield Finding("extra", slug, f"{laws.describe(row)} is recorded as not run, but was seen to start")
        if seen is not None and not of_run and row.outcome == "succeeded":
            yield Finding(
                "missing", slug, f"{laws.describe(row)} is recorded as succeeded, but was never seen to start"
            )


def _as_seen(row: Run, observation: Observation) -> laws.Seen:
    return laws.Seen(
        row.run_id,
        row.schedule_id,
        observation.attempt,
        observation.key,
        observation.lane,
        0,
        observation.began_at,
        observation.ended_at,
    )


def _overlaps(observed: Sequence[Observation]) -> Iterator[Finding]:
    """No two attempts of one run, and no two in one lane, at the same time. An attempt never seen to end died: whether
    the next one waited for that cannot be seen from outside, so it overlaps nothing."""
    busy: dict[str, Observation] = {}
    for attempt in sorted(observed, key=lambda attempt: attempt.began_at):
        for place in (f"run {attempt.run_id}", *(() if attempt.lane is None else (f"lane {attempt.lane}",))):
            other = busy.get(place)
            if other is not None and other.ended_at is not None and attempt.began_at < other.ended_at:
                sentence = (
                    f"{place}: run {attempt.run_id} attempt {attempt.attempt} began at {laws.at(attempt.began_at)}, "
                    f"while run {other.run_id} attempt {other.attempt} was under way until {laws.at(other.ended_at)}"
                )
                yield Finding("overlapping", "?", sentence)
            if other is None or (attempt.ended_at or 0) >= (other.ended_at or 0):
                busy[place] = attempt
