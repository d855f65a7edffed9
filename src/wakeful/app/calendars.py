"""The calendar feed: what will run, for calendar programs, protected by its own key."""

import hmac
import secrets
from typing import Final

from wakeful.app.queries import AppQueries
from wakeful.features.schedules.calendar_entries import AHEAD, Entries, cut, other_entries, schedule_entries
from wakeful.ports.store import STORE_ID, Tx

KEY: Final = "calendar_key"
"""The name of the key in the store. It is kept as it is, because `wakeful calendar` shows the address again; whoever
can read the store can read everything that the feed shows."""
OTHERS_MAX: Final = 20_000
"""How many instants of each source other than schedules are read to be grouped."""


class Calendars(AppQueries):
    """The feed and its key."""

    async def calendar(self) -> tuple[Entries, str]:
        """What will run in the next four weeks, grouped; and the id of the store."""
        now = self._clock.read().now
        until, zone, terms = now + AHEAD, self.terms.default_zone, self.terms

        def look(tx: Tx) -> tuple[Entries, str]:
            parts = [schedule_entries(tx, now=now, terms=terms)]
            for source in self._sources_ahead(tx, now=now, until=until, limit=OTHERS_MAX):
                is_cut = len(source) >= OTHERS_MAX
                last = max(item.due_at for item in source) if is_cut else until
                parts.append(Entries(other_entries(source, zone), last, is_cut))
            return cut(parts), tx.meta.get(STORE_ID) or ""

        return await self._open.store.read(look)

    async def calendar_key(self) -> str | None:
        """The feed's key; None if none was created."""
        return await self._open.store.read(lambda tx: tx.meta.get(KEY))

    async def renew_calendar_key(self) -> str:
        """Create a new key; the old one stops working immediately, on every node."""
        key = secrets.token_urlsafe(24)

        await self._open.store.write(lambda tx: tx.meta.set(KEY, key))
        return key

    async def is_calendar_key(self, key: str) -> bool:
        """Whether `key` is the current key."""
        known = await self.calendar_key()
        return known is not None and hmac.compare_digest(known.encode(), key.encode())
