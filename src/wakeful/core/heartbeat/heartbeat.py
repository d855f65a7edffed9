"""The heartbeat: beats on a grid, wakes between them, and the one turn they are merged into.

Theory of operation
-------------------
A *beat* is a planned instant of the reserved schedule `heartbeat`: its cadence is an ordinary one
(`core.schedule.cadence`) on a persistent grid, so every beat ends in the ledger like any other instant (L1, L3). A
*wake* is an unplanned request for a turn. Both open a window: all requests within 250 ms of the first become one turn,
under the reason of the highest priority (the first of equals). A beat that falls into the window is merged, and a wake
within 250 ms after a beat joins it. So a beat starts its turn at the end of its window, and both orders of arrival
follow the same rule.

While a turn is open, wakes wait and beats are blocked. A failed turn requests a `retry`, one second later and then with
growing delays. Wakes requested by turns themselves keep a minimum distance from the previous turn. The budget counts
turns started within the last hour. When it is used up, wakes wait and beats are skipped; it stays *tripped* until at
most half of it is used and nothing had to wait for an hour, so a loop raises one incident however long it lasts.

Active hours apply to beats only. The next beat is planned inside them; beats outside are one counted gap. If a grid is
so wide that it steps over a whole window, the last beat before the window is due when it opens, so no interval and no
clock change can silence the heartbeat.

A pause stops beats and retries; wakes still become turns, as a paused schedule still runs when asked. The beats of the
pause are one counted gap, written when it ends.
"""

import json
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from wakeful.core.schedule.cadence import Cadence, Gap, Rules, Start, resume, ring, without
from wakeful.core.schedule.policies import GRACE, ladder_delay
from wakeful.core.time.active_hours import ActiveHours, is_active, last_active, next_active, next_closing
from wakeful.core.time.instants import HOUR, SECOND, Duration, Instant
from wakeful.core.time.timing import Every, latest_until, next_after, tally

Reason: TypeAlias = Literal["retry", "interval", "cron", "message", "manual", "hook"]

WINDOW: Final[Duration] = 250
RETRY_FIRST: Final[Duration] = SECOND
PRIORITIES: Final[dict[Reason, int]] = {"retry": 0, "interval": 1, "cron": 2, "message": 2, "manual": 3, "hook": 3}
OUTSIDE: Final = "outside active hours"


class Wake(NamedTuple):
    """Requests with the same reason that wait for their turn."""

    reason: Reason
    is_own: bool  # requested by a turn, through its tools
    times: int = 1


class Heartbeat(NamedTuple):
    """The state of the heartbeat besides its cadence, in the order of the table's columns."""

    owner_id: int
    every: Duration
    anchor_at: Instant
    wakes: str  # JSON: [[reason, is own, times], …], in the order of the requests
    asked_at: Instant | None  # when the first of them arrived and opened the window
    retry_at: Instant | None  # when a failed turn is retried
    held_until: Instant | None  # the budget allows no turn before this; kept for an hour afterwards
    turned_at: Instant | None  # when the last turn ended
    turns: str  # JSON: start times of the turns of the last hour
    tripped_at: Instant | None  # when the budget was exceeded


@dataclass(frozen=True, slots=True)
class BeatRules:
    """The settings that decide when turns happen."""

    hours: ActiveHours | None = None
    spacing_min: Duration = 10 * SECOND
    turns_per_hour_max: int = 60


class PlannedTurn(NamedTuple):
    """A turn that is about to start."""

    reasons: tuple[Reason, ...]  # in the order of the requests
    beat: Start | None  # the planned instant it covers
    asked_at: Instant

    @property
    def reason(self) -> Reason:
        return leading(self.reasons)


class HeartbeatDecision(NamedTuple):
    """The result of `look`: gaps for the ledger in time order, a turn if one starts, and the new state."""

    gaps: tuple[Gap, ...]
    turning: PlannedTurn | None
    heartbeat: Heartbeat
    cadence: Cadence
    has_tripped: bool = False


