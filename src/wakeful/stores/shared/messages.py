"""The messages of topics."""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from wakeful.core.time.instants import Instant
from wakeful.core.workflow.rows import Message, MessageStatus
from wakeful.ports.database import Database, Table, fields_of
from wakeful.ports.workflows import MOVED_COLUMNS, SubscriptionKey, Waiting
from wakeful.stores.shared.payloads import MESSAGE_COLUMNS as _COLUMNS
from wakeful.stores.shared.payloads import forget_unused, share_payloads


class _Stored(NamedTuple):
    """The columns of a message, and the key of its payload if that is a shared one."""

    workflow_id: int
    topic: str
    consumer: str
    message_id: str
    place: int
    seq: int
    payload: str
    status: MessageStatus
    attempt: int
    run_id: int | None
    published_by: int | None
    published_at: Instant
    updated_at: Instant
    payload_seq: int | None


_KEY: Final = ("workflow_id", "topic", "message_id", "consumer")
_MESSAGES = Table("messages", _Stored, key=_KEY)
_MOVED = Table(
    "messages", Message, key=_KEY, fixed=tuple(name for name in fields_of(Message) if name not in _KEY + MOVED_COLUMNS)
)

# Messages by topics and ids.
BY_IDS = f"""
SELECT {_COLUMNS} FROM messages
WHERE workflow_id = :workflow_id AND topic IN :topics AND message_id IN :message_ids
"""

# The pending messages of a consumer in a topic, oldest first.
PENDING = f"""
SELECT {_COLUMNS} FROM messages INDEXED BY messages_status
WHERE workflow_id = :workflow_id AND topic = :topic AND consumer = :consumer AND status = 'pending'
  AND place > :after_place
ORDER BY place LIMIT :limit
"""

# Move all messages of a consumer in a topic to another consumer, except those it already has.
HAND_OVER = """
UPDATE messages SET consumer = :heir
WHERE workflow_id = :workflow_id AND topic = :topic AND consumer = :consumer AND NOT EXISTS (
  SELECT 1 FROM messages AS own
  WHERE own.workflow_id = :workflow_id AND own.topic = :topic AND own.message_id = messages.message_id
    AND own.consumer = :heir
)
"""
COUNT_PENDING = """
SELECT count(*) FROM messages INDEXED BY messages_status
WHERE workflow_id = :workflow_id AND topic = :topic AND consumer = :consumer AND status = 'pending'
"""

# The messages a run has reserved.
OF_RUN = f"""
SELECT {_COLUMNS} FROM messages INDEXED BY messages_of_run
WHERE run_id = :run_id AND status = 'reserved' ORDER BY topic, place
"""

_OLDEST = """(
  SELECT published_at FROM messages INDEXED BY messages_status
  WHERE messages.workflow_id = subscriptions.workflow_id AND messages.topic = subscriptions.topic
    AND messages.consumer = subscriptions.consumer AND messages.status = 'pending'
  ORDER BY place LIMIT 1
) AS since"""

# The oldest pending message of each subscription: one index seek each.
OLDEST = f"""
SELECT workflow_id, topic, consumer, since FROM (
  SELECT subscriptions.workflow_id, subscriptions.topic, subscriptions.consumer, {_OLDEST}
  FROM subscriptions WHERE subscriptions.workflow_id IN :workflow_ids
) AS oldest WHERE since IS NOT NULL
"""

# Subscriptions of active workflows whose oldest pending message is too old.
WAITING_SINCE = f"""
SELECT name, topic, consumer, is_active, since FROM (
  SELECT workflows.name, subscriptions.topic, subscriptions.consumer, subscriptions.is_active, {_OLDEST}
  FROM workflows JOIN subscriptions ON subscriptions.workflow_id = workflows.workflow_id
  WHERE workflows.deleted_at IS NULL AND workflows.status = 'active'
) AS oldest WHERE since < :before ORDER BY since, name, topic, consumer LIMIT :limit
"""

