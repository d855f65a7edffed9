"""Draws: how a simulated attempt ends, taken from what the schedule did before.

Theory of operation
-------------------
A *record* is what the last attempts of a schedule did: how each ended, how long it took, what it used. A simulated
attempt repeats one of them as a whole, so that costs go with the durations and outcomes they belong to. Which one is
decided by a hash of the seed, the slug, the planned time and the number of the attempt. So the same seed gives the same
result, and it does not depend on what else is simulated: two plans differ only where the plans themselves differ.
"""

from hashlib import blake2b
from typing import Final, Literal, NamedTuple, TypeAlias

from wakeful.core.run.usage import Usage
from wakeful.core.time.instants import Duration, Instant

RECORDED_MAX: Final = 200
"""How many of a schedule's last rows make up its record."""

SampleOutcome: TypeAlias = Literal["succeeded", "failed", "timedOut", "unconfirmed"]

_RANGE: Final = 1 << 64


class Sample(NamedTuple):
    """One attempt that happened."""

    outcome: SampleOutcome
    took: Duration
    usage: Usage | None = None
    reason: str | None = None
    error: str | None = None


class Record(NamedTuple):
    """What the last attempts of a schedule did."""

    samples: tuple[Sample, ...] = ()
    checked: int = 0  # how many instants its check decided about
    nothing: int = 0  # in how many of these there was nothing to do


TOOK_MIN: Final[Duration] = 1
"""Every attempt takes some time. Otherwise it would end in the same tick in which others wait to be checked."""

UNRECORDED: Final = Sample("succeeded", TOOK_MIN)
"""A schedule without history succeeds immediately, at unknown cost."""


class Draw(NamedTuple):
    """The random numbers of one attempt."""

    sample: int
    trouble: float  # in [0, 1)
    check: float


def draw(seed: int, slug: str, planned_at: Instant, attempt: int) -> Draw:
    """The same numbers for the same attempt, whatever else is simulated."""
    digest = blake2b(f"{seed}/{slug}/{planned_at}/{attempt}".encode(), digest_size=24).digest()
    first, second, third = (int.from_bytes(digest[at : at + 8]) for at in (0, 8, 16))
    return Draw(first, second / _RANGE, third / _RANGE)


def sample_of(record: Record, drawn: Draw) -> Sample:
    """The attempt that is repeated."""
    return record.samples[drawn.sample % len(record.samples)] if record.samples else UNRECORDED


def finds_nothing(record: Record, drawn: Draw) -> bool:
    """Whether the check before the turn finds nothing to do."""
    return record.checked > 0 and drawn.check * record.checked < record.nothing
