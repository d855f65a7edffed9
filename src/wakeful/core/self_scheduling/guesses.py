"""Wrong codes from a chat: how many there may be before codes are no longer accepted.

A code has 8 of 32 characters. Without a limit, a program that writes as an approver could try codes until one fits.
Wrong codes are counted by sender over an hour that begins with the first. A sender with too many waits for the end of
that hour. Too many from all senders together lock every code that is out: what they stand for is then decided on the
command line or the page."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from wakeful.core.time.instants import HOUR, Duration, Instant

WINDOW: Final[Duration] = HOUR
OF_ONE_MAX: Final = 5
OF_ALL_MAX: Final = 10


class Guesses(NamedTuple):
    """One sender's wrong codes."""

    wrong: int
    since: Instant


def current(guesses: Mapping[str, Guesses], now: Instant) -> dict[str, Guesses]:
    """The guesses that still count; times written by a clock that was ahead do not."""
    return {sender: guess for sender, guess in guesses.items() if guess.since <= now < guess.since + WINDOW}


def after_wrong(guesses: Mapping[str, Guesses], sender: str, now: Instant) -> dict[str, Guesses]:
    """The guesses with one more wrong code from this sender."""
    known = current(guesses, now)
    before = known.get(sender, Guesses(0, now))
    return {**known, sender: Guesses(before.wrong + 1, before.since)}


def waits_until(guesses: Mapping[str, Guesses], sender: str, now: Instant) -> Instant | None:
    """Until when codes from this sender are not accepted; None if they are."""
    known = current(guesses, now).get(sender)
    return None if known is None or known.wrong < OF_ONE_MAX else known.since + WINDOW


def is_locking(guesses: Mapping[str, Guesses], now: Instant) -> bool:
    """Whether there are so many that all outstanding codes are locked."""
    return sum(guess.wrong for guess in current(guesses, now).values()) >= OF_ALL_MAX
