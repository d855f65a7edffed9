"""Payloads that several consumers of a message share, each stored once.

The row of a consumer has an empty payload then, and the key of the shared one. A text in the row itself is always what
counts: a process of 0.2 that opened the store early publishes into it.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from wakeful.core.workflow.rows import Message
from wakeful.ports.database import Database, PerDatabase, Table, columns_of, grouped
from wakeful.stores.shared.releases import WITHOUT_0_2

_SHARED: Final = ""  # no JSON text is empty


class _Payload(NamedTuple):
    workflow_id: int
    topic: str
    message_id: str
    seq: int  # with which the first of its rows was written
    payload: str


_PAYLOADS = Table("payloads", _Payload, key=("workflow_id", "topic", "message_id", "seq"))

# The columns of a message, wherever its payload is.
MESSAGE_COLUMNS = columns_of(Message, "messages").replace(
    "messages.payload",
    f"""CASE WHEN messages.payload <> '{_SHARED}' THEN messages.payload ELSE (
  SELECT payloads.payload FROM payloads
  WHERE payloads.workflow_id = messages.workflow_id AND payloads.topic = messages.topic
    AND payloads.message_id = messages.message_id AND payloads.seq = messages.payload_seq
) END""",
)

# The schema step, read in each transaction: another process may take it at any time.
STEP = PerDatabase(
    sqlite="SELECT user_version FROM pragma_user_version", postgres="SELECT max(number) FROM schema_version"
)

# Shared payloads of messages, locked: of two transactions that each let go of one row, the second sees both.
LOCK = """
SELECT 1 FROM payloads WHERE workflow_id = :workflow_id AND topic IN :topics AND message_id IN :message_ids
ORDER BY topic, message_id, seq FOR UPDATE
"""

# Delete those that no row refers to any more.
FORGET = """
DELETE FROM payloads WHERE workflow_id = :workflow_id AND topic IN :topics AND message_id IN :message_ids
  AND NOT EXISTS (
    SELECT 1 FROM messages
    WHERE messages.workflow_id = payloads.workflow_id AND messages.topic = payloads.topic
      AND messages.message_id = payloads.message_id AND messages.payload_seq = payloads.seq
  )
"""


def share_payloads(db: Database, rows: Sequence[Message]) -> list[tuple[Message, int | None]]:
    """The rows as they are stored, each with the key of its payload: what several have in common is written once."""
    same = grouped(((row.workflow_id, row.topic, row.message_id, row.payload), row) for row in rows)
    several = {key: min(row.seq for row in alike) for key, alike in same.items() if len(alike) > 1}
    if not several or not _may_share(db):
        return [(row, None) for row in rows]
    db.upsert(_PAYLOADS, [_Payload(*key[:3], seq, key[3]) for key, seq in several.items()])
    seqs = [several.get((row.workflow_id, row.topic, row.message_id, row.payload)) for row in rows]
    return [(row if seq is None else row._replace(payload=_SHARED), seq) for row, seq in zip(rows, seqs, strict=True)]


def forget_unused(db: Database, messages: Iterable[tuple[int, str, str]]) -> None:
    """Delete the shared payloads of these messages (workflow, topic, id) that no row refers to any more."""
    for workflow_id, keys in grouped((key[0], key[1:]) for key in messages).items():
        topics, message_ids = {topic for topic, _ in keys}, {message_id for _, message_id in keys}
        if db.rows(LOCK, workflow_id=workflow_id, topics=topics, message_ids=message_ids):
            db.change(FORGET, workflow_id=workflow_id, topics=topics, message_ids=message_ids)


def _may_share(db: Database) -> bool:
    """Whether no node of 0.2 can be running, which reads the payload from each row."""
    ((step,),) = db.rows(STEP)
    return bool(step >= WITHOUT_0_2)
