"""The messages of topics, in PostgreSQL."""

from collections.abc import Iterable, Sequence
from typing import Final

from wakeful.core.time.instants import Instant
from wakeful.core.workflow.rows import Message, MessageStatus
from wakeful.ports.workflows import SubscriptionKey, Waiting
from wakeful.stores.postgres.connection import Session
from wakeful.stores.postgres.rows import arrays, columns_of, ids, text_array, upsert_into

_COLUMNS = columns_of(Message, "messages")
_TEXTS: Final = frozenset({"topic", "consumer", "message_id", "payload", "status"})

# Messages by topic and id.
BY_IDS = f"""
SELECT {_COLUMNS} FROM unnest($2::text[], $3::text[]) AS wanted (topic, message_id)
JOIN messages ON messages.workflow_id = $1 AND messages.topic = wanted.topic
  AND messages.message_id = wanted.message_id
"""

# Insert or update messages.
PUT = upsert_into("messages", Message, _TEXTS, key=("workflow_id", "topic", "message_id", "consumer"))

# The pending messages of a consumer in a topic, oldest first.
PENDING = f"""
SELECT {_COLUMNS} FROM messages
WHERE workflow_id = $1 AND topic = $2 AND consumer = $3 AND status = 'pending' AND place > $4 ORDER BY place LIMIT $5
"""

# Move all messages of a consumer in a topic to another consumer, except those it already has.
HAND_OVER = """
UPDATE messages SET consumer = $1 WHERE workflow_id = $2 AND topic = $3 AND consumer = $4 AND NOT EXISTS (
  SELECT 1 FROM messages AS own
  WHERE own.workflow_id = $2 AND own.topic = $3 AND own.message_id = messages.message_id AND own.consumer = $1
)
"""
COUNT_PENDING = """
SELECT count(*) FROM messages WHERE workflow_id = $1 AND topic = $2 AND consumer = $3 AND status = 'pending'
"""

# The messages a run has reserved.
OF_RUN = f"SELECT {_COLUMNS} FROM messages WHERE run_id = $1 AND status = 'reserved' ORDER BY topic, place"

_OLDEST = """CROSS JOIN LATERAL (
  SELECT published_at FROM messages
  WHERE messages.workflow_id = subscriptions.workflow_id AND messages.topic = subscriptions.topic
    AND messages.consumer = subscriptions.consumer AND messages.status = 'pending'
  ORDER BY place LIMIT 1
) AS oldest"""

# The oldest pending message of each subscription: one index seek each.
OLDEST = f"""
SELECT subscriptions.workflow_id, subscriptions.topic, subscriptions.consumer, oldest.published_at
FROM subscriptions {_OLDEST} WHERE subscriptions.workflow_id = ANY($1::bigint[])
"""

# Subscriptions of active workflows whose oldest pending message is too old.
WAITING_SINCE = f"""
SELECT workflows.name, subscriptions.topic, subscriptions.consumer, subscriptions.is_active, oldest.published_at
FROM workflows JOIN subscriptions ON subscriptions.workflow_id = workflows.workflow_id {_OLDEST}
WHERE workflows.deleted_at IS NULL AND workflows.status = 'active' AND oldest.published_at < $1
ORDER BY oldest.published_at, workflows.name, subscriptions.topic, subscriptions.consumer LIMIT $2
"""

# Counts by status, for all topics and consumers of these workflows.
COUNTS = """
SELECT workflow_id, topic, consumer, status, count(*) FROM messages WHERE workflow_id = ANY($1::bigint[])
GROUP BY workflow_id, topic, consumer, status
"""

# Messages of a topic in the order of their places.
PAGE = f"""
SELECT {_COLUMNS} FROM messages WHERE workflow_id = $1 AND topic = $2 AND place > $3
  AND ($4::text IS NULL OR status = $4) AND ($5::text IS NULL OR consumer = $5)
ORDER BY place LIMIT $6
"""


class PostgresMessages:
    """See `ports.workflows.Messages`."""

    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    def by_ids(self, workflow_id: int, keys: Iterable[tuple[str, str]]) -> dict[tuple[str, str], dict[str, Message]]:
        wanted = sorted(set(keys))
        if not wanted:
            return {}
        topics, message_ids = zip(*wanted, strict=True)
        rows = self._session.rows(BY_IDS, workflow_id, text_array(topics), text_array(message_ids))
        found: dict[tuple[str, str], dict[str, Message]] = {}
        for row in map(Message._make, rows):
            found.setdefault((row.topic, row.message_id), {})[row.consumer] = row
        return found

    def put_many(self, rows: Sequence[Message]) -> None:
        if rows:
            self._session.change(PUT, *arrays(rows, Message, _TEXTS))

    def save_many(self, rows: Sequence[Message]) -> None:
        # The same statement: it finds the row by its key, whatever the planner assumes. A join might scan the table.
        self.put_many(rows)

    def pending(
        self, workflow_id: int, topic: str, consumer: str, *, after_place: int = 0, limit: int
    ) -> list[Message]:
        rows = self._session.rows(PENDING, workflow_id, topic, consumer, after_place, limit)
        return list(map(Message._make, rows))

    def hand_over(self, workflow_id: int, topic: str, consumer: str, heir: str) -> int:
        self._session.change(HAND_OVER, heir, workflow_id, topic, consumer)
        ((pending,),) = self._session.rows(COUNT_PENDING, workflow_id, topic, heir)
        return int(pending)

    def of_run(self, run_id: int) -> list[Message]:
        return list(map(Message._make, self._session.rows(OF_RUN, run_id)))

    def oldest(self, workflow_ids: Iterable[int]) -> dict[SubscriptionKey, Instant]:
        rows = self._session.rows(OLDEST, ids(set(workflow_ids)))
        return {(workflow_id, topic, consumer): since for workflow_id, topic, consumer, since in rows}

    def waiting_since(self, *, before: Instant, limit: int) -> list[Waiting]:
        return list(map(Waiting._make, self._session.rows(WAITING_SINCE, before, limit)))

    def counts(self, workflow_ids: Iterable[int]) -> dict[SubscriptionKey, dict[MessageStatus, int]]:
        found: dict[SubscriptionKey, dict[MessageStatus, int]] = {}
        rows = self._session.rows(COUNTS, ids(set(workflow_ids)))
        for workflow_id, topic, consumer, status, count in rows:
            found.setdefault((workflow_id, topic, consumer), {})[status] = int(count)
        return found

    def page(
        self,
        workflow_id: int,
        topic: str,
        *,
        after_place: int,
        limit: int,
        status: MessageStatus | None = None,
        consumer: str | None = None,
    ) -> list[Message]:
        rows = self._session.rows(PAGE, workflow_id, topic, after_place, status, consumer, limit)
        return list(map(Message._make, rows))
