"""The inbox, in SQLite."""

from sqlite3 import Connection

from wakeful.core.time.instants import Instant
from wakeful.ports.outbox import InboxItem
from wakeful.stores.sqlite.rows import columns_of

_COLUMNS = columns_of(InboxItem, "inbox")

# Insert an item, unless it exists.
ADD = """
INSERT INTO inbox (delivery_id, text, slug, run_id, at) VALUES (?, ?, ?, ?, ?) ON CONFLICT (delivery_id) DO NOTHING
"""

# One item.
GET = f"SELECT {_COLUMNS} FROM inbox WHERE item_id = ?"

# Items newest first, all or only unread ones.
PAGE = f"SELECT {_COLUMNS} FROM inbox WHERE item_id < ? ORDER BY item_id DESC LIMIT ?"
PAGE_OF_UNREAD = f"""
SELECT {_COLUMNS} FROM inbox INDEXED BY inbox_unread
WHERE read_at IS NULL AND item_id < ? ORDER BY item_id DESC LIMIT ?
"""

# The number of unread items.
UNREAD = "SELECT count(*) FROM inbox INDEXED BY inbox_unread WHERE read_at IS NULL"

# Mark an item as read or unread.
MARK = "UPDATE inbox SET read_at = ? WHERE item_id = ?"

# Delete an item.
REMOVE = "DELETE FROM inbox WHERE item_id = ?"

# Delete what arrived long ago; rows dated by an unset clock are deleted with the next row that has a valid date.
PRUNE = """
DELETE FROM inbox WHERE item_id IN (
  SELECT item_id FROM inbox INDEXED BY inbox_age
  WHERE at < :before AND (at >= :since OR EXISTS (
    SELECT 1 FROM inbox AS later INDEXED BY inbox_age
    WHERE later.at >= :since AND later.at < :before AND later.item_id > inbox.item_id
  )) ORDER BY at LIMIT :limit
)
"""

_ID_MAX = 2**62


class SqliteInbox:
    """See `ports.outbox.Inbox`."""

    __slots__ = ("_connection",)

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(self, *, delivery_id: int, text: str, slug: str | None, run_id: int | None, at: Instant) -> None:
        self._connection.execute(ADD, (delivery_id, text, slug, run_id, at))

    def get(self, item_id: int) -> InboxItem | None:
        found = self._connection.execute(GET, (item_id,)).fetchone()
        return None if found is None else InboxItem._make(found)

    def page(self, *, is_unread: bool, before_id: int | None, limit: int) -> list[InboxItem]:
        before = _ID_MAX if before_id is None else before_id
        rows = self._connection.execute(PAGE_OF_UNREAD if is_unread else PAGE, (before, limit))
        return list(map(InboxItem._make, rows))

    def unread(self) -> int:
        (count,) = self._connection.execute(UNREAD).fetchone()
        return int(count)

    def mark_read(self, item_id: int, *, at: Instant | None) -> bool:
        return self._connection.execute(MARK, (at, item_id)).rowcount > 0

    def remove(self, item_id: int) -> bool:
        return self._connection.execute(REMOVE, (item_id,)).rowcount > 0

    def prune(self, *, before: Instant, limit: int, since: Instant = 0) -> int:
        return self._connection.execute(PRUNE, {"before": before, "since": since, "limit": limit}).rowcount
