"""Rows whose alarm is due, in PostgreSQL."""

from collections.abc import Sequence


def due_of(kind: str, table: str, key: str, columns: Sequence[str]) -> tuple[str, str]:
    """Rows of a table whose alarms of one kind are due by $1, oldest first, at most $2: without locks, and with locks.

    One index seek per priority, merged. The second query locks both row and alarm, and never waits for either. A row
    that was changed after the statement started is evaluated again with its current values: if another node has rung
    it in the meantime, it is no longer due."""
    of_priority = f"""
SELECT alarms.due_at AS rings_at, {", ".join(f"{table}.{name}" for name in columns)}
FROM alarms JOIN {table} ON {table}.{key} = alarms.ref
WHERE alarms.kind = '{kind}' AND alarms.priority = {{priority}} AND alarms.parked = 0 AND alarms.due_at <= $1
ORDER BY alarms.due_at, alarms.ref LIMIT $2{{held}}
"""
    merged = f"""
SELECT {", ".join(columns)} FROM (
  SELECT * FROM ({{persons}}) AS persons UNION ALL SELECT * FROM ({{planned}}) AS planned
) AS due ORDER BY rings_at, {key} LIMIT $2
"""

    def statement(held: str) -> str:
        persons, planned = (of_priority.format(priority=priority, held=held) for priority in (0, 1))
        return merged.format(persons=persons, planned=planned)

    return statement(""), statement(" FOR UPDATE SKIP LOCKED")