def timing_of(heartbeat: Heartbeat) -> Every:
    """The grid of the beats."""
    return Every(heartbeat.every, heartbeat.anchor_at)


def leading(reasons: tuple[Reason, ...]) -> Reason:
    """The reason of the highest priority, the first of equals."""
    return max(reasons, key=PRIORITIES.__getitem__)


def wakes_of(heartbeat: Heartbeat) -> tuple[Wake, ...]:
    """The wakes that wait for their turn."""
    return tuple(Wake(reason, bool(is_own), times) for reason, is_own, times in _listed(heartbeat.wakes))


def asked(heartbeat: Heartbeat, reason: Reason, *, is_own: bool, now: Instant) -> Heartbeat:
    """The heartbeat after one more request. The first one opens the window."""
    wakes = list(wakes_of(heartbeat))
    for place, known in enumerate(wakes):
        if known[:2] == (reason, is_own):
            wakes[place] = known._replace(times=known.times + 1)
            break
    else:
        wakes.append(Wake(reason, is_own))
    first = now if heartbeat.asked_at is None else heartbeat.asked_at
    return heartbeat._replace(wakes=_written(wakes), asked_at=first)


def after_turn(heartbeat: Heartbeat, errors_in_a_row: int, *, is_failed: bool, now: Instant) -> Heartbeat:
    """The heartbeat after a turn ended; a failed one requests a retry."""
    retry_at = now + retry_delay(errors_in_a_row) if is_failed else None
    return heartbeat._replace(turned_at=now, retry_at=retry_at)


def without_turn(heartbeat: Heartbeat) -> Heartbeat:
    """The heartbeat after a beat that needed no turn: it uses nothing of the budget."""
    return heartbeat._replace(turns=json.dumps(_listed(heartbeat.turns)[:-1]))


def retry_delay(errors_in_a_row: int) -> Duration:
    """One second after the first failed turn, then growing delays."""
    return RETRY_FIRST if errors_in_a_row <= 1 else ladder_delay(errors_in_a_row - 1)


def flush_at(heartbeat: Heartbeat, rules: BeatRules) -> Instant | None:
    """When waiting requests become a turn if none is open; beats are not considered."""
    due: list[Instant] = []
    if heartbeat.asked_at is not None:
        opens = heartbeat.asked_at + WINDOW
        if heartbeat.turned_at is not None and all(wake.is_own for wake in wakes_of(heartbeat)):
            opens = max(opens, heartbeat.turned_at + rules.spacing_min)
        due.append(opens)
    if heartbeat.retry_at is not None:
        due.append(heartbeat.retry_at + WINDOW)
    if not due:
        return None
    return min(due) if heartbeat.held_until is None else max(min(due), heartbeat.held_until)


def rings_at(heartbeat: Heartbeat, cadence: Cadence, rules: BeatRules) -> Instant | None:
    """When the next decision is due; None: not until something else happens."""
    is_open = cadence.open_run_id is not None
    due = [] if is_open else [flush_at(heartbeat, rules)]
    if cadence.state == "active" and cadence.next_at is not None:
        beat = due_of(rules.hours, cadence.next_at)
        due.append(beat if is_open else beat + WINDOW)
    if cadence.state == "paused":
        due.append(cadence.resume_at)
    return min((at for at in due if at is not None), default=None)


def next_beat(timing: Every, hours: ActiveHours | None, after: Instant) -> Instant | None:
    """The next grid instant after a time that becomes a beat: the first inside the active hours or, if the grid steps
    over the whole next window, the last one before it (`due_of` returns when it is due)."""
    beat = next_after(timing, after)
    if beat is None or hours is None or is_active(hours, beat):
        return beat
    opens = next_active(hours, beat)
    inside = next_after(timing, opens - 1)
    if inside is not None and inside < next_closing(hours, opens):
        return inside
    return latest_until(timing, opens, since=after)


