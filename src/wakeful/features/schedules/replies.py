"""What a run of a schedule has to say to a person."""

from typing import Final, NamedTuple

from wakeful.core.actions import Event, Prompt
from wakeful.core.effects import Deliver, Effect
from wakeful.core.results import Done, Ending
from wakeful.core.runs import Run
from wakeful.core.settlement import Close, Settlement
from wakeful.features.schedules.compiled import Broken, Compiled


class Reply(NamedTuple):
    """A reply on its way, if the schedule's owner wants to hear it."""

    effects: tuple[Effect, ...] = ()
    suppressed: str | None = None  # why there is nothing to deliver although it was asked for


_NOT_WANTED: Final = Reply()


def reply_of(run: Run, ending: Ending, own: Compiled | Broken, settlement: Settlement) -> Reply:
    """An agent's reply, or what another target gave back, of a run that succeeded. No reply is not an empty one."""
    if isinstance(own, Broken) or not isinstance(ending, Done):
        return _NOT_WANTED
    wanted, action = own.definition.deliver, own.definition.action
    if wanted is None or not isinstance(settlement, Close) or settlement.outcome != "succeeded":
        return _NOT_WANTED
    text = ending.reply
    if text is None and not isinstance(action, Prompt | Event):
        text = ending.output
    if text is None:
        return Reply(suppressed="there was no reply")
    if not text.strip():
        return Reply(suppressed="the reply was empty")
    channel = None if wanted.channel == "last" else wanted.channel
    return Reply((Deliver(text, channel, wanted.to, run.run_id, own.definition.slug),))
