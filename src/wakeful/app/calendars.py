"""The calendar feed: what will run, for calendar programs, protected by its own key."""

import hmac
from collections.abc import Iterable
from typing import Final

from wakeful.core.schedule.upcoming import Upcoming
from wakeful.core.time.instants import Instant
from wakeful.features.schedules.calendar_entries import AHEAD, Entries, cut, other_entries, schedule_entries
from wakeful.features.schedules.rules import Terms
from wakeful.ports.meta import Meta
from wakeful.ports.store import STORE_ID, Tx

KEY: Final = "calendar_key"
"""The name of the key in the store. It is kept as it is, because `wakeful calendar` shows the address again; all
who can read the store can read everything that the feed shows."""
OTHERS_MAX: Final = 20_000
"""How many instants of each source other than schedules are read to be grouped."""


def entries_of(tx: Tx, sources: Iterable[list[Upcoming]], *, terms: Terms, now: Instant) -> tuple[Entries, str]:
    """What will run in the next four weeks, grouped; and the id of the store. `sources` are all starts that are not
    planned instants of schedules, at most `OTHERS_MAX` of each."""
    parts = [schedule_entries(tx, now=now, terms=terms)]
    for source in sources:
        is_cut = len(source) >= OTHERS_MAX
        last = max(item.due_at for item in source) if is_cut else now + AHEAD
        parts.append(Entries(other_entries(source, terms.default_zone), last, is_cut))
    return cut(parts), tx[Meta].value(STORE_ID) or ""


def is_key(tx: Tx, key: str) -> bool:
    """Whether `key` is the current key of the feed."""
    known = tx[Meta].value(KEY)
    return known is not None and hmac.compare_digest(known.encode(), key.encode())
