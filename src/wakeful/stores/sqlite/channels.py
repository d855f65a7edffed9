"""The last interaction on each channel, in SQLite."""

from sqlite3 import Connection

from wakeful.core.time.instants import Instant
from wakeful.ports.outbox import Interaction

# Record an interaction as the latest.
TOUCH = """
INSERT INTO interactions (channel, recipient, at, turn)
VALUES (?, ?, ?, (SELECT coalesce(max(turn), 0) + 1 FROM interactions))
ON CONFLICT (channel) DO UPDATE SET recipient = excluded.recipient, at = excluded.at, turn = excluded.turn
"""

# The last of each channel, newest first; there is one row per channel.
INTERACTIONS = "SELECT channel, recipient, at FROM interactions ORDER BY turn DESC"


class SqliteChannels:
    """See `ports.outbox.Channels`."""

    __slots__ = ("_connection",)

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def touch(self, channel: str, recipient: str | None, *, at: Instant) -> None:
        self._connection.execute(TOUCH, (channel, recipient, at))

    def interactions(self) -> list[Interaction]:
        return list(map(Interaction._make, self._connection.execute(INTERACTIONS)))