def due_of(hours: ActiveHours | None, beat: Instant) -> Instant:
    """When a beat is due: immediately, or when the active hours start."""
    return beat if hours is None else next_active(hours, beat)


def resumed(
    heartbeat: Heartbeat, cadence: Cadence, rules: BeatRules, *, now: Instant, taken: frozenset[Instant]
) -> tuple[list[Gap], Cadence]:
    """Resume beats from now after a halt: the beats of the halt are counted as one gap, none is caught up."""
    plan = resume(cadence, Rules(timing_of(heartbeat)), now=now, taken=taken)
    following = next_beat(timing_of(heartbeat), rules.hours, plan.cadence.planned_through)
    return [row for row in plan.rows if isinstance(row, Gap)], plan.cadence._replace(next_at=following)


def look(
    heartbeat: Heartbeat,
    cadence: Cadence,
    rules: BeatRules,
    *,
    now: Instant,
    gap_reason: str,
    taken: frozenset[Instant],
    busy_run: int | None,
) -> HeartbeatDecision:
    """Decide the beats that are due, and whether a turn starts. A beat that nobody waits for is skipped because of
    `busy_run`, which holds the agent's lane."""
    turns = turns_within(heartbeat, now)
    is_full = len(turns) >= rules.turns_per_hour_max
    is_open = cadence.open_run_id is not None
    flush = None if is_open else flush_at(heartbeat, rules)
    is_asked = flush is not None and flush <= now
    gaps: list[Gap] = []
    beat: Start | None = None
    if cadence.state == "paused" and cadence.resume_at is not None and cadence.resume_at <= now:
        errors = cadence.consecutive_errors  # only a person resets the count
        gaps, cadence = resumed(heartbeat, cadence, rules, now=cadence.resume_at, taken=taken)
        cadence = cadence._replace(consecutive_errors=errors)
    if _is_beat_due(cadence, rules, is_soon=is_open or is_asked, now=now):
        rows, cadence = _beats(heartbeat, cadence, rules, now=now, gap_reason=gap_reason, taken=taken)
        for row in rows:
            fate = _fate(row, timing_of(heartbeat), rules, now, gap_reason, is_full, None if is_asked else busy_run)
            if isinstance(fate, Gap):
                gaps.append(fate)
            else:
                beat = fate
    is_overdrawn = is_full and (is_asked or any(gap.reason == "budget" for gap in gaps))
    has_tripped = is_overdrawn and heartbeat.tripped_at is None
    heartbeat = _counted(heartbeat, rules, turns, is_overdrawn=is_overdrawn, now=now)
    if is_full or (beat is None and not is_asked):
        return HeartbeatDecision(tuple(gaps), None, heartbeat, cadence, has_tripped)
    turning = PlannedTurn(_reasons(heartbeat, beat, now), beat, _asked_at(heartbeat, beat, now))
    heartbeat = heartbeat._replace(wakes="[]", asked_at=None, retry_at=None, turns=json.dumps([*turns, now]))
    return HeartbeatDecision(tuple(gaps), turning, heartbeat, cadence, has_tripped)


def turns_within(heartbeat: Heartbeat, now: Instant) -> list[Instant]:
    """Start times of the turns of the last hour. After the clock went back, later ones are ignored."""
    return [at for at in _listed(heartbeat.turns) if now - HOUR < at <= now]


def _is_beat_due(cadence: Cadence, rules: BeatRules, *, is_soon: bool, now: Instant) -> bool:
    """Whether a beat is decided now: at the end of its window, or immediately if there is no window to wait for."""
    if cadence.state != "active" or cadence.next_at is None:
        return False
    return due_of(rules.hours, cadence.next_at) + (0 if is_soon else WINDOW) <= now


