"""The last time a person was active on each channel."""

from typing import NamedTuple

from wakeful.core.time.instants import Instant
from wakeful.ports.database import PerDatabase
from wakeful.ports.table import Rows


class Interaction(NamedTuple):
    """The last time a person was active on a channel."""

    channel: str
    recipient: str | None
    at: Instant


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


class Interactions(Rows[Interaction]):
    """The last interaction on each channel."""

    row, table, key = Interaction, "interactions", "channel"

    def touch(self, channel: str, recipient: str | None, *, at: Instant) -> None:
        """Record a message from a person: it becomes the last interaction, whatever the clock says."""
        self._db.change(TOUCH, channel=channel, recipient=recipient, at=at)

    def newest_first(self) -> list[Interaction]:
        """The last interaction on each channel, newest first."""
        rows = sorted(self._db.rows(INTERACTIONS), key=lambda row: int(row[0]), reverse=True)
        return [Interaction(channel, recipient, at) for _, channel, recipient, at in rows]
