"""The inbox of the page."""

from typing import NamedTuple

from wakeful.core.time.instants import Instant
from wakeful.ports.database import NO_ID, columns_of
from wakeful.ports.table import Rows


class InboxItem(NamedTuple):
    """An item in the inbox, in the order of its columns."""

    item_id: int
    delivery_id: int
    text: str
    slug: str | None
    run_id: int | None
    at: Instant
    read_at: Instant | None


_COLUMNS = columns_of(InboxItem, "inbox")

# Insert an item, unless it exists.
ADD = """
INSERT INTO inbox (delivery_id, text, slug, run_id, at) VALUES (:delivery_id, :text, :slug, :run_id, :at)
ON CONFLICT (delivery_id) DO NOTHING
"""

# Items newest first, all or only unread ones.
PAGE = f"SELECT {_COLUMNS} FROM inbox WHERE item_id < :before_id ORDER BY item_id DESC LIMIT :limit"
PAGE_OF_UNREAD = f"""
SELECT {_COLUMNS} FROM inbox INDEXED BY inbox_unread
WHERE read_at IS NULL AND item_id < :before_id ORDER BY item_id DESC LIMIT :limit
"""

# The number of unread items.
UNREAD = "SELECT count(*) FROM inbox INDEXED BY inbox_unread WHERE read_at IS NULL"

# Mark an item as read or unread.
MARK = "UPDATE inbox SET read_at = :at WHERE item_id = :item_id"

# Mark all items as read.
MARK_ALL = "UPDATE inbox SET read_at = :at WHERE read_at IS NULL"


class Inbox(Rows[InboxItem]):
    """The items of the inbox."""

    row, table, key, is_numbered = InboxItem, "inbox", "item_id", True
    time, time_index = "at", "inbox_age"

    def add_item(self, *, delivery_id: int, text: str, slug: str | None, run_id: int | None, at: Instant) -> None:
        """Add an item; an existing item for the same delivery is left unchanged."""
        self._db.change(ADD, delivery_id=delivery_id, text=text, slug=slug, run_id=run_id, at=at)

    def page(self, *, is_unread: bool, before_id: int | None, limit: int) -> list[InboxItem]:
        """Items newest first, all or only unread ones."""
        before_id = NO_ID if before_id is None else before_id
        return self._made(self._db.rows(PAGE_OF_UNREAD if is_unread else PAGE, before_id=before_id, limit=limit))

    def unread(self) -> int:
        """The number of unread items."""
        ((count,),) = self._db.rows(UNREAD)
        return int(count)

    def mark_read(self, item_id: int, *, at: Instant | None) -> bool:
        """Mark an item read, or unread with None; False if there is no such item."""
        return self._db.change(MARK, item_id=item_id, at=at) > 0

    def mark_all_read(self, *, at: Instant) -> int:
        """Mark everything read; returns how many were unread."""
        return self._db.change(MARK_ALL, at=at)
