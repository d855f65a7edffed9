"""The inbox."""

from wakeful.core.time.instants import Instant
from wakeful.ports.outbox import InboxItem
from wakeful.stores.pruning import NO_ID
from wakeful.stores.shared.database import Database, columns_of
from wakeful.stores.shared.queries import old_of

_COLUMNS = columns_of(InboxItem, "inbox")

# Insert an item, unless it exists.
ADD = """
INSERT INTO inbox (delivery_id, text, slug, run_id, at) VALUES (:delivery_id, :text, :slug, :run_id, :at)
ON CONFLICT (delivery_id) DO NOTHING
"""

# One item.
GET = f"SELECT {_COLUMNS} FROM inbox WHERE item_id = :item_id"

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

# Delete items.
REMOVE = "DELETE FROM inbox WHERE item_id IN :item_ids"

# Items that arrived long ago.
OLD = old_of("inbox", key="item_id", dated="at", index="inbox_age")


class SharedInbox:
    """See `ports.outbox.Inbox`."""

    __slots__ = ("_db",)

    def __init__(self, db: Database) -> None:
        self._db = db

    def add(self, *, delivery_id: int, text: str, slug: str | None, run_id: int | None, at: Instant) -> None:
        self._db.change(ADD, delivery_id=delivery_id, text=text, slug=slug, run_id=run_id, at=at)

    def get(self, item_id: int) -> InboxItem | None:
        return next(map(InboxItem._make, self._db.rows(GET, item_id=item_id)), None)

    def page(self, *, is_unread: bool, before_id: int | None, limit: int) -> list[InboxItem]:
        before_id = NO_ID if before_id is None else before_id
        rows = self._db.rows(PAGE_OF_UNREAD if is_unread else PAGE, before_id=before_id, limit=limit)
        return list(map(InboxItem._make, rows))

    def unread(self) -> int:
        ((count,),) = self._db.rows(UNREAD)
        return int(count)

    def mark_read(self, item_id: int, *, at: Instant | None) -> bool:
        return self._db.change(MARK, item_id=item_id, at=at) > 0

    def mark_all_read(self, *, at: Instant) -> int:
        return self._db.change(MARK_ALL, at=at)

    def remove(self, item_id: int) -> bool:
        return self._db.change(REMOVE, item_ids=[item_id]) > 0

    def prune(self, *, before: Instant, limit: int, since: Instant = 0) -> int:
        old = [item_id for (item_id,) in self._db.rows(OLD, before=before, since=since, limit=limit)]
        return self._db.change(REMOVE, item_ids=old) if old else 0
