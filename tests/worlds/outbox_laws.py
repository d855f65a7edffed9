"""The laws of the outbox, as questions about rows of it and about letters as the other side saw them.

A `Sending` is the world's own record that a letter really went out. The store is asked only for what it promised: which
delivery was first in line, and what it says became of it.
"""

from collections.abc import Iterator, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

from wakeful.core.delivery.retries import RETRY_DELAYS, DeliveryLimits
from wakeful.core.time.instants import MINUTE, Duration, Instant, format_instant
from wakeful.ports.channel import OutgoingMessage
from wakeful.ports.outbox import Addressee, Delivery
from wakeful.ports.store import Alarm
from worlds.inhabitants import Boot

Answer: TypeAlias = Literal["sent", "unsent", "refused", "raised", "cut off"]

ASKED_MAX: Final[Duration] = 20 * MINUTE
"""The longest that a virtual receiver asks to be left alone."""

LEFT_LYING_MAX: Final[Duration] = MINUTE
"""How long a delivery may be due while a node that could send it sleeps."""

WAIT_MAX: Final[Duration] = max(*RETRY_DELAYS, ASKED_MAX)
"""The longest that a letter waits for its next attempt."""


class Told(NamedTuple):
    """What a run that succeeded should have said, and to whom."""

    run_id: int
    text: str
    named: frozenset[tuple[str, str | None]]  # channels and recipients, without `last`
    lasts: int  # how often `last` is among them: that may be anyone


def run_tells_everyone_named(told: Told, rows: Sequence[Delivery]) -> Iterator[str]:
    """One delivery for each addressee, of the run's own text, with the commit that closed the run; none for others."""
    places = [(row.channel, row.recipient) for row in rows if row.purpose == "message"]
    missing = told.named - set(places)
    if missing:
        yield f"L8 outbox: run {told.run_id} succeeded and said nothing to {sorted(missing, key=str)}"
    if len(set(places)) < len(places):
        yield f"L2 outbox: run {told.run_id} told an addressee twice: {places}"
    if len(set(places) - told.named) > told.lasts:
        names = sorted(told.named, key=str)
        yield f"L8 outbox: run {told.run_id} told someone it does not name: {places}, not of {names}"
    for row in rows:
        if row.purpose == "message" and row.text != told.text:
            yield f"L8 outbox: {describe(row)} is of run {told.run_id} and says {row.text!r}"


def says_that_there_is_no_reply(told: Told, rows: Sequence[Delivery]) -> Iterator[str]:
    """L8: whoever was promised a reply is told once that none could be read."""
    places = [(row.channel, row.recipient) for row in rows if row.purpose == "note" and told.text in row.text]
    if told.named - set(places):
        yield f"L8 outbox: run {told.run_id} had no reply, and did not say so to {sorted(told.named, key=str)}"
    if len(set(places)) < len(places):
        yield f"L2 outbox: run {told.run_id} said twice that it had no reply: {places}"


class Sending:
    """One letter on its way, as the other side saw it."""

    __slots__ = ("answer", "answered_at", "began_at", "boot", "has_arrived", "letter")

    def __init__(self, letter: OutgoingMessage, boot: Boot, began_at: int) -> None:
        self.letter = letter
        self.boot = boot
        self.began_at = began_at  # true time
        self.has_arrived = False
        self.answer: Answer | None = None  # None: it is under way
        self.answered_at = -1

    @property
    def is_under_way(self) -> bool:
        """Whether its node still waits for an answer."""
        return self.answer is None and self.boot.is_alive


# -- when a letter goes out -------------------------------------------------------------------------------------------


def is_the_same_letter(sending: Sending, earlier: Sequence[Sending]) -> Iterator[str]:
    """L2: what goes out under one id says the same to the same person each time."""
    letter = sending.letter
    for other in earlier:
        if (other.letter.channel, other.letter.to, other.letter.text) != (letter.channel, letter.to, letter.text):
            yield f"L2 outbox: {letter.delivery_id} went out as {other.letter.text!r} and again as {letter.text!r}"
            return


def repeats_have_a_cause(sending: Sending, earlier: Sequence[Sending]) -> Iterator[str]:
    """L2: a letter whose receiver said that it has it goes out again only if whoever heard that had no chance to write
    it down: the node died, stood still or was stopped before the acknowledgement."""
    for other in earlier:
        if other.answer == "sent" and other.boot.is_undisturbed(other.began_at):
            yield f"L2 outbox: {_named(sending)} goes out again, and {other.boot.name} had been told that it arrived"
            return


def one_at_a_time(sending: Sending, others: Sequence[Sending], *, stepped_at: int) -> Iterator[str]:
    """L5: of one addressee one letter is under way, unless another node has it, and stood still past its claim or lost
    it to a clock that was moved."""
    for other in others:
        is_held = other.boot is sending.boot or (
            other.boot.is_undisturbed(other.began_at) and stepped_at < other.began_at
        )
        if other.is_under_way and is_held:
            yield f"L5 outbox: {_named(sending)} goes out while {_named(other)} is under way on {other.boot.name}"


