"""Publishing: messages into topics, each under a sequence that its topic's counter gives in this very transaction."""

from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

from wakeful.core.instants import Instant
from wakeful.core.workflow_answers import NewMessage
from wakeful.core.workflow_rows import Message, Topic
from wakeful.core.workflow_rules import Flow
from wakeful.ports.store import Tx

Fate: TypeAlias = Literal["published", "updated", "duplicate"]


class Put(NamedTuple):
    """What became of a message that was published."""

    topic: str
    message_id: str
    fate: Fate
    seq: int


def publish(
    tx: Tx, flow: Flow, messages: Sequence[NewMessage], *, run_id: int | None, now: Instant
) -> tuple[Flow, list[Put]]:
    """Write messages. One that is pending gets the new payload and a new sequence; one that was reserved, consumed or
    skipped stays as it is, and is answered as a duplicate. The caller holds the workflow, and saves the flow."""
    if not messages:
        return flow, []
    workflow_id = flow.workflow.workflow_id
    known = tx.messages.by_ids(workflow_id, [(one.topic, one.message_id) for one in messages])
    topics = dict(flow.topics)
    written: dict[tuple[str, str], Message] = {}
    put: list[Put] = []
    for one in messages:
        key = (one.topic, one.message_id)
        before = written.get(key) or known.get(key)
        if before is not None and before.status != "pending":
            put.append(Put(one.topic, one.message_id, "duplicate", before.seq))
            continue
        topic = topics.get(one.topic) or Topic(workflow_id, one.topic, None, 0, 0)
        seq = topic.published + 1
        topics[one.topic] = topic._replace(published=seq)
        if before is None:
            written[key] = Message(
                workflow_id, one.topic, one.message_id, seq, seq, one.payload, "pending", 1, None, run_id, now, now
            )  # fmt: skip
        else:
            written[key] = before._replace(seq=seq, payload=one.payload, published_by=run_id, updated_at=now)
        put.append(Put(one.topic, one.message_id, "published" if before is None else "updated", seq))
    if not written:
        return flow, put
    tx.messages.put_many(list(written.values()))
    return flow._replace(topics=topics), put