# Counts by status, for all topics and consumers of these workflows: one index scan.
COUNTS = """
SELECT workflow_id, topic, consumer, status, count(*) FROM messages INDEXED BY messages_status
WHERE workflow_id IN :workflow_ids GROUP BY workflow_id, topic, consumer, status
"""

# Messages of a topic in the order of their places.
PAGE = f"""
SELECT {_COLUMNS} FROM messages WHERE workflow_id = :workflow_id AND topic = :topic AND place > :after_place
  AND (CAST(:status AS text) IS NULL OR status = :status)
  AND (CAST(:consumer AS text) IS NULL OR consumer = :consumer)
ORDER BY place LIMIT :limit
"""


class SharedMessages:
    """See `ports.workflows.Messages`."""

    __slots__ = ("_db",)

    def __init__(self, db: Database) -> None:
        self._db = db

    def by_ids(self, workflow_id: int, keys: Iterable[tuple[str, str]]) -> dict[tuple[str, str], dict[str, Message]]:
        wanted = set(keys)
        topics, message_ids = {topic for topic, _ in wanted}, {message_id for _, message_id in wanted}
        found: dict[tuple[str, str], dict[str, Message]] = {}
        rows = self._db.rows(BY_IDS, workflow_id=workflow_id, topics=topics, message_ids=message_ids)
        for row in map(Message._make, rows):
            if (row.topic, row.message_id) in wanted:
                found.setdefault((row.topic, row.message_id), {})[row.consumer] = row
        return found

    def put_many(self, rows: Sequence[Message]) -> None:
        self._db.upsert(_MESSAGES, [_Stored(*row, seq) for row, seq in share_payloads(self._db, rows)])
        forget_unused(self._db, {_key(row) for row in rows if row.seq != row.place})  # published again

    def save_many(self, rows: Sequence[Message]) -> None:
        self._db.upsert(_MOVED, rows)

    def pending(
        self, workflow_id: int, topic: str, consumer: str, *, after_place: int = 0, limit: int
    ) -> list[Message]:
        rows = self._db.rows(
            PENDING, workflow_id=workflow_id, topic=topic, consumer=consumer, after_place=after_place, limit=limit
        )
        return list(map(Message._make, rows))

    def hand_over(self, workflow_id: int, topic: str, consumer: str, heir: str) -> int:
        self._db.change(HAND_OVER, workflow_id=workflow_id, topic=topic, consumer=consumer, heir=heir)
        ((pending,),) = self._db.rows(COUNT_PENDING, workflow_id=workflow_id, topic=topic, consumer=heir)
        return int(pending)

    def of_run(self, run_id: int) -> list[Message]:
        return list(map(Message._make, self._db.rows(OF_RUN, run_id=run_id)))

    def oldest(self, workflow_ids: Iterable[int]) -> dict[SubscriptionKey, Instant]:
        rows = self._db.rows(OLDEST, workflow_ids=workflow_ids)
        return {(workflow_id, topic, consumer): since for workflow_id, topic, consumer, since in rows}

    def waiting_since(self, *, before: Instant, limit: int) -> list[Waiting]:
        return list(map(Waiting._make, self._db.rows(WAITING_SINCE, before=before, limit=limit)))

    def counts(self, workflow_ids: Iterable[int]) -> dict[SubscriptionKey, dict[MessageStatus, int]]:
        found: dict[SubscriptionKey, dict[MessageStatus, int]] = {}
        for workflow_id, topic, consumer, status, count in self._db.rows(COUNTS, workflow_ids=workflow_ids):
            found.setdefault((workflow_id, topic, consumer), {})[status] = count
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
        rows = self._db.rows(
            PAGE,
            workflow_id=workflow_id,
            topic=topic,
            after_place=after_place,
            limit=limit,
            status=status,
            consumer=consumer,
        )
        return list(map(Message._make, rows))


def _key(row: Message) -> tuple[int, str, str]:
    return row.workflow_id, row.topic, row.message_id
