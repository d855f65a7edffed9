"""The laws of the heartbeat, as questions about its rows and about turns as the agent saw them.

That beats tile time, that no beat runs twice and that turns are one at a time is judged with the books of schedules,
because the heartbeat has a cadence as they have. What is left is its own: events, wakes, the budget, and its alarm.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from wakeful.core.heartbeat.heartbeat import WINDOW, BeatRules, Heartbeat
from wakeful.core.run.runs import Run
from wakeful.core.run.settlement import CANCELLED, ENTRUSTED, REMOVED
from wakeful.core.schedule.cadence import Cadence
from wakeful.core.time.active_hours import ActiveHours, is_active
from wakeful.core.time.instants import DAY, HOUR, MINUTE, Duration, Instant, format_instant
from wakeful.core.time.timing import Timing, instants_after
from wakeful.ports.store import Alarm, SystemEvent
from worlds.laws import describe

LEFT_LYING_MAX: Final[Duration] = MINUTE
RETRY_MAX: Final[Duration] = HOUR
EVENTS_MAX: Final = 50
VISITED_MAX: Final = 2_000


def was_heard(event: SystemEvent, turn: Run | None, told: frozenset[str]) -> bool:
    """Whether an event that is gone was given to the agent by a turn that succeeded, as the agent itself saw it."""
    return turn is not None and turn.outcome == "succeeded" and event.text in told


def leaves_when_heard(event: SystemEvent, turn: Run | None, told: frozenset[str], *, waiting: int) -> Iterator[str]:
    """L7: an event stays until a turn that succeeded has carried it; or there is no room for it."""
    if not was_heard(event, turn, told) and waiting <= EVENTS_MAX:
        by = "no turn" if turn is None else describe(turn)
        yield f"L7 heartbeat: event {event.event_id} {event.text!r} is gone, and was heard in {by}: {sorted(told)}"


def ends_with_its_event(event: SystemEvent, run: Run | None, *, is_heard: bool) -> Iterator[str]:
    """L8: the run of a schedule is over with its event: green if the agent heard it, and not if it was evicted."""
    if run is None:
        return
    if run.outcome == "waiting" and run.reason == ENTRUSTED:  # else it is about to ask what became of its event
        yield f"L8 heartbeat: {describe(run)} waits, and its event {event.event_id} is gone"
    elif run.is_open:
        return
    elif not is_heard and run.outcome == "succeeded":
        yield f"L8 heartbeat: {describe(run)}, and the agent never heard its event {event.event_id}"
    elif not is_heard and run.error is None and run.reason != REMOVED:
        yield f"L9 heartbeat: {describe(run)} does not say that its event {event.event_id} was evicted"


def is_cancelled(run: Run) -> bool:
    """Whether a person cancelled the run, and withdrew its event with it."""
    return run.outcome == "cancelled" or (run.outcome == "unknown" and run.reason == CANCELLED)


def cancelled_is_withdrawn(run: Run, event: SystemEvent | None) -> Iterator[str]:
    """L8: a run that a person cancelled leaves no event that a later turn would tell."""
    if event is not None and is_cancelled(run):
        yield f"L8 heartbeat: {describe(run)}, and its event {event.event_id} is still to be told"


def cancelled_means_untold(event: SystemEvent, run: Run) -> Iterator[str]:
    """L8: a run whose event a turn has carried may have been heard, so it is not cancelled but unknown."""
    if run.outcome == "cancelled" and event.carried_by is not None:
        yield f"L8 heartbeat: {describe(run)}, and run {event.carried_by} carried its event {event.event_id}"


def green_means_heard(run: Run) -> Iterator[str]:
    """L8: a schedule's event counts as succeeded when a turn that succeeded has told it."""
    yield f"L8 heartbeat: {describe(run)}, and no turn has told its event to the agent"


