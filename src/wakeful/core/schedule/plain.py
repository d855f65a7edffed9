"""The plain path: most schedules, most of the time, in a few narrow statements.

An instant takes the plain path if nothing but its timing decides about it. Two things must hold:

- The *definition* is plain: it uses only the fields listed here, a timing that depends on nothing but the clock, and an
  action without a gate or a reply. A field that is added later is not plain until it is listed. `Compiled` remembers
  the answer, so it is as current as the definition itself, and no stored flag has to be kept true.
- The *cadence* is clear: active, no open or queued run, no backoff, no backlog, and no instant that ran before the
  clock was set back. The query that picks due schedules tests this on the row it locks.

Then the instant is the only one due and at most the grace period late, it becomes one run, which starts immediately or
waits for its lane, and the cadence moves to the next instant, if there is one. When that run succeeds at its first
attempt, and the schedule had no errors, the settlement is known as well: a schedule without a next instant is done.
What the run leaves behind is its own: its text, where that is delivered, and what it cost.

Everything else takes the general path (`cadence.ring`, `settlement.after_close`), which would decide the same: the
random worlds compare both for every plain instant.
"""

from dataclasses import fields, replace
from operator import attrgetter
from typing import Final, NamedTuple

from wakeful.core.run.results import DONE, Done, Ending
from wakeful.core.run.settlement import Close
from wakeful.core.schedule.actions import Call, Command, Http
from wakeful.core.schedule.cadence import Cadence, Rules, is_spent
from wakeful.core.schedule.definition import Definition
from wakeful.core.schedule.policies import GRACE
from wakeful.core.time.instants import Instant
from wakeful.core.time.timing import Cron, Every, Once, Times, next_after

FREE: Final = frozenset({
    "slug", "timing", "action", "enabled", "catch_up", "catch_up_max", "lateness_max", "overlap", "timeout", "on_crash",
    "retry", "errors_max", "stagger", "alert", "lane",
})  # fmt: skip
"""Fields that do not matter while an instant is on time, alone, and its run succeeds at the first attempt. One that a
start needs belongs to the rules, to the work (`features.schedules.compiled.Compiled.work`), or to each claim."""
_OTHERS: Final = [field for field in fields(Definition) if field.name not in FREE]
_USUAL: Final = tuple(field.default for field in _OTHERS)
_others: Final = attrgetter(*(field.name for field in _OTHERS))


def is_plain(definition: Definition) -> bool:
    """Whether the plain path may take this definition's instants."""
    return (
        isinstance(definition.timing, Every | Cron | Times | Once)
        and isinstance(definition.action, Call | Command | Http)
        and _others(definition) == _USUAL
    )


def starts_plainly(definition: Definition) -> bool:
    """Whether the plain path may start this definition's instants. Where the output goes matters only at the end."""
    return is_plain(definition if definition.deliver is None else replace(definition, deliver=None))


def is_clear(cadence: Cadence) -> bool:
    """Whether nothing but its timing decides about the next instant of this cadence. The stores ask the same of the
    rows they lock (`stores.shared.plain.CLEAR`)."""
    return (
        cadence.state == "active"
        and cadence.next_at is not None
        and _unsettled(cadence) == _NOTHING
        and cadence.ran_through <= cadence.planned_through
    )


_unsettled: Final = attrgetter("open_run_id", "queued_run_id", "backoff_until", "catch_up_until")
_NOTHING: Final = (None,) * 4


class Following(NamedTuple):
    """The next instant, and when its alarm is due; both None if there is none."""

    next_at: Instant | None
    due_at: Instant | None


def following(rules: Rules, instant: Instant, due_at: Instant, now: Instant) -> Following | None:
    """What comes after this instant; None if the plain path must not take it: it is late, its alarm is stale, or it is
    not the only one due."""
    if now - due_at > GRACE or due_at != instant + rules.offset:
        return None
    next_at = next_after(rules.timing, instant)
    if next_at is None:
        return _LAST if is_spent(rules, None) else None
    return None if next_at + rules.offset <= now else Following(next_at, next_at + rules.offset)


def is_plain_success(ending: Ending) -> bool:
    """Whether the first attempt of a plain run ended in the plain way: it succeeded, and what it leaves behind is text
    and a cost."""
    if ending is DONE:
        return True
    return (
        isinstance(ending, Done)
        and ending.rung == "finished"
        and (ending.session_id, ending.effects, ending.carries, ending.refused) == _NOTHING_MORE
    )


_NOTHING_MORE: Final = (DONE.session_id, DONE.effects, DONE.carries, DONE.refused)
_LAST: Final = Following(None, None)
SUCCESS: Final = Close("succeeded", "finished")
"""The settlement of a plain success."""
