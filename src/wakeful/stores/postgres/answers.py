"""Stored responses for repeated requests, in PostgreSQL."""

from wakeful.ports.store import Answer
from wakeful.stores.postgres.connection import Session
from wakeful.stores.postgres.rows import columns_of

_COLUMNS = columns_of(Answer, "answers")

# A stored response by its key.
GET = f"SELECT {_COLUMNS} FROM answers WHERE key = $1"

# Store a response, replacing an older one with that key.
PUT = """
INSERT INTO answers (key, fingerprint, answer, size, answered_at) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (key) DO UPDATE SET fingerprint = excluded.fingerprint, answer = excluded.answer, size = excluded.size,
  answered_at = excluded.answered_at
"""

# Delete what is too old, and all but the newest that fit. Rows that another node has locked are left to it.
PRUNE = """
DELETE FROM answers WHERE key IN (
  SELECT answers.key FROM answers JOIN (
    SELECT key, answered_at,
      row_number() OVER newest AS place, sum(size) OVER newest AS total
    FROM answers WINDOW newest AS (ORDER BY answered_at DESC, key ROWS UNBOUNDED PRECEDING)
  ) AS aged ON aged.key = answers.key
  WHERE aged.answered_at <= $1 OR aged.place > $2 OR aged.total > $3
  ORDER BY answers.key FOR UPDATE OF answers SKIP LOCKED
)
"""

# Claim a key, unless another process has it. Of two concurrent claims, the later sees the row of the first.
BEGIN = """
INSERT INTO askings (key, asker, until) VALUES ($1, $2, $3)
ON CONFLICT (key) DO UPDATE SET asker = excluded.asker, until = excluded.until
WHERE askings.asker = excluded.asker OR askings.until < $4
RETURNING key
"""

# Release a key.
RELEASE = "DELETE FROM askings WHERE key = $1 AND asker = $2"

# Delete expired claims.
FORGET = "DELETE FROM askings WHERE until <= $1"


class PostgresAnswers:
    """See `ports.store.Answers`."""

    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    def begin(self, key: str, asker: str, *, now: int, until: int) -> bool:
        return bool(self._session.rows(BEGIN, key, asker, until, now))

    def release(self, key: str, asker: str) -> None:
        self._session.change(RELEASE, key, asker)

    def get(self, key: str) -> Answer | None:
        found = self._session.rows(GET, key)
        return Answer._make(found[0]) if found else None

    def put(self, row: Answer) -> None:
        self._session.change(PUT, *row)

    def prune(self, *, before: int, most: int, size_max: int) -> int:
        self._session.change(FORGET, before)
        return self._session.change(PRUNE, before, most, size_max)
