"""Deleting what workflows no longer need: the details of runs that left the ledger, and deleted workflows."""

from wakeful.core.time.instants import Instant
from wakeful.features.workflows.feed_rows import Feeds
from wakeful.features.workflows.feeding import FEED_KEPT
from wakeful.features.workflows.message_rows import Messages
from wakeful.features.workflows.session_rows import Sessions
from wakeful.features.workflows.state_rows import Handlers, Subscriptions, Topics
from wakeful.ports.handler_runs import HandlerRunDetails
from wakeful.ports.store import Tx


def prune(tx: Tx, now: Instant, limit: int) -> int:
    """Delete a small batch of all of it, and feeds that are too old."""
    tx[Feeds].forget(before=now - FEED_KEPT)
    return prune_runs(tx, limit=limit) + prune_deleted(tx, limit=limit)


def prune_runs(tx: Tx, *, limit: int) -> int:
    """Of the oldest `limit` handler runs, delete those that are no longer in the ledger, with the messages they
    consumed or skipped and the sessions that have no run left; returns the number of deleted handler runs."""
    gone = tx[HandlerRunDetails].gone(limit=limit)
    if gone:
        tx[Messages].forget_settled(gone)
        tx[HandlerRunDetails].remove_many(gone)
        tx[Sessions].forget(set(gone.values()))
    return len(gone)


def prune_deleted(tx: Tx, *, limit: int) -> int:
    """Delete up to `limit` messages of deleted workflows, and handlers, topics and subscriptions of those that have
    none left; returns the number of deleted rows."""
    messages = tx[Messages].forget_deleted(limit=limit)
    return messages + sum(table.forget_deleted() for table in (tx[Handlers], tx[Topics], tx[Subscriptions]))
