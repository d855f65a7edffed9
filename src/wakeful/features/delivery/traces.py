"""The place of a delivery in the trace of its run, passed on to channels that can carry it."""

import logging
from collections.abc import Callable

from wakeful.core.run.runs import idempotency_key
from wakeful.core.run.traces import delivery_of
from wakeful.ports.channel import OutgoingMessage
from wakeful.ports.store import Store

log = logging.getLogger("wakeful.delivery")


class DeliveryTraces:
    """Adds a `traceparent` to messages of runs, while runs are traced."""

    def __init__(self, store: Store, store_id: str, is_traced: Callable[[], bool]) -> None:
        self._store = store
        self._store_id = store_id
        self._is_traced = is_traced

    async def add(self, message: OutgoingMessage) -> OutgoingMessage:
        """Reads the run outside the transaction of the claim: there, its row would be locked after the addressee."""
        run_id = message.run_id
        if run_id is None or not self._is_traced():
            return message
        try:
            run = (await self._store.read(lambda tx: tx.runs.lock([run_id]))).get(run_id)
        except Exception as error:  # a message is sent with or without its trace
            log.warning("delivery %s is sent without a traceparent: %s", message.delivery_id, error)
            return message
        if run is None:
            return message
        span = delivery_of(idempotency_key(self._store_id, run), message.delivery_id)
        return message._replace(traceparent=span.traceparent)
