"""Wraps an action whose target can post a receipt; the receipt becomes part of the result.

A command's exit status proves that it ended. Only the command knows what it did: if its receipt reports an error, it
has failed although it exits with 0, and the reply and usage it reports are the run's.
"""

from dataclasses import replace
from typing import Any

from wakeful.core.errors import FieldError
from wakeful.core.run.results import Done, Failed, Result
from wakeful.core.run.runs import RungName
from wakeful.integrations.actions.receipts import Receipt, Receipts
from wakeful.ports.action import Action, Fire, Ladder


class Receipted:
    """Performs another action while accepting receipts."""

    def __init__(self, action: Action, receipts: Receipts) -> None:
        self._action = action
        self._receipts = receipts

    @property
    def is_local(self) -> bool:
        return self._action.is_local

    def proves(self, spec: Any) -> RungName:
        return self._action.proves(spec)

    def check(self, spec: Any) -> str | FieldError | None:
        return self._action.check(spec)

    async def perform(self, spec: Any, fire: Fire, ladder: Ladder) -> Result:
        with self._receipts.expecting(fire.run_id) as inbox:
            if inbox.receipt is not None and inbox.receipt.is_success:  # an earlier attempt did finish
                return inbox.receipt.result()
            result = await self._action.perform(spec, fire, ladder)
            return result if inbox.receipt is None else _merged(result, inbox.receipt)

    async def close(self) -> None:
        await self._action.close()


def _merged(result: Result, receipt: Receipt) -> Result:
    """Merge a result with a receipt: an error in either counts."""
    match result:
        case Done(output=output) if receipt.error is not None:
            return Failed(receipt.error, rung="finished", output=output)
        case Done():
            return replace(result, reply=receipt.text, usage=receipt.usage)
        case Failed(error=error) if receipt.error is not None:
            return replace(result, error=f"{receipt.error} ({error})")
        case _:
            return result
