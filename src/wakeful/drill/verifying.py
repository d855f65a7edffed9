"""Whether the rows of a store obey the laws, as far as the store alone can show.

Nothing from outside is known here: not when a timing was edited, and not which rows were pruned. So the tiling of time
is checked from where it is certain: under the current version of each definition, and within the ledger's retention. A
hole before the first row that is left is not told from pruning.
"""

from typing import NamedTuple

from wakeful.core.run.runs import OUTSIDE_PLAN
from wakeful.core.schedule.cadence import Cadence
from wakeful.core.time.instants import DAY, Instant
from wakeful.core.time.timing import Cron, Every, Once, Times
from wakeful.drill import laws
from wakeful.drill.ledger import History, Verdict, audit, rows_of, schedules_of
from wakeful.drill.references import dangling
from wakeful.engine.recovery import read_clock_high
from wakeful.features.schedules.compiled import Compiled, read_stored
from wakeful.ports.store import Schedule, Tx
from wakeful.stores.sqlite.verifying import Fault


class RowsVerdict(NamedTuple):
    """What was found in the rows."""

    ledger: Verdict
    references: list[str]
    unreadable: list[str]  # definitions

    @property
    def faults(self) -> list[Fault]:
        """Everything that is wrong."""
        found = [Fault("references", sentence) for sentence in (*self.references, *self.unreadable)]
        return found + [Fault("ledger", finding.sentence) for finding in self.ledger.findings]


def verify_rows(tx: Tx, *, ledger_days: int) -> RowsVerdict:
    """Check references, definitions, and the laws on the ledger."""
    kept_since = (read_clock_high(tx) or 0) - ledger_days * DAY
    histories: dict[str, History] = {}
    unreadable: list[str] = []
    for schedule, cadence in schedules_of(tx):
        read = read_stored(schedule.schedule_id, schedule.version, schedule.definition)
        if not isinstance(read, Compiled):
            unreadable.append(f"the definition of {schedule.slug} cannot be read: {read.reason}")
        elif isinstance(read.rules.timing, Cron | Every | Once | Times):
            begin = _certain_since(tx, schedule, cadence, kept_since)
            histories[schedule.slug] = [laws.Era(begin, read.rules.timing)]
        histories.setdefault(schedule.slug, [])
    return RowsVerdict(audit(tx, histories=histories), list(dangling(tx)), unreadable)


def _certain_since(tx: Tx, schedule: Schedule, cadence: Cadence, kept_since: Instant) -> Instant:
    """From when on its current timing decided, and no row was pruned."""
    planned = [row for row in rows_of(tx, schedule.schedule_id) if row.trigger not in OUTSIDE_PLAN]
    since = max(schedule.created_at, kept_since)
    if schedule.updated_at > schedule.created_at:
        earlier = [laws.last_instant(row) for row in planned if row.version != schedule.version]
        since = max([since, schedule.updated_at, *earlier])
    since = max([since, *(laws.last_instant(row) for row in planned if row.planned_at <= since)])
    ahead = [row.planned_at - 1 for row in planned if row.planned_at > since]
    return max(since, min(ahead, default=cadence.planned_through))
