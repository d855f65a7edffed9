"""Stored responses for repeated requests."""

from wakeful.ports.store import Answer
from wakeful.stores.shared.database import Database, Table

_ANSWERS = Table("answers", Answer, key=("key",))

# A stored response by its key.
GET = f"SELECT {_ANSWERS.columns} FROM answers WHERE key = :key"

# Delete what is too old, and all but the newest that fit. Rows that another node has locked are left to it.
PRUNE = """
DELETE FROM answers WHERE key IN (
  SELECT answers.key FROM answers JOIN (
    SELECT key, answered_at,
      row_number() OVER newest AS place, sum(size) OVER newest AS total
    FROM answers WINDOW newest AS (ORDER BY answered_at DESC, key ROWS UNBOUNDED PRECEDING)
  ) AS aged ON aged.key = answers.key
  WHERE aged.answered_at <= :before OR aged.place > :most OR aged.total > :size_max
  ORDER BY answers.key FOR UPDATE OF answers SKIP LOCKED
)
"""

# Claim a key, unless another process has it. Of two concurrent claims, the later sees the row of the first.
BEGIN = """
INSERT INTO askings (key, asker, until) VALUES (:key, :asker, :until)
ON CONFLICT (key) DO UPDATE SET asker = excluded.asker, until = excluded.until
WHERE askings.asker = excluded.asker OR askings.until < :now
RETURNING key
"""

# Release a key.
RELEASE = "DELETE FROM askings WHERE key = :key AND asker = :asker"

# Delete expired claims.
FORGET = "DELETE FROM askings WHERE until <= :before"


class SharedAnswers:
    """See `ports.store.Answers`."""

    __slots__ = ("_db",)

    def __init__(self, db: Database) -> None:
        self._db = db

    def begin(self, key: str, asker: str, *, now: int, until: int) -> bool:
        return bool(self._db.rows(BEGIN, key=key, asker=asker, until=until, now=now))

    def release(self, key: str, asker: str) -> None:
        self._db.change(RELEASE, key=key, asker=asker)

    def get(self, key: str) -> Answer | None:
        return next(map(Answer._make, self._db.rows(GET, key=key)), None)

    def put(self, row: Answer) -> None:
        self._db.upsert(_ANSWERS, [row])

    def prune(self, *, before: int, most: int, size_max: int) -> int:
        self._db.change(FORGET, before=before)
        return self._db.change(PRUNE, before=before, most=most, size_max=size_max)
