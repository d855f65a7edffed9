"""The messages of topics: one row for each consumer of the topic."""

from collections.abc import Iterable, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

from wakeful.core.time.instants import Instant
from wakeful.features.workflows.payload_rows import SHARED, Payload, Payloads
from wakeful.ports.database import PerDatabase, Table, columns_of, fields_of, grouped
from wakeful.ports.table import Rows

MessageStatus: TypeAlias = Literal["pending", "reserved", "consumed", "skipped"]

SubscriptionKey: TypeAlias = tuple[int, str, str]
"""A workflow's id, the name of one of its topics, and the name of a consumer of that topic."""


class Message(NamedTuple):
    """One message of a topic, for one of its consumers."""

    workflow_id: int
    topic: str
    consumer: str  # empty: it was published when no consumer read the topic
    message_id: str  # unique in its topic, for each consumer
    place: int  # the sequence it was first published under, which is the reading order
    seq: int  # the sequence it was last published or released under
    payload: str  # JSON
    status: MessageStatus
    attempt: int  # how many times it was reserved, including this time
    run_id: int | None  # the run that reserved, consumed or skipped it
    published_by: int | None  # the run that published it; None: a person
    published_at: Instant
    updated_at: Instant
    payload_seq: int | None = None  # as stored: of the shared payload; as read: None, and the payload is here


class Waiting(NamedTuple):
    """A subscription whose messages have been pending for a long time."""

    workflow: str
    topic: str
    consumer: str
    is_active: int
    since: Instant  # of the oldest


_KEY: Final = ("workflow_id", "topic", "message_id", "consumer")
# The columns of a message that change after it was published.
_MOVED: Final = ("seq", "status", "attempt", "run_id", "published_by", "updated_at")
_WHOLE: Final = Table("messages", Message, key=_KEY)

