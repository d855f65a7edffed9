"""Stored responses for repeated requests, and which process is about to produce one."""

from typing import NamedTuple

from wakeful.core.time.instants import Instant
from wakeful.ports.table import Rows


class Answer(NamedTuple):
    """The response to a request with a key, returned again when the request is repeated."""

    key: str
    fingerprint: str  # of the request: a different request with the same key is an error
    answer: str
    size: int  # in bytes
    answered_at: Instant


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


class Answers(Rows[Answer]):
    """Stored responses by key, and claims of keys."""

    row, table, key = Answer, "answers", "key"

    def begin(self, key: str, asker: str, *, now: Instant, until: Instant) -> bool:
        """Whether this process produces the response for the key, exclusively before `until`; calling it again extends
        that. Of several callers at the same time, on any node, one gets it."""
        return bool(self._db.rows(BEGIN, key=key, asker=asker, until=until, now=now))

    def release(self, key: str, asker: str) -> None:
        """Give up the key: the response is stored, or may be tried again."""
        self._db.change(RELEASE, key=key, asker=asker)

    def prune_to(self, *, before: Instant, most: int, size_max: int) -> int:
        """Delete responses up to `before`, and all but the newest `most` that fit into `size_max`; returns how many.
        Also deletes expired claims of processes that never responded."""
        self._db.change(FORGET, before=before)
        return self._db.change(PRUNE, before=before, most=most, size_max=size_max)
