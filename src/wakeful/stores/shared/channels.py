"""The last interaction on each channel."""

from wakeful.core.time.instants import Instant
from wakeful.ports.outbox import Interaction
from wakeful.stores.shared.database import Database, PerDatabase

_TOUCH = """
INSERT INTO interactions (channel, recipient, at, turn) VALUES (:channel, :recipient, :at, {turn})
ON CONFLICT (channel) DO UPDATE SET recipient = excluded.recipient, at = excluded.at, turn = excluded.turn
"""

# Record an interaction as the latest. Of two at the same moment on two nodes, either may be the last.
TOUCH = PerDatabase(
    sqlite=_TOUCH.format(turn="(SELECT coalesce(max(turn), 0) + 1 FROM interactions)"),
    postgres=_TOUCH.format(turn="nextval('interaction_turns')"),
)

# The last interaction on each channel; there is one row per channel.
INTERACTIONS = "SELECT turn, channel, recipient, at FROM interactions"


class SharedChannels:
    """See `ports.outbox.Channels`."""

    __slots__ = ("_db",)

    def __init__(self, db: Database) -> None:
        self._db = db

    def touch(self, channel: str, recipient: str | None, *, at: Instant) -> None:
        self._db.change(TOUCH, channel=channel, recipient=recipient, at=at)

    def interactions(self) -> list[Interaction]:
        newest_first = sorted(self._db.rows(INTERACTIONS), key=lambda row: int(row[0]), reverse=True)
        return [Interaction(channel, recipient, at) for _, channel, recipient, at in newest_first]
