"""Deleting what workflows no longer need: the details of runs that left the ledger, and deleted workflows."""

from wakeful.features.workflows.message_rows import Messages
from wakeful.features.workflows.session_rows import Sessions
from wakeful.features.workflows.state_rows import Handlers, Subscriptions, Topics
from wakeful.ports.handler_runs import HandlerRunDetails
from wakeful.ports.store import Tx


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