def is_first_in_line(sending: Sending, number: int, head: Delivery | None, row: Addressee) -> Iterator[str]:
    """L1: only the oldest that is pending for a person goes out, under a claim, and not before it may be tried."""
    if head is None or head.delivery_id != number:
        first = "nothing is pending" if head is None else f"{head.delivery_id} is first"
        yield f"L1 outbox: {_named(sending)} goes out of turn; {first}"
    elif row.claimed_until is None:
        yield f"L6 outbox: {_named(sending)} goes out, and nobody holds its addressee"


def tries_are_counted(sending: Sending, begun: int, row: Delivery | None) -> Iterator[str]:
    """L2: an attempt is in the store before it is made, so nobody tries without end."""
    if row is not None and begun > row.attempts:
        yield f"L2 outbox: {_named(sending)} went out {begun} times, the store counts {row.attempts}"


def arrive_in_order(sending: Sending, number: int, newest: int, excused: bool) -> Iterator[str]:
    """L1: letters of one addressee arrive in the order in which they were written, the first time they do."""
    if number < newest and not excused:
        yield f"L1 outbox: {_named(sending)} arrives after {newest}, and was written before it"


# -- what the store says ----------------------------------------------------------------------------------------------

_MOVES: Final = frozenset({("pending", "pending"), ("pending", "delivered"), ("pending", "dead")})


def moves_by_the_table(before: Delivery, after: Delivery, *, is_asked: bool) -> Iterator[str]:
    """L2: what it says never changes; what was delivered stays so; only a person takes a dead letter up again."""
    kept = ("addressee_id", "channel", "recipient", "text", "purpose", "enqueued_at", "run_id", "slug")
    for name in kept:
        if getattr(before, name) != getattr(after, name):
            yield f"L7 outbox: the {name} of {describe(before)} is now {getattr(after, name)!r}"
    move = (before.status, after.status)
    if move not in _MOVES and before != after and not (before.status == "dead" and is_asked):
        yield f"L2 outbox: {describe(before)} became {describe(after)}"
    if not is_asked and not 0 <= after.attempts - before.attempts <= 1:
        yield f"L2 outbox: {describe(before)} became {describe(after)} in one commit"


def delivered_means_arrived(row: Delivery, sendings: Sequence[Sending]) -> Iterator[str]:
    """L8: green means done: the other side said that it has it."""
    if not any(sending.answer == "sent" for sending in sendings):
        yield f"L8 outbox: {describe(row)}, and its receiver never said so"


def given_up_by_policy(
    row: Delivery, sendings: Sequence[Sending], limits: DeliveryLimits, *, now: Instant
) -> Iterator[str]:
    """L7: a dead letter was refused for good, tried as often as allowed, or is too old."""
    is_refused = any(sending.answer == "refused" for sending in sendings)
    if not is_refused and row.attempts <= limits.retries_max and now < row.expires_at:
        yield f"L7 outbox: {describe(row)} was given up after {row.attempts} attempts at {format_instant(now)}"


def leaves_by_hand_or_age(row: Delivery, *, is_asked: bool, pruned_before: Instant) -> Iterator[str]:
    """L7: a row goes when a person discards it, or when it ended long ago."""
    if not is_asked and (row.ended_at is None or row.ended_at >= pruned_before):
        yield f"L7 outbox: {describe(row)} left the store, and nobody discarded it"


def has_its_alarm(row: Addressee, head: Delivery | None, alarm: Alarm | None) -> Iterator[str]:
    """L1: what is pending has an alarm, no later than where the claim runs out or the first in line may be tried."""
    if head is None:
        return
    latest = row.claimed_until or head.next_attempt_at or 0
    if alarm is None or alarm.due_at is None or alarm.due_at > latest:
        due = "none" if alarm is None or alarm.due_at is None else format_instant(alarm.due_at)
        yield f"L1 outbox: {describe(head)} may be tried at {format_instant(latest)}, its alarm is {due}"


def is_not_silent(
    head: Delivery, due_at: Instant, *, now: Instant, is_asleep: bool, ahead_max: Duration
) -> Iterator[str]:
    """L1: nobody sleeps over a letter that is due; and none waits for a time that a wrong clock wrote down."""
    if is_asleep and due_at < now - LEFT_LYING_MAX:
        yield f"L1 outbox: {describe(head)} was due at {format_instant(due_at)}, and nobody looks at it"
    if due_at > now + WAIT_MAX + ahead_max:
        yield f"L3 outbox: {describe(head)} waits until {format_instant(due_at)}, and it is {format_instant(now)}"


def describe(row: Delivery) -> str:
    """A delivery in a few words."""
    return f"delivery {row.delivery_id} to {row.channel}:{row.recipient or ''} ({row.status}, {row.attempts} attempts)"


def _named(sending: Sending) -> str:
    letter = sending.letter
    return f"{letter.delivery_id} to {letter.channel}:{letter.to or ''}"
