"""Queries that several tables have."""

from wakeful.ports.database import Table, fields_of


def due_of(kind: str, table: Table, *, which: str = "") -> str:
    """Rows of a table whose alarms of one kind are due by `:now`, oldest first, at most `:limit`.

    One index seek per priority, merged; `which` adds a condition. Row and alarm are both locked, without waiting for
    either. A row that was changed after the statement started is evaluated again with its current values: if another
    node has rung it in the meantime, it is no longer due.
    """
    (key,) = table.key
    of_priority = f"""
SELECT alarms.due_at AS rings_at, {table.columns}
FROM alarms INDEXED BY alarms_due CROSS JOIN {table.name}
WHERE alarms.kind = '{kind}' AND alarms.priority = {{priority}} AND alarms.parked = 0 AND alarms.due_at IS NOT NULL
  AND alarms.due_at <= :now AND {table.name}.{key} = alarms.ref{which}
ORDER BY alarms.due_at, alarms.ref LIMIT :limit FOR UPDATE SKIP LOCKED
"""
    return f"""
SELECT {", ".join(fields_of(table.row))} FROM (
  SELECT * FROM ({of_priority.format(priority=0)}) AS persons
  UNION ALL SELECT * FROM ({of_priority.format(priority=1)}) AS planned
) AS due ORDER BY rings_at, {key} LIMIT :limit
"""


def old_of(table: str, *, key: str, dated: str, index: str) -> str:
    """Keys of rows dated before `:before`, oldest first, at most `:limit`. Rows dated before `:since` were written by a
    clock that was not set; they count as old once a later row with a valid date is old."""
    return f"""
SELECT {key} FROM {table} INDEXED BY {index}
WHERE {dated} IS NOT NULL AND {dated} < :before AND ({dated} >= :since OR EXISTS (
  SELECT 1 FROM {table} AS later INDEXED BY {index}
  WHERE later.{dated} >= :since AND later.{dated} < :before AND later.{key} > {table}.{key}
)) ORDER BY {dated} LIMIT :limit
"""
