"""A store that was rolled back: a failover to a copy that lacks the last minutes, while nodes keep running.

A node writes its lease every few seconds and remembers the last one it wrote. If the store has an older row for this
node, or none, it has lost what was committed since. Such a store is adopted like one restored from a backup: it is
marked as a copy, and the next node that enters repairs it before anything is claimed. Several nodes detect the same
loss; the first one marks it, and the others find the mark.
"""

from collections.abc import Container
from typing import Final

from wakeful.core.time.instants import Instant
from wakeful.engine.recovery import read_clock_high
from wakeful.ports.meta import Meta
from wakeful.ports.store import Tx

COPIED_AT: Final = "copied_at"
"""Set on a store that is a copy: the time the copy was made."""

FOUND_OLDER: Final = "found_older"
"""Set when a database was older than the file beside it says: how far it had got. Cleared when that was reported."""

WENT_BACK_AT: Final = "went_back_at"
"""When a loss was last detected."""


def has_gone_back(
    tx: Tx, node_id: int, *, lease_until: Instant, pruned_before: Instant, unanswered: Container[Instant] = ()
) -> bool:
    """Whether the store lacks the lease that this node last wrote, although no other node took it. A lease that ended
    before `pruned_before` may have been taken, and its row deleted since: this node stood still for that long.
    `unanswered` are earlier leases that it wrote after the clock went back, and that may have been committed."""
    if tx.nodes.hold(node_id, lease_until=lease_until):
        return False
    mine = next((node for node in tx.nodes.all() if node.node_id == node_id), None)
    if mine is None:
        return lease_until >= pruned_before
    return mine.voided_at is None and mine.lease_until < lease_until and mine.lease_until not in unanswered


def mark(tx: Tx, *, renewed_at: Instant, now: Instant) -> Instant | None:
    """Mark the store as a copy, unless this loss was recorded since our last renewal; returns the time of the copy."""
    noted = tx[Meta].value(WENT_BACK_AT)
    if noted is not None and int(noted) >= renewed_at:
        return None
    copied_at = min(read_clock_high(tx) or now, now)
    tx[Meta].set(WENT_BACK_AT, str(now))
    tx[Meta].set(COPIED_AT, str(copied_at))
    return copied_at
