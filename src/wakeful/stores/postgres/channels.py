"""The last interaction on each channel, in PostgreSQL."""

from wakeful.core.time.instants import Instant
from wakeful.ports.outbox import Interaction
from wakeful.stores.postgres.connection import Session

# Record an interaction as the latest. A sequence is enough: of two at the same moment, either may be the last.
TOUCH = """
INSERT INTO interactions (channel, recipient, at, turn) VALUES ($1, $2, $3, nextval('interaction_turns'))
ON CONFLICT (channel) DO UPDATE SET recipient = excluded.recipient, at = excluded.at, turn = excluded.turn
"""

# The last of each channel; there is one row per channel.
INTERACTIONS = "SELECT channel, recipient, at, turn FROM interactions"


class PostgresChannels:
    """See `ports.outbox.Channels`."""

    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    def touch(self, channel: str, recipient: str | None, *, at: Instant) -> None:
        self._session.change(TOUCH, channel, recipient, at)

    def interactions(self) -> list[Interaction]:
        rows = sorted(self._session.rows(INTERACTIONS), key=lambda row: int(row[3]), reverse=True)
        return [Interaction(channel, recipient, int(at)) for channel, recipient, at, _ in rows]