# The columns of a message, wherever its payload is.
_COLUMNS = (
    columns_of(Message, "messages")
    .replace("messages.payload_seq", "NULL")
    .replace(
        "messages.payload,",
        f"""CASE WHEN messages.payload <> '{SHARED}' THEN messages.payload ELSE (
  SELECT payloads.payload FROM payloads
  WHERE payloads.workflow_id = messages.workflow_id AND payloads.topic = messages.topic
    AND payloads.message_id = messages.message_id AND payloads.seq = messages.payload_seq
) END,""",
    )
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

# Consumers with pending messages: one lookup per subscription.
WITH_PENDING = """
WITH busy AS (
  SELECT subscriptions.workflow_id, subscriptions.consumer FROM subscriptions
  JOIN workflows ON workflows.workflow_id = subscriptions.workflow_id AND workflows.deleted_at IS NULL
  WHERE subscriptions.workflow_id > :after_id AND subscriptions.is_active = 1 AND EXISTS (
    SELECT 1 FROM messages INDEXED BY messages_status
    WHERE messages.workflow_id = subscriptions.workflow_id AND messages.topic = subscriptions.topic
      AND messages.consumer = subscriptions.consumer AND messages.status = 'pending'
  )
)
SELECT DISTINCT workflow_id, consumer FROM busy
WHERE workflow_id IN (SELECT DISTINCT workflow_id FROM busy ORDER BY workflow_id LIMIT :limit)
ORDER BY workflow_id, consumer
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

# Delete messages of deleted workflows that have no open run. They are found by their place in the table.
_DELETED = """
  SELECT messages.{place} FROM workflows JOIN messages ON messages.workflow_id = workflows.workflow_id
  WHERE deleted_at IS NOT NULL AND open_run_id IS NULL LIMIT :limit
"""
_KEYS = "RETURNING workflow_id, topic, message_id"
FORGET_DELETED = PerDatabase(
    sqlite=f"DELETE FROM messages WHERE rowid IN ({_DELETED.format(place='rowid')}) {_KEYS}",
    postgres=f"DELETE FROM messages WHERE ctid = ANY(ARRAY({_DELETED.format(place='ctid')})) {_KEYS}",
)

# Delete messages that these runs settled.
FORGET_SETTLED = (
    f"DELETE FROM messages WHERE run_id IN :run_ids AND (status = 'consumed' OR status = 'skipped') {_KEYS}"
)


class Messages(Rows[Message]):
    """The messages of topics, with their payloads."""

    row, table, key = Message, "messages", ", ".join(_KEY)
    fixed = tuple(name for name in fields_of(Message) if name not in _KEY + _MOVED)

    def by_ids(self, workflow_id: int, keys: Iterable[tuple[str, str]]) -> dict[tuple[str, str], dict[str, Message]]:
        """Messages by topic and id, and then by consumer."""
        wanted = set(keys)
        topics, message_ids = {topic for topic, _ in wanted}, {message_id for _, message_id in wanted}
        found: dict[tuple[str, str], dict[str, Message]] = {}
        for row in self._made(self._db.rows(BY_IDS, workflow_id=workflow_id, topics=topics, message_ids=message_ids)):
            if (row.topic, row.message_id) in wanted:
                found.setdefault((row.topic, row.message_id), {})[row.consumer] = row
        return found

    def put_many(self, rows: Sequence[Message]) -> None:
        """Write messages, new or existing. A payload that several consumers get is stored once."""
        payloads = Payloads(self._db)
        seqs = payloads.share([Payload(*_key(row), row.seq, row.payload) for row in rows])
        stored = [
            row if seq is None else row._replace(payload=SHARED, payload_seq=seq)
            for row, seq in zip(rows, seqs, strict=True)
        ]
        self._db.upsert(_WHOLE, stored)
        payloads.forget_unused({_key(row) for row in rows if row.seq != row.place})  # published again

    def save_many(self, rows: Sequence[Message]) -> None:
        """Write the columns of existing messages that change while their payload does not."""
        super().put_many(rows)

    def pending(
        self, workflow_id: int, topic: str, consumer: str, *, after_place: int = 0, limit: int
    ) -> list[Message]:
        """The pending messages of a consumer in a topic, oldest first, after a place."""
        rows = self._db.rows(
            PENDING, workflow_id=workflow_id, topic=topic, consumer=consumer, after_place=after_place, limit=limit
        )
        return self._made(rows)

    def hand_over(self, workflow_id: int, topic: str, consumer: str, heir: str) -> int:
        """Move the messages of a consumer in a topic, in any status, to another consumer, except those it already has;
        returns how many the other then has pending."""
        self._db.change(HAND_OVER, workflow_id=workflow_id, topic=topic, consumer=consumer, heir=heir)
        ((pending,),) = self._db.rows(COUNT_PENDING, workflow_id=workflow_id, topic=topic, consumer=heir)
        return int(pending)

    def of_run(self, run_id: int) -> list[Message]:
        """The messages a run has reserved, in the order of their places."""
        return self._made(self._db.rows(OF_RUN, run_id=run_id))

    def oldest(self, workflow_ids: Iterable[int]) -> dict[SubscriptionKey, Instant]:
        """For each subscription with pending messages, the time of the oldest."""
        rows = self._db.rows(OLDEST, workflow_ids=workflow_ids)
        return {(workflow_id, topic, consumer): since for workflow_id, topic, consumer, since in rows}

    def waiting_since(self, *, before: Instant, limit: int) -> list[Waiting]:
        """Subscriptions of active workflows whose oldest pending message was published before a time, oldest first."""
        return list(map(Waiting._make, self._db.rows(WAITING_SINCE, before=before, limit=limit)))

    def with_pending(self, *, after_id: int, limit: int) -> dict[int, list[str]]:
        """Consumers that subscribe and have pending messages, by workflow, for at most `limit` existing workflows
        after an id."""
        return grouped(self._db.rows(WITH_PENDING, after_id=after_id, limit=limit))

    def counts(self, workflow_ids: Iterable[int]) -> dict[SubscriptionKey, dict[MessageStatus, int]]:
        """The number of messages by status, for every consumer of every topic of these workflows, in one query."""
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
        """Messages of a topic in the order of their places, optionally only of one status or one consumer."""
        rows = self._db.rows(
            PAGE,
            workflow_id=workflow_id,
            topic=topic,
            after_place=after_place,
            limit=limit,
            status=status,
            consumer=consumer,
        )
        return self._made(rows)

    def forget_settled(self, run_ids: Iterable[int]) -> None:
        """Delete the messages that these runs consumed or skipped."""
        Payloads(self._db).forget_unused(self._db.change_returning(FORGET_SETTLED, run_ids=run_ids))

    def forget_deleted(self, *, limit: int) -> int:
        """Delete up to `limit` messages of deleted workflows; returns how many."""
        gone = self._db.change_returning(FORGET_DELETED, limit=limit)
        Payloads(self._db).forget_unused(gone)
        return len(gone)


def _key(row: Message) -> tuple[int, str, str]:
    return row.workflow_id, row.topic, row.message_id
