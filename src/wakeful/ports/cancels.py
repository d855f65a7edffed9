"""The port to cancel requests: which runs people asked to cancel."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from wakeful.core.time.instants import Instant


class CancelRequest(NamedTuple):
    """A request to cancel a run, in the order of its columns."""

    run_id: int
    requested_at: Instant
    requested_by: str  # the name of the caller; empty if it has none


class Cancels(Protocol):
    """Cancel requests. Writers hold the lock of the run, and so does the settlement that reads them."""

    def add(self, row: CancelRequest) -> None:
        """Record a request. The first one for a run is kept."""
        ...

    def among(self, run_ids: Sequence[int]) -> dict[int, CancelRequest]:
        """The requests for these runs."""
        ...

    def prune(self, *, before: Instant, limit: int, since: Instant = 0) -> int:
        """Delete up to `limit` requests made before `before`, except those before `since`; returns how many."""
        ...
