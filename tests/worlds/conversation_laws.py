"""The laws of messages from people, as questions about the runs they became and what their senders were told."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from wakeful.core.run.runs import Run
from wakeful.core.time.instants import Duration, format_duration
from wakeful.ports.outbox import Delivery
from worlds.laws import describe

SILENT_ON_PURPOSE = "ok-ack"


def each_is_taken_once(heard: int, taken: int) -> Iterator[str]:
    """L7: what the mark says was heard became a run or a note; L2: and only once."""
    if taken < heard:
        yield f"L7 messages: {heard} were heard by the mark, and only {taken} became a run or a note"
    if taken > heard:
        yield f"L2 messages: {heard} were heard by the mark, and {taken} became a run or a note"


def has_one_run(text: str, known: Run, run: Run) -> Iterator[str]:
    """L2: a message becomes one run."""
    if known.run_id != run.run_id:
        yield f"L2 messages: {text!r} became {describe(known)} and {describe(run)}"


def is_of_its_speaker(said: Mapping[str, Any], spoken: set[tuple[str, str]]) -> Iterator[str]:
    """L8: a run says what its person wrote."""
    if (said.get("to"), said.get("text")) not in spoken:
        yield f"L8 messages: nobody wrote {said}"


def is_answered_once(
    run: Run, channel: str, to: str, rows: Sequence[Delivery], replies: set[str | None]
) -> Iterator[str]:
    """L8: whoever wrote gets the agent's reply, or is told once that there is none; nobody else gets it."""
    places = [(row.channel, row.recipient) for row in rows]
    if not rows and run.reason != SILENT_ON_PURPOSE:
        yield f"L8 messages: {describe(run)} is over, and {to} was told nothing"
    if len(rows) > 1:
        yield f"L2 messages: {describe(run)} was answered {len(rows)} times"
    if set(places) - {(channel, to)}:
        yield f"L8 messages: {describe(run)} is of {to}, and was answered to {places}"
    for row in rows:
        if row.purpose == "message" and row.text not in replies:
            yield f"L8 messages: {to} is told {row.text!r}; the agent said {sorted(map(str, replies))}"


def is_answered_in_the_end(run_id: int, waits_for: Duration, patience: Duration) -> Iterator[str]:
    """L1: a message is answered, or given up, while somebody is awake."""
    if waits_for > patience:
        yield f"L1 messages: run {run_id} is open for {format_duration(waits_for)}, and its sender waits"
