"""Resources: a run that could not begin because the system had none left.

What never began is not an attempt. If our own code cannot start a program, open a connection or write a file because
descriptors, memory, processes or disk space are used up, the run waits and gives its lane and capacity back: 5 s first,
then twice as long each time, up to 5 min. After an hour it fails if other runs began meanwhile, because then it is the
run that needs too much. The time of the first refusal is kept with the run until an attempt begins.
"""

import errno
from typing import Final

from wakeful.core.run.results import NotBegun
from wakeful.core.time.instants import HOUR, MINUTE, SECOND, Duration, Instant

RESOURCES: Final = "resources"
"""The reason of a run that waits for them, or failed because it did not get them."""

WAIT_FIRST: Final[Duration] = 5 * SECOND
WAIT_MAX: Final[Duration] = 5 * MINUTE
GIVE_UP_AFTER: Final[Duration] = HOUR

LACKING: Final = frozenset(
    {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN, errno.ENOSPC, errno.EDQUOT},
)


def is_lack(error: BaseException | None) -> bool:
    """Whether the system refused something because it has none left."""
    return isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno in LACKING)


def again_at(since: Instant, now: Instant) -> Instant:
    """When to try again: the pauses double, because each is as long as all before it and the first together."""
    return now + min(max(now - since, 0) + WAIT_FIRST, WAIT_MAX)


def is_given_up(since: Instant, refused: NotBegun) -> bool:
    """Whether the run fails: it has waited for long, and other runs began meanwhile."""
    others = refused.others_began_at
    return refused.at - since >= GIVE_UP_AFTER and others is not None and others > since
