"""Rows whose alarm is due, in SQLite."""


def due_of(kind: str, table: str, key: str, columns: str) -> str:
    """Rows of a table whose alarms of one kind are due by `:now`, oldest first, at most `:limit`.

    One seek for each priority, merged."""
    of_priority = f"""
  SELECT ref, due_at FROM alarms INDEXED BY alarms_due
  WHERE kind = '{kind}' AND priority = {{priority}} AND parked = 0 AND due_at IS NOT NULL AND due_at <= :now"""
    return f"""
WITH due AS ({of_priority.format(priority=0)}
  UNION ALL{of_priority.format(priority=1)}
  ORDER BY due_at, ref LIMIT :limit
)
SELECT {columns} FROM due CROSS JOIN {table} ON {table}.{key} = due.ref ORDER BY due.due_at, due.ref
"""
