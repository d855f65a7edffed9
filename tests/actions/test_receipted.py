"""What a command posts to the address of its receipt, beside how it ended."""

from collections.abc import Mapping
from typing import Any

import pytest

from climbing import RecordingLadder
from wakeful.core.run.results import Done, Failed, Result
from wakeful.core.run.runs import RungName
from wakeful.core.schedule.actions import Command
from wakeful.integrations.actions.command import CommandAction
from wakeful.integrations.actions.receipted import Receipted
from wakeful.integrations.actions.receipts import Receipts
from wakeful.ports.action import Fire, Process

RUN = 7
FIRE = Fire(RUN, 1, "report", 0, 0, "schedule", 1, "key")


@pytest.fixture
def receipts() -> Receipts:
    return Receipts(b"a secret of some length")


class Posting(RecordingLadder):
    """Posts a receipt when the command has started."""

    def __init__(self, receipts: Receipts, said: Mapping[str, Any]) -> None:
        super().__init__()
        self._receipts = receipts
        self._said = said

    async def climb(self, rung: RungName, *, process: Process | None = None) -> None:
        await super().climb(rung, process=process)
        if rung == "started" and self._said:
            assert await self._receipts.post(RUN, self._receipts.token(RUN), **self._said) == "taken"


async def ended(receipts: Receipts, code: int, **said: Any) -> Result:
    """How a command ends that says this and exits with that."""
    action = Receipted(CommandAction(), receipts)
    try:
        return await action.perform(Command(("sh", "-c", f"echo out; exit {code}")), FIRE, Posting(receipts, said))
    finally:
        await action.close()


async def test_without_a_receipt_the_exit_says_it_all(receipts: Receipts) -> None:
    """As if there were none to give."""
    assert await ended(receipts, 0) == Done(output="out\n")
    assert await ended(receipts, 1) == Failed("exited with 1: out", output="out\n")


async def test_what_it_says_is_its_reply(receipts: Receipts) -> None:
    """Also from one that says only how far it got: that it ended, its exit proves."""
    usage = {"outputTokens": 3}
    assert await ended(receipts, 0, rung="finished", text="hi", usage=usage) == Done(
        reply="hi", usage={"output": 3}, output="out\n"
    )
    assert await ended(receipts, 0, rung="started", text="hi") == Done(reply="hi", output="out\n")


async def test_an_error_counts_whoever_tells_it(receipts: Receipts) -> None:
    """L8: neither a clean exit nor a good word makes the other one true."""
    assert await ended(receipts, 0, rung="started", error="no") == Failed("no", rung="finished", output="out\n")
    assert await ended(receipts, 1, rung="started", error="no") == Failed("no (exited with 1: out)", output="out\n")
    assert await ended(receipts, 1, rung="finished", text="hi") == Failed("exited with 1: out", output="out\n")


async def test_what_an_earlier_attempt_finished_is_not_done_again(receipts: Receipts) -> None:
    """Its word arrived when nobody waited any more."""
    assert await receipts.post(RUN, receipts.token(RUN), "finished", "hi") == "late"
    assert await ended(receipts, 1) == Done(reply="hi")
