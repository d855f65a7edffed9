"""Publishes messages to topics: one row per consumer, numbered by the topic's counter in the same transaction."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Final, Literal, NamedTuple, TypeAlias

from wakeful.core.returned import Named
from wakeful.core.time.instants import Instant
from wakeful.core.workflow.answers import NewMessage
from wakeful.core.workflow.rows import Subscription, Topic
from wakeful.core.workflow.rules import WorkflowState
from wakeful.features.workflows.message_rows import Message, Messages
from wakeful.features.workflows.views import Name
from wakeful.ports.store import Tx

Fate: TypeAlias = Literal["published", "updated", "duplicate"]

NO_CONSUMER: Final = ""
"""Holds messages published while the topic has no consumer; the next subscriber gets them."""


class Put(NamedTuple):
    """The result of publishing."""

    topic: Name
    message_id: Annotated[str, Named("id")]
    fate: Annotated[Fate, Named("result")]
    seq: int


def publish(
    tx: Tx, flow: WorkflowState, messages: Sequence[NewMessage], *, run_id: int | None, now: Instant
) -> tuple[WorkflowState, list[Put]]:
    """Write messages for each consumer of their topics. A pending one gets the new payload and a new sequence; a
    reserved, consumed or skipped one is unchanged. The caller holds the workflow's lock, and saves the flow."""
    if not messages:
        return flow, []
    known = tx[Messages].by_ids(
        flow.workflow.workflow_id, [(message.topic, message.message_id) for message in messages]
    )
    writing = _Writing(flow, known, run_id, now)
    put = [writing.put(message) for message in messages]
    if not writing.written:
        return flow, put
    rows = list(writing.written.values())
    changed = {(row.topic, row.message_id) for row in rows if not _has_payload(known, row)}
    tx[Messages].put_many([row for row in rows if (row.topic, row.message_id) in changed])
    tx[Messages].save_many([row for row in rows if (row.topic, row.message_id) not in changed])
    return flow._replace(topics=writing.topics, subscriptions=writing.subscriptions), put


class _Writing:
    """Builds the rows of one publish, which may contain the same message twice."""

    def __init__(
        self,
        flow: WorkflowState,
        known: Mapping[tuple[str, str], Mapping[str, Message]],
        run_id: int | None,
        now: Instant,
    ) -> None:
        self._flow = flow
        self._known = known
        self._run_id = run_id
        self._now = now
        self.topics = dict(flow.topics)
        self.subscriptions = dict(flow.subscriptions)
        self.written: dict[tuple[str, str, str], Message] = {}

    def put(self, message: NewMessage) -> Put:
        known = self._known.get((message.topic, message.message_id), {})
        before = {consumer: self._before(message, consumer, known) for consumer in self._readers(message.topic)}
        changed = [self._write(message, consumer, row) for consumer, row in before.items() if _is_open(row)]
        if not changed:
            return Put(message.topic, message.message_id, "duplicate", max(stored.seq for stored in known.values()))
        is_new = not known and not any(before.values())
        return Put(message.topic, message.message_id, "published" if is_new else "updated", changed[-1].seq)

    def _readers(self, topic: str) -> list[str]:
        return [subscription.consumer for subscription in self._flow.readers_of(topic)] or [NO_CONSUMER]

    def _before(self, message: NewMessage, consumer: str, known: Mapping[str, Message]) -> Message | None:
        return self.written.get((message.topic, consumer, message.message_id)) or known.get(consumer)

    def _write(self, message: NewMessage, consumer: str, before: Message | None) -> Message:
        workflow_id, key = self._flow.workflow.workflow_id, (message.topic, consumer)
        topic = self.topics.get(message.topic) or Topic(workflow_id, message.topic, 0)
        seq = topic.published + 1
        self.topics[message.topic] = topic._replace(published=seq)
        subscription = self.subscriptions.get(key) or Subscription(workflow_id, message.topic, consumer, 0, 0, 0)
        self.subscriptions[key] = subscription._replace(published=seq)
        if before is None:
            row = Message(
                workflow_id, message.topic, consumer, message.message_id, seq, seq, message.payload,
                "pending", 1, None, self._run_id, self._now, self._now,
            )  # fmt: skip
        else:
            row = before._replace(seq=seq, payload=message.payload, published_by=self._run_id, updated_at=self._now)
        self.written[message.topic, consumer, message.message_id] = row
        return row


def _has_payload(known: Mapping[tuple[str, str], Mapping[str, Message]], row: Message) -> bool:
    """Whether the message is stored for this consumer with this payload."""
    stored = known.get((row.topic, row.message_id), {}).get(row.consumer)
    return stored is not None and stored.payload == row.payload


def _is_open(before: Message | None) -> bool:
    """Whether publishing changes it: it is new for its consumer, or still pending."""
    return before is None or before.status == "pending"
