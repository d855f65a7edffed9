"""Stored responses for repeated requests, in SQLite."""

from sqlite3 import Connection

from wakeful.ports.store import Answer
from wakeful.stores.sqlite.rows import columns_of

_COLUMNS = columns_of(Answer, "answers")

# A stored response by its key.
GET = f"SELECT {_COLUMNS} FROM answers WHERE key = ?"

# Store a response, replacing an older one with that key.
PUT = """
INSERT INTO answers (key, fingerprint, answer, size, answered_at) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (key) DO UPDATE SET fingerprint = excluded.fingerprint, answer = excluded.answer, size = excluded.size,
  answered_at = excluded.answered_at
"""

# Delete what is too old, and all but the newest that fit.
PRUNE = """
DELETE FROM answers WHERE key IN (
  SELECT key FROM (
    SELECT key, answered_at,
      row_number() OVER newest AS place, sum(size) OVER newest AS total
    FROM answers WINDOW newest AS (ORDER BY answered_at DESC, key ROWS UNBOUNDED PRECEDING)
  ) WHERE answered_at <= ? OR place > ? OR total > ?
)
"""

# Claim a key, unless another process has it. Of two concurrent claims, the later sees the row of the first.
BEGIN = """
INSERT INTO askings (key, asker, until) VALUES (?, ?, ?)
ON CONFLICT (key) DO UPDATE SET asker = excluded.asker, until = excluded.until
WHERE askings.asker = excluded.asker OR askings.until < ?
RETURNING key
"""

# Release a key.
RELEASE = "DELETE FROM askings WHERE key = ? AND asker = ?"

# Delete expired claims.
FORGET = "DELETE FROM askings WHERE until <= ?"


class SqliteAnswers:
    """See `ports.store.Answers`."""

    __slots__ = ("_connection",)

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def begin(self, key: str, asker: str, *, now: int, until: int) -> bool:
        return self._connection.execute(BEGIN, (key, asker, until, now)).fetchone() is not None

    def release(self, key: str, asker: str) -> None:
        self._connection.execute(RELEASE, (key, asker))

    def get(self, key: str) -> Answer | None:
        found = self._connection.execute(GET, (key,)).fetchone()
        return None if found is None else Answer._make(found)

    def put(self, row: Answer) -> None:
        self._connection.execute(PUT, tuple(row))

    def prune(self, *, before: int, most: int, size_max: int) -> int:
        self._connection.execute(FORGET, (before,))
        return self._connection.execute(PRUNE, (before, most, size_max)).rowcount
