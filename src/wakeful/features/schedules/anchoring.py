"""Corrects grids whose anchor lies in the future because the clock was ahead when they were written.

`every` starts at its anchor, or without one at the time it was written. If the clock was ahead then and was set back
later, the schedule would be silent until that time (L3). So the anchor is moved back along its grid; the grid itself
does not change. An anchor that was in the future when it was written is intended, and stays.
"""

from dataclasses import replace

from wakeful.core.schedule.cadence import Cadence
from wakeful.core.schedule.definition_json import encode_definition
from wakeful.core.time.instants import Instant, format_instant
from wakeful.core.time.timing import Every, anchor_behind
from wakeful.features.schedules.compiled import Compiled, compile_definition
from wakeful.features.schedules.copies import leave_copies
from wakeful.ports.store import Tx


def anchored_behind(tx: Tx, cadence: Cadence, compiled: Compiled, now: Instant) -> tuple[Cadence, Compiled]:
    """The schedule with its anchor not after now, as a new version; unchanged if it needs no correction."""
    timing = compiled.model.timing
    if not isinstance(timing, Every) or timing.anchor is None or timing.anchor <= now:
        return cadence, compiled
    schedule = tx.schedules.by_ids([cadence.schedule_id])[cadence.schedule_id]
    if timing.anchor > schedule.updated_at or schedule.deleted_at is not None:
        return cadence, compiled
    anchor = anchor_behind(timing, now)
    written = None if timing.anchor_written is None else format_instant(anchor)
    definition = replace(compiled.definition, timing=replace(timing, anchor=anchor, anchor_written=written))
    leave_copies(tx, cadence, schedule.definition)
    version = schedule.version + 1
    tx.schedules.save_many(
        [
            schedule._replace(
                definition=encode_definition(definition),
                version=version,
                created_at=min(schedule.created_at, now),
                updated_at=now,
            )
        ]
    )
    return cadence._replace(version=version), compile_definition(schedule.schedule_id, version, definition)
