"""The reply of a schedule's run to a person."""

from typing import Final, NamedTuple

from wakeful.core.run.effects import Deliver, Effect
from wakeful.core.run.results import Done, Ending, Unconfirmed
from wakeful.core.run.settlement import Close, Settlement
from wakeful.core.schedule.actions import Event, Prompt
from wakeful.core.schedule.definition import Definition, addressees_of
from wakeful.features.schedules.compiled import Broken, Compiled


class Reply(NamedTuple):
    """The deliveries of a reply, if the schedule asks for any."""

    effects: tuple[Effect, ...] = ()
    suppressed: str | None = None  # why nothing is delivered although delivery was requested


_NOT_WANTED: Final = Reply()


NO_REPLY: Final = "no reply could be read"
WITHOUT_A_WORD: Final = "the turn ended without a word"


def with_words(ending: Ending, definition: Definition) -> Ending:
    """The ending of a turn: one with an empty reply proves nothing where a reply is the work.

    Many agents end like this after an error of their own. An owner to whom less counts as success said so."""
    if not isinstance(ending, Done) or not isinstance(definition.action, Prompt):
        return ending
    if ending.reply is None or ending.reply.strip():
        return ending
    is_reply_needed = definition.success == "finished" or (
        definition.success is None and definition.deliver is not None
    )
    if not is_reply_needed:
        return ending
    return Unconfirmed(WITHOUT_A_WORD, ending.session_id, ending.usage, ending.output, ending.refused)


def reply_of(run_id: int, ending: Ending, own: Compiled | Broken, settlement: Settlement) -> Reply:
    """An agent's reply, or another target's output, for each addressee. A missing reply is not an empty one: addressees
    are notified, once per run, that none could be read."""
    if isinstance(own, Broken) or not isinstance(settlement, Close) or own.model.deliver is None:
        return _NOT_WANTED
    is_turn = isinstance(own.model.action, Prompt | Event)
    if settlement.outcome == "unconfirmed" and is_turn:
        return _no_reply(run_id, own, settlement.error)
    if settlement.outcome != "succeeded" or not isinstance(ending, Done):
        return _NOT_WANTED
    text = ending.reply
    if text is None and not is_turn:
        text = ending.output
    if text is None:
        return _no_reply(run_id, own, None) if is_turn else Reply(suppressed="there was no reply")
    if not text.strip():
        return Reply(suppressed="the reply was empty")
    return Reply(_deliver(run_id, own, text))


def _no_reply(run_id: int, own: Compiled, error: str | None) -> Reply:
    slug = own.slug
    said = "" if error is None else f": {error}"
    text = f"{slug}: {NO_REPLY} from run {run_id}{said}; see: wakeful why {slug}"
    return Reply(_deliver(run_id, own, text, is_note=True), suppressed=NO_REPLY)


def _deliver(run_id: int, own: Compiled, text: str, *, is_note: bool = False) -> tuple[Deliver, ...]:
    return tuple(
        Deliver(
            text,
            None if addressee.channel == "last" else addressee.channel,
            addressee.to,
            run_id,
            own.slug,
            is_note=is_note,
        )
        for addressee in addressees_of(own.model)
    )