def _beats(
    heartbeat: Heartbeat,
    cadence: Cadence,
    rules: BeatRules,
    *,
    now: Instant,
    gap_reason: str,
    taken: frozenset[Instant],
) -> tuple[list[Start | Gap], Cadence]:
    """The beats that are due, each with the decision of the cadence."""
    timing = timing_of(heartbeat)
    rows: list[Start | Gap] = []
    left_out = tally(timing, cadence.planned_through, (cadence.next_at or now) - 1)
    if left_out.first is not None and left_out.last is not None:
        gap = Gap(left_out.first, left_out.last, left_out.count, "skipped", OUTSIDE)
        rows += without([gap], taken, timing)
    # Beats after the hours closed are due when they open again, and are not decided before.
    until = now if rules.hours is None else last_active(rules.hours, now)
    plan = ring(cadence, Rules(timing), now=until, gap_reason=gap_reason, taken=taken)
    following = next_beat(timing, rules.hours, plan.cadence.planned_through)
    return [*rows, *plan.rows], plan.cadence._replace(next_at=following)


def _fate(
    row: Start | Gap,
    timing: Every,
    rules: BeatRules,
    now: Instant,
    gap_reason: str,
    is_full: bool,
    busy_run: int | None,
) -> Start | Gap:
    """The decision for a beat that the cadence would start."""
    if isinstance(row, Gap):
        return row
    at = row.planned_at
    if rules.hours is not None and next_beat(timing, rules.hours, at - 1) != at:
        return Gap(at, at, 1, "skipped", OUTSIDE)
    if rules.hours is not None and not is_active(rules.hours, now):  # the beat is late, and the hours have ended
        return Gap(at, at, 1, "missed", gap_reason)
    if is_full:
        return Gap(at, at, 1, "skipped", "budget")
    if busy_run is not None:
        return Gap(at, at, 1, "skipped", "busy", busy_run)
    due_at = due_of(rules.hours, at)
    return row._replace(due_at=due_at, trigger="schedule") if now - due_at <= GRACE else row._replace(due_at=due_at)


def _counted(
    heartbeat: Heartbeat, rules: BeatRules, turns: list[Instant], *, is_overdrawn: bool, now: Instant
) -> Heartbeat:
    """The heartbeat with its current budget."""
    tripped_at, held_until = heartbeat.tripped_at, heartbeat.held_until
    if is_overdrawn:
        tripped_at = now if tripped_at is None else tripped_at
        held_until = turns[-rules.turns_per_hour_max] + HOUR
    elif len(turns) * 2 <= rules.turns_per_hour_max and (held_until is None or now >= held_until + HOUR):
        tripped_at = held_until = None
    return heartbeat._replace(turns=json.dumps(turns), tripped_at=tripped_at, held_until=held_until)


def _reasons(heartbeat: Heartbeat, beat: Start | None, now: Instant) -> tuple[Reason, ...]:
    """All reasons merged into the turn, in the order of the requests."""
    requests: list[tuple[Instant, Reason]] = []
    if beat is not None:
        requests.append((beat.planned_at, "interval"))
    if heartbeat.retry_at is not None and heartbeat.retry_at <= now:
        requests.append((heartbeat.retry_at, "retry"))
    requests += [(heartbeat.asked_at or now, wake.reason) for wake in wakes_of(heartbeat)]
    requests.sort(key=lambda request: request[0])
    return tuple(dict.fromkeys(reason for _, reason in requests))


def _asked_at(heartbeat: Heartbeat, beat: Start | None, now: Instant) -> Instant:
    """When the first of the merged requests arrived."""
    given = (heartbeat.asked_at, heartbeat.retry_at, None if beat is None else beat.due_at)
    return min([at for at in given if at is not None and at <= now], default=now)


def _listed(text: str) -> list[Any]:
    """A JSON list of the row; unreadable text counts as empty, so that the heartbeat keeps going (L9)."""
    try:
        kept = json.loads(text)
    except ValueError:
        return []
    return kept if isinstance(kept, list) else []


def _written(wakes: list[Wake]) -> str:
    return json.dumps([[wake.reason, int(wake.is_own), wake.times] for wake in wakes], separators=(",", ":"))
