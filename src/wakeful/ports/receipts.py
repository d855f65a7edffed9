"""Receipts, as actions wait for them: what a target reports about a run by posting to its receipt URL."""

import asyncio
from contextlib import AbstractContextManager
from typing import Final, Protocol

from wakeful.core.run.results import Done, Failed
from wakeful.core.run.runs import RungName

NO_LISTENER: Final = "receipt: this process does not listen, so no receipt can arrive; leave it out"


class Receipt(Protocol):
    """The progress a target reports."""

    @property
    def rung(self) -> RungName: ...

    @property
    def is_final(self) -> bool: ...

    @property
    def is_success(self) -> bool: ...

    def result(self) -> Done | Failed:
        """A final receipt as the result of the attempt."""
        ...


class ReceiptInbox(Protocol):
    """Where the receipts of one attempt arrive; the bell is set for each."""

    @property
    def receipt(self) -> Receipt | None: ...

    @property
    def bell(self) -> asyncio.Event: ...


class ReceiptSource(Protocol):
    """Accepts receipts."""

    def expecting(self, run_id: int) -> AbstractContextManager[ReceiptInbox]:
        """Accept receipts of this run; one that arrived earlier is in the inbox from the start."""
        ...