def is_replaced_by_its_own(before: SystemEvent, after: SystemEvent) -> Iterator[str]:
    """L7: only a newer event of the same key takes its place, and that is visible."""
    if before.text == after.text and before.context_key == after.context_key:
        return
    if before.context_key is None or before.context_key != after.context_key or after.revision <= before.revision:
        yield f"L7 heartbeat: event {before.event_id} {before.text!r} became {after.text!r}"


def is_told_once(text: str, heard: frozenset[str] | set[str]) -> Iterator[str]:
    """L2: what a turn that succeeded has carried is not carried again."""
    if text in heard:
        yield f"L2 heartbeat: the agent is told {text!r} again, and the turn that had told it was green"


def is_within_budget(births: Sequence[Instant], most: int, *, now: Instant) -> Iterator[str]:
    """L4: no more turns begin within an hour than the budget allows."""
    count = sum(now - HOUR < at <= now for at in births)
    if count > most:
        yield f"L4 heartbeat: turn number {count} within an hour begins; the budget is {most}"


def window_is_waited_for(turn: Run, *, now: Instant) -> Iterator[str]:
    """L4: a turn begins when the window of its first request is over, so that others may join it."""
    if now < turn.due_at:
        yield f"L4 heartbeat: {describe(turn)} begins before its window is over at {format_instant(turn.due_at)}"


def wakes_become_turns(before: Heartbeat, after: Heartbeat, born: Sequence[Run]) -> Iterator[str]:
    """L7: what was asked for waits until a turn begins."""
    if before.wakes != "[]" and after.wakes == "[]" and not born:
        yield f"L7 heartbeat: {before.wakes} was asked for, waits no more, and no turn began"


def has_its_alarm(heartbeat: Heartbeat, cadence: Cadence, alarm: Alarm | None, rules: BeatRules) -> Iterator[str]:
    """L1: what was asked for has an alarm no later than its window, the distance between turns or the budget allow,
    unless an open turn has to end first; and so has the next beat."""
    due_at = None if alarm is None else alarm.due_at
    due = "none" if due_at is None else format_instant(due_at)
    opens: list[Instant] = []
    if heartbeat.asked_at is not None:
        opens.append(max(heartbeat.asked_at + WINDOW, (heartbeat.turned_at or 0) + rules.spacing_min))
    if heartbeat.retry_at is not None:
        opens.append(heartbeat.retry_at + WINDOW)
    if opens and cadence.open_run_id is None:
        latest = max(min(opens), heartbeat.held_until or 0)
        if due_at is None or due_at > latest:
            yield f"L1 heartbeat: {heartbeat.wakes} waits for {format_instant(latest)}, its alarm is {due}"
    if due_at is None and cadence.state == "active" and cadence.next_at is not None:
        yield f"L1 heartbeat: the next beat is at {format_instant(cadence.next_at)}, and no alarm is set"


def is_forward(cadence: Cadence, timing: Timing, hours: ActiveHours | None) -> Iterator[str]:
    """L3: the next beat lies on the grid, and no beat inside the active hours is left out before it."""
    if cadence.state != "active" or cadence.next_at is None:
        return
    for visited, instant in enumerate(instants_after(timing, cadence.planned_through)):
        if instant == cadence.next_at or visited > VISITED_MAX:
            return
        if instant > cadence.next_at or hours is None or is_active(hours, instant):
            planned, grid = format_instant(cadence.next_at), format_instant(instant)
            yield f"L3 heartbeat: the next beat is at {planned}; by the grid and the hours it is {grid}"
            return


def is_not_silent(
    due_at: Instant, every: Duration, *, now: Instant, is_asleep: bool, ahead_max: Duration
) -> Iterator[str]:
    """L3: nobody sleeps over a turn that is due, and none waits for a time that a wrong clock wrote down."""
    if is_asleep and due_at < now - LEFT_LYING_MAX:
        yield f"L3 heartbeat: it was due at {format_instant(due_at)}, and nobody looks at it"
    if due_at > now + max(every, RETRY_MAX) + DAY + ahead_max:
        yield f"L3 heartbeat: it waits until {format_instant(due_at)}, and it is {format_instant(now)}"
