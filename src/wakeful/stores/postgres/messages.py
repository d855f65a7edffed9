"""The messages of topics, in PostgreSQL."""

from collections.abc import Iterable, Sequence
from typing import Final

from wakeful.core.instants import Instant
from wakeful.core.workflow_rows import Message, MessageStatus
from wakeful.ports.workflows import TopicKey
from wakeful.stores.postgres.connection import Session
from wakeful.stores.postgres.rows import arrays, columns_of, ids, text_array, upsert_into

_COLUMNS = columns_of(Message, "messages")
_TEXTS: Final = frozenset({"topic", "message_id", "payload", "status"})

# Messages by topic and id.
BY_IDS = f"""
SELECT {_COLUMNS} FROM unnest($2::text[], $3::text[]) AS wanted (topic, message_id)
JOIN messages ON messages.workflow_id = $1 AND messages.topic = wanted.topic
  AND messages.message_id = wanted.message_id
"""

# Write messages, new or known.
PUT = upsert_into("messages", Message, _TEXTS, key=("workflow_id", "topic", "message_id"))

# The pending messages of a topic, oldest first.
PENDING = f"""
SELECT {_COLUMNS} FROM messages
WHERE workflow_id = $1 AND topic = $2 AND status = 'pending' ORDER BY place LIMIT $3
"""

# What a run holds in reservation.
OF_RUN = f"SELECT {_COLUMNS} FROM messages WHERE run_id = $1 AND status = 'reserved' ORDER BY topic, place"

# The oldest pending message of each topic: one seek each.
OLDEST = """
SELECT topics.workflow_id, topics.name, oldest.published_at FROM topics CROSS JOIN LATERAL (
  SELECT published_at FROM messages
  WHERE messages.workflow_id = topics.workflow_id AND messages.topic = topics.name AND messages.status = 'pending'
  ORDER BY place LIMIT 1
) AS oldest
WHERE topics.workflow_id = ANY($1::bigint[])
"""

# How many of each status, for all topics of these workflows.
COUNTS = """
SELECT workflow_id, topic, status, count(*) FROM messages WHERE workflow_id = ANY($1::bigint[])
GROUP BY workflow_id, topic, status
"""

# Messages of a topic in the order of their places.
PAGE = f"""
SELECT {_COLUMNS} FROM messages WHERE workflow_id = $1 AND topic = $2 AND place > $3 ORDER BY place LIMIT $4
"""


class PostgresMessages:
    """See `ports.workflows.Messages`."""

    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    def by_ids(self, workflow_id: int, keys: Iterable[tuple[str, str]]) -> dict[tuple[str, str], Message]:
        wanted = sorted(set(keys))
        if not wanted:
            return {}
        topics, message_ids = zip(*wanted, strict=True)
        found = self._session.rows(BY_IDS, workflow_id, text_array(topics), text_array(message_ids))
        return {(row.topic, row.message_id): row for row in map(Message._make, found)}

    def put_many(self, rows: Sequence[Message]) -> None:
        if rows:
            self._session.change(PUT, *arrays(rows, Message, _TEXTS))

    def save_many(self, rows: Sequence[Message]) -> None:
        # The same statement: it seeks by the key, whatever the planner believes of the table. A join might scan it.
        self.put_many(rows)

    def pending(self, workflow_id: int, topic: str, *, limit: int) -> list[Message]:
        return list(map(Message._make, self._session.rows(PENDING, workflow_id, topic, limit)))

    def of_run(self, run_id: int) -> list[Message]:
        return list(map(Message._make, self._session.rows(OF_RUN, run_id)))

    def oldest(self, workflow_ids: Iterable[int]) -> dict[TopicKey, Instant]:
        rows = self._session.rows(OLDEST, ids(set(workflow_ids)))
        return {(workflow_id, topic): since for workflow_id, topic, since in rows}

    def counts(self, workflow_ids: Iterable[int]) -> dict[TopicKey, dict[MessageStatus, int]]:
        found: dict[TopicKey, dict[MessageStatus, int]] = {}
        for workflow_id, topic, status, count in self._session.rows(COUNTS, ids(set(workflow_ids))):
            found.setdefault((workflow_id, topic), {})[status] = int(count)
        return found

    def page(self, workflow_id: int, topic: str, *, after_place: int, limit: int) -> list[Message]:
        return list(map(Message._make, self._session.rows(PAGE, workflow_id, topic, after_place, limit)))
