"""Payloads that several consumers of a message share, each stored once.

The row of a consumer has an empty payload then, and the key of the shared one. A text in the row itself is always what
counts: a process of 0.2 that opened the store early publishes into it.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from wakeful.ports.database import PerDatabase, grouped
from wakeful.ports.releases import WITHOUT_0_2
from wakeful.ports.table import Rows

SHARED: Final = ""  # no JSON text is empty


class Payload(NamedTuple):
    """The payload of a message, in the order of its columns."""

    workflow_id: int
    topic: str
    message_id: str
    seq: int  # with which the first of its rows was written
    payload: str


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


class Payloads(Rows[Payload]):
    """The shared payloads."""

    row, table, key = Payload, "payloads", "workflow_id, topic, message_id, seq"

    def share(self, rows: Sequence[Payload]) -> list[int | None]:
        """For each of these payloads, the `seq` of the shared one; None if its row keeps it. What several rows have in
        common is written once."""
        same = grouped((row._replace(seq=0), row.seq) for row in rows)
        several = {row: min(seqs) for row, seqs in same.items() if len(seqs) > 1}
        if not several or not self._may_share():
            return [None] * len(rows)
        self.put_many([row._replace(seq=seq) for row, seq in several.items()])
        return [several.get(row._replace(seq=0)) for row in rows]

    def forget_unused(self, messages: Iterable[tuple[int, str, str]]) -> None:
        """Delete the shared payloads of these messages (workflow, topic, id) that no row refers to any more."""
        for workflow_id, keys in grouped((key[0], key[1:]) for key in messages).items():
            topics, message_ids = {topic for topic, _ in keys}, {message_id for _, message_id in keys}
            if self._db.rows(LOCK, workflow_id=workflow_id, topics=topics, message_ids=message_ids):
                self._db.change(FORGET, workflow_id=workflow_id, topics=topics, message_ids=message_ids)

    def _may_share(self) -> bool:
        """Whether no node of 0.2 can be running, which reads the payload from each row."""
        ((step,),) = self._db.rows(STEP)
        return bool(step >= WITHOUT_0_2)
