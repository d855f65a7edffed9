"""Tick gaps: periods in which no node ticked.

Every lease renewal records the time in one row of the store, no matter which node renews, so the time between two
records is how long no node ticked. A node that starts, wakes from a suspend or was frozen reads the last record before
it writes its own. The last node to shut down cleanly records that too, and a gap that starts there is called `down`.
"""

from collections.abc import Sequence
from typing import Final

from wakeful.core.time.instants import Duration, Instant
from wakeful.ports.handlers import OnSilence, TickGap
from wakeful.ports.meta import Meta
from wakeful.ports.store import Tx

TICKED_AT: Final = "ticked_at"
LEFT_AT: Final = "left_at"


def note_tick(tx: Tx, now: Instant) -> None:
    """Record that a node ticks."""
    tx[Meta].set(TICKED_AT, str(now))


def note_leaving(tx: Tx, now: Instant) -> None:
    """Record a clean shutdown; if this is the last node, the gap that follows starts here."""
    note_tick(tx, now)
    tx[Meta].set(LEFT_AT, str(now))


def notice_silence(tx: Tx, listeners: Sequence[OnSilence], *, now: Instant, slept: Duration) -> None:
    """Report to listeners how long no node ticked until now; `slept` is how long the machine was suspended during that
    time."""
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
    for listener in listeners:
        listener(tx, silence)


def last_tick(tx: Tx) -> Instant | None:
    """When a node last ticked."""
    return _read(tx, TICKED_AT)


def _read(tx: Tx, name: str) -> Instant | None:
    written = tx[Meta].value(name)
    return None if written is None else int(written)
