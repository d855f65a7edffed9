"""The inbox, in PostgreSQL."""

from typing import Final

from wakeful.core.time.instants import Instant
from wakeful.ports.outbox import InboxItem
from wakeful.stores.postgres.connection import Session
from wakeful.stores.postgres.rows import columns_of

_COLUMNS = columns_of(InboxItem, "inbox")

# Insert an item, unless it exists.
ADD = """
INSERT INTO inbox (delivery_id, text, slug, run_id, at) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (delivery_id) DO NOTHING
"""

# One item.
GET = f"SELECT {_COLUMNS} FROM inbox WHERE item_id = $1"

# Items newest first, all or only unread ones.
PAGE = f"SELECT {_COLUMNS} FROM inbox WHERE item_id < $1 ORDER BY item_id DESC LIMIT $2"
PAGE_OF_UNREAD = f"""
SELECT {_COLUMNS} FROM inbox WHERE read_at IS NULL AND item_id < $1 ORDER BY item_id DESC LIMIT $2
"""

# The number of unread items.
UNREAD = "SELECT count(*) FROM inbox WHERE read_at IS NULL"

# Mark an item as read or unread.
MARK = "UPDATE inbox SET read_at = $2 WHERE item_id = $1"

# Delete an item.
REMOVE = "DELETE FROM inbox WHERE item_id = $1"

# Delete what arrived long ago; rows dated by an unset clock are deleted with the next row that has a valid date.
PRUNE = """
DELETE FROM inbox WHERE item_id = ANY(ARRAY(
  SELECT item_id FROM inbox WHERE at < $1 AND (at >= $3 OR EXISTS (
    SELECT 1 FROM inbox AS later
    WHERE later.at >= $3 AND later.at < $1 AND later.item_id > inbox.item_id
  )) ORDER BY at LIMIT $2
))
"""

_ID_MAX: Final = 2**62


class PostgresInbox:
    """See `ports.outbox.Inbox`."""

    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    def add(self, *, delivery_id: int, text: str, slug: str | None, run_id: int | None, at: Instant) -> None:
        self._session.change(ADD, delivery_id, text, slug, run_id, at)

    def get(self, item_id: int) -> InboxItem | None:
        found = self._session.rows(GET, item_id)
        return InboxItem._make(found[0]) if found else None

    def page(self, *, is_unread: bool, before_id: int | None, limit: int) -> list[InboxItem]:
        before = _ID_MAX if before_id is None else before_id
        rows = self._session.rows(PAGE_OF_UNREAD if is_unread else PAGE, before, limit)
        return list(map(InboxItem._make, rows))

    def unread(self) -> int:
        ((count,),) = self._session.rows(UNREAD)
        return int(count)

    def mark_read(self, item_id: int, *, at: Instant | None) -> bool:
        return self._session.change(MARK, item_id, at) > 0

    def remove(self, item_id: int) -> bool:
        return self._session.change(REMOVE, item_id) > 0

    def prune(self, *, before: Instant, limit: int, since: Instant = 0) -> int:
        return self._session.change(PRUNE, before, limit, since)
