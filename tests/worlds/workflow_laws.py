"""The laws of workflows, as questions about messages, and about side effects as the outside saw them."""

from collections.abc import Iterator, Sequence
from typing import Final

from wakeful.core.time.instants import MINUTE, Duration, Instant, format_duration, format_instant
from wakeful.core.workflow.rows import Workflow
from wakeful.features.workflows.message_rows import Message, MessageStatus
from wakeful.ports.store import Alarm

LEFT_LYING_MAX: Final[Duration] = MINUTE
SILENT: Final = "the handler cannot be reached"
_MOVES: Final[dict[MessageStatus, frozenset[MessageStatus]]] = {
    "pending": frozenset({"pending", "reserved"}),  # nothing in these worlds skips what is pending
    "reserved": frozenset({"pending", "reserved", "consumed", "skipped"}),
    "consumed": frozenset({"consumed"}),
    "skipped": frozenset({"skipped"}),
}


def happens_once(message_id: str, times: int, *, is_excused: bool) -> Iterator[str]:
    """L2: the side effect of a message happens once; nothing repeats it on its own."""
    if times > 1 and not is_excused:
        yield f"L2 workflow: the side effect of {message_id} happened {times} times"


def moves_by_the_table(before: Message | None, after: Message) -> Iterator[str]:
    """L2: pending, reserved, and then consumed or skipped for good."""
    if before is None and after.status != "pending":
        yield f"L2 workflow: {describe(after)} was never pending"
    if before is not None and after.status not in _MOVES[before.status]:
        yield f"L2 workflow: {describe(before)} became {after.status}"


def consumed_means_done(before: Message | None, after: Message, times: int) -> Iterator[str]:
    """L8: what is called consumed has happened outside."""
    if after.status == "consumed" and (before is None or before.status != "consumed") and times == 0:
        yield f"L8 workflow: {describe(after)}, and its side effect was never seen"


def is_held_by_the_open_run(message: Message, workflow: Workflow) -> Iterator[str]:
    """L6: what is reserved is held by the one run that is open; else it would be held for ever."""
    if message.status == "reserved" and message.run_id != workflow.open_run_id:
        yield f"L6 workflow: {describe(message)} is held by run {message.run_id}, open is {workflow.open_run_id}"


def is_read_by(message: Message, readers: Sequence[str]) -> Iterator[str]:
    """L7: a message is there for the consumers of its topic, and for no other."""
    if message.consumer not in readers:
        yield f"L7 workflow: {describe(message)} belongs to {message.consumer or 'no consumer'}"


def payload_is_the_last_published(before: Message | None, after: Message, sent: Sequence[str]) -> Iterator[str]:
    """L7: a message has the payload that was published last while it was pending. `sent` are all, oldest first."""
    if after.payload not in sent:
        yield f"L7 workflow: {describe(after)} has a payload that was never published: {after.payload!r}"
    elif before is not None and sent.index(after.payload) < sent.index(before.payload):
        yield f"L7 workflow: {describe(after)} went back to an older payload"
    elif before is not None and before.payload != after.payload and not _may_change(before, after):
        yield f"L7 workflow: the payload of {describe(before)} changed"


def _may_change(before: Message, after: Message) -> bool:
    return before.status == "pending" or (before.status == "reserved" and before.attempt < after.attempt)


def payload_was_updated(message: Message, sent: Sequence[str], told: str) -> Iterator[str]:
    """L7: a person was told that a payload was taken; one that was never reserved has it, or a later one."""
    is_untouched = message.status == "pending" and message.attempt == 1
    if is_untouched and sent.index(message.payload) < sent.index(told):
        yield f"L7 workflow: {describe(message)} kept its payload when it was published again"


def is_not_stopped_by_silence(workflow: Workflow) -> Iterator[str]:
    """L9: a handler that cannot be reached holds up itself, and not its workflow."""
    if workflow.error is not None and SILENT in workflow.error:
        yield f"L9 workflow: it stopped because a handler cannot be reached: {workflow.error}"


def is_looked_at_in_the_end(message: Message, waits_for: Duration, patience: Duration) -> Iterator[str]:
    """L1: what is pending is looked at, if the workflow may run and somebody is awake."""
    if waits_for > patience:
        yield f"L1 workflow: {describe(message)} is pending for {format_duration(waits_for)}"


def is_not_silent(alarm: Alarm, since: Instant, *, now: Instant) -> Iterator[str]:
    """L1: nobody sleeps over a workflow that is due."""
    if alarm.due_at is not None and max(alarm.due_at, since) < now - LEFT_LYING_MAX:
        yield f"L1 workflow: it was due at {format_instant(alarm.due_at)}, and nobody looks at it"


def describe(message: Message) -> str:
    """A message in a few words."""
    where = f"{message.topic}/{message.message_id} for {message.consumer}"
    return f"message {where} ({message.status}, attempt {message.attempt})"
