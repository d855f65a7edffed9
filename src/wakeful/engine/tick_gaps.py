"""Silence: stretches in which no node ticked.

Every renewal of a lease notes the time in one row of the store, whichever node renews, so what lies between two notes
is how long nobody ticked. A node that begins, wakes from a suspend, or was frozen, reads the last note before it writes
its own. The last node to leave in an orderly way says so, and a silence that begins there is called `down`.
"""

from collections.abc import Sequence
from typing import Final

from wakeful.core.time.instants import Duration, Instant
from wakeful.ports.handlers import OnSilence, TickGap
from wakeful.ports.store import Tx

TICKED_AT: Final = "ticked_at"
LEFT_AT: Final = "left_at"


def note_tick(tx: Tx, now: Instant) -> None:
    """Somebody ticks."""
    tx.meta.set(TICKED_AT, str(now))


def note_leaving(tx: Tx, now: Instant) -> None:
    """A node leaves in an orderly way; if it is the last one, the silence that follows begins here."""
    note_tick(tx, now)
    tx.meta.set(LEFT_AT, str(now))


def notice_silence(tx: Tx, told: Sequence[OnSilence], *, now: Instant, slept: Duration) -> None:
    """Tell whoever listens how long nobody ticked until now; `slept` is how much of it the machine was suspended."""
    began_at = _read(tx, TICKED_AT)
    if began_at is None or now <= began_at:
        return
    left_at = _read(tx, LEFT_AT)
    length = now - began_at
    silence = TickGap(began_at, now, "outage")
    if left_at is not None and left_at >= began_at:
        silence = silence._replace(cause="down")
    elif slept * 2 > length:
        silence = silence._replace(cause="suspended")
    for listener in told:
        listener(tx, silence)


def _read(tx: Tx, name: str) -> Instant | None:
    written = tx.meta.get(name)
    return None if written is None else int(written)
