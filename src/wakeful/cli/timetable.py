"""The next times, as `add`, `edit` and `next` show them: in the user's zone, how far away, in the schedule's zone."""

from collections.abc import Mapping, Sequence
from typing import Any

from wakeful.cli import times
from wakeful.cli.render import say
from wakeful.cli.tables import Column, table


def show_times(instants: Sequence[str], schedule: Mapping[str, Any]) -> None:
    """Print a table of the times; with one more column if the schedule's zone is not the user's."""
    zone_name, zone = schedule.get("timezone"), times.zone_named(schedule.get("timezone"))
    since = times.now()
    columns = [Column("TIME"), Column("LEFT")]
    rows: list[list[str]] = []
    starts = [at for at in map(times.parse, instants) if at is not None]
    is_other = zone is not None and any(times.wall(at, zone) != times.wall(at) for at in starts)
    if is_other:
        columns.append(Column(f"IN {zone_name}", least=10))
    for at in starts:
        row = [times.wall(at), times.relative(at, since)]
        rows.append([*row, times.wall(at, zone)] if is_other else row)
    table(columns, rows)


def explain_no_times(view: Mapping[str, Any]) -> None:
    """Print why a schedule has no next time."""
    kind = view.get("schedule", {}).get("type")
    if view.get("enabled") is False:
        say("It is disabled; enable it with: wakeful resume " + str(view.get("slug")))
    elif kind == "manual":
        say("It runs only on request: wakeful run " + str(view.get("slug")))
    elif kind == "afterReset":
        say("It fires after the next reset of its slot, which is not known yet.")
    else:
        say("It has no future times.")
