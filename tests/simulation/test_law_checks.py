"""The checks of the laws themselves, on rows made by hand: valid rows pass, and each violation is reported.

These are tests of the checkers in `tests/worlds`, not of the product: docs/laws.md names the tests of each law.
"""

from collections.abc import Iterable
from typing import Any

import pytest

from wakeful.core.run.runs import Attempt, Run
from wakeful.core.schedule.cadence import Cadence, Rules
from wakeful.core.time.instants import DAY, HOUR, MINUTE, SECOND
from wakeful.core.time.timing import Cron, Every, Manual, Once
from wakeful.ports.store import ALARM_RUN, ALARM_SCHEDULE, Alarm, SystemEvent
from worlds import heartbeat_laws, laws
from worlds.laws import Era, Seen, Shift

T0 = 1_767_225_600_000  # 2026-01-01T00:00Z, the anchor of the hourly grid below
HOURLY = Every(HOUR, T0)
ERAS = (Era(T0, HOURLY),)


def run(run_id: int = 1, hour: float = 1, *, until: float | None = None, count: int = 1, **changes: Any) -> Run:
    """A row at an hour of the grid; closed and succeeded unless told otherwise."""
    planned_at = int(T0 + hour * HOUR)
    row = Run(
        run_id=run_id, kind="schedule", schedule_id=1, occurrence=planned_at, planned_at=planned_at,
        planned_until=None if until is None else int(T0 + until * HOUR), instants=count, due_at=planned_at,
        trigger="schedule", outcome="succeeded", reason=None, rung=None, attempt=1, crashes=0, waits=0, priority=1,
        lane=None, owner=None, fence=1, version=1, started_at=None, claimed_at=None, ended_at=None, deadline_at=None,
        next_attempt_at=None, error=None, result=None, ladder=None, blocked_by=None, process=None, definition=None,
        stuck=0,
    )  # fmt: skip
    return row._replace(**changes)


def gap(run_id: int, hour: float, until: float | None = None, count: int = 1, **changes: Any) -> Run:
    """A stretch that did not run."""
    changes = {"outcome": "missed", "reason": "outage", "attempt": 0, **changes}
    return run(run_id, hour, until=until, count=count, **changes)


def cadence(through: float = 3, following: float | None = 4, **changes: Any) -> Cadence:
    """An active schedule planned through an hour of the grid."""
    row = Cadence(
        schedule_id=1, version=1, state="active", state_reason=None, state_at=T0, resume_at=None,
        planned_through=int(T0 + through * HOUR), next_at=None if following is None else int(T0 + following * HOUR),
        ran_through=0, backoff_until=None, catch_up_until=None, open_run_id=None, queued_run_id=None, last_row_id=None,
        consecutive_errors=0, last_run_at=None, last_outcome=None, last_error=None, last_success_at=None,
        session_id=None,
    )  # fmt: skip
    return row._replace(**changes)


def seen(attempt: int = 1, run_id: int = 1, **changes: Any) -> Seen:
    """An attempt under way on node 1."""
    return Seen(run_id, 1, attempt, "key-1", None, 1, 0)._replace(**changes)


def tried(attempt: int, outcome: str) -> Attempt:
    return Attempt(1, attempt, T0, T0, outcome, None, None, 1)


def check(found: Iterable[str], law: str, words: str | None) -> None:
    """Nothing wrong when `words` is None, else exactly these words in a sentence of this law."""
    sentences = list(found)
    if words is None:
        assert sentences == []
    else:
        assert any(words in sentence and sentence.startswith(law) for sentence in sentences), sentences


# -- L1 ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        pytest.param([run(1, 1), run(2, 2), run(3, 3)], None, id="one row each"),
        pytest.param([gap(1, 1, 3, 3)], None, id="one counted stretch"),
        pytest.param([run(1, 1), gap(2, 2, 3, 2)], None, id="a run and a stretch"),
        pytest.param([run(2, 2), run(3, 3)], "no row covers 2026-01-01T01:00", id="hole at the start"),
        pytest.param([run(1, 1), run(3, 3)], "no row covers 2026-01-01T02:00", id="hole in the middle"),
        pytest.param([run(1, 1), run(2, 2)], "no row covers 2026-01-01T03:00", id="hole at the end"),
        pytest.param([], "no row covers 2026-01-01T01:00", id="nothing at all"),
        pytest.param([run(1, 1), run(9, 1), run(2, 2), run(3, 3)], "covers again", id="an instant twice"),
        pytest.param([gap(1, 1, 2, 2), run(2, 2), run(3, 3)], "covers again", id="a run inside a stretch"),
        pytest.param([gap(1, 1, 2, 2), gap(2, 2, 3, 2)], "covers again", id="stretches that overlap"),
        pytest.param([gap(1, 1, 3, 2)], "says 2 instants; there are 3", id="counted too few"),
        pytest.param([gap(1, 1, 3, 4)], "says 4 instants; there are 3", id="counted too many"),
        pytest.param([run(1, 1), run(9, 1.5), gap(2, 2, 3, 2)], "not at a planned instant", id="off the grid"),
        pytest.param([gap(1, 1, 4, 4)], "reaches beyond", id="beyond the border"),
        pytest.param([run(1, 1), run(2, 2, until=3, count=2)], "more than one instant", id="a run for two instants"),
    ],
)
def test_l1_rows_tile_time(rows: list[Run], words: str | None) -> None:
    """Every instant up to the border is in exactly one row, and a stretch counts what it covers."""
    check(laws.tiles("x", ERAS, rows, after=T0, through=T0 + 3 * HOUR), "L1", words)


def test_l1_an_edit_divides_the_past_from_the_future() -> None:
    """Instants before the edit are the old timing's, after it the new one's."""
    eras = (Era(T0, HOURLY), Era(T0 + 2 * HOUR + 1, Every(30 * MINUTE, T0)))
    rows = [run(1, 1), run(2, 2), run(3, 2.5), run(4, 3)]
    check(laws.tiles("x", eras, rows, after=T0, through=T0 + 3 * HOUR), "L1", None)
    check(laws.tiles("x", eras, [*rows[:2], rows[3]], after=T0, through=T0 + 3 * HOUR), "L1", "no row covers")
    early = [run(9, 1.5), *rows]
    check(laws.tiles("x", eras, sorted(early), after=T0, through=T0 + 3 * HOUR), "L1", "not at a planned instant")


def test_l1_what_ran_while_the_clock_was_ahead_is_neither_hole_nor_repeat() -> None:
    """It covers its instant if it is one of the grid, and is beside the point if it is not."""
    ahead = run(7, 2)
    off_grid = run(8, 2.5)
    rows = [run(1, 1), ahead, off_grid, run(3, 3)]
    known = frozenset({7, 8})
    check(laws.tiles("x", ERAS, rows, after=T0, through=T0 + 3 * HOUR, ran_ahead=known), "L1", None)
    check(laws.tiles("x", ERAS, rows, after=T0, through=T0 + 3 * HOUR), "L1", "run 8")
    missing = [run(1, 1), off_grid, run(3, 3)]
    check(laws.tiles("x", ERAS, missing, after=T0, through=T0 + 3 * HOUR, ran_ahead=known), "L1", "T02:00")
    inside_a_gap = [gap(1, 1, 3, 3), off_grid]
    check(laws.tiles("x", ERAS, inside_a_gap, after=T0, through=T0 + 3 * HOUR, ran_ahead=known), "L1", None)
    repeated = [*rows, run(9, 2)]
    check(laws.tiles("x", ERAS, repeated, after=T0, through=T0 + 3 * HOUR, ran_ahead=known), "L1", "covers again")


def test_l1_a_gap_of_a_former_timing_may_lie_across_the_border() -> None:
    """The clock came back to before an edit: what the old timing counted beyond cannot be counted any more."""
    rows = [run(1, 1), gap(2, 2, 8, 7)]
    uncut = {2: T0 + 3 * HOUR}
    check(laws.tiles("x", ERAS, rows, after=T0, through=T0 + 3 * HOUR, uncut=uncut), "L1", None)
    check(laws.tiles("x", ERAS, rows, after=T0, through=T0 + 3 * HOUR), "L1", "reaches beyond")
    check(laws.tiles("x", ERAS, rows[:1], after=T0, through=T0 + 3 * HOUR, uncut=uncut), "L1", "T02:00")
    # Beyond the border it lay across, time was planned anew: there it covers nothing.
    later = [*rows, run(4, 4), run(5, 5)]
    check(laws.tiles("x", ERAS, later, after=T0, through=T0 + 5 * HOUR, uncut=uncut), "L1", None)
    check(laws.tiles("x", ERAS, later[:3], after=T0, through=T0 + 5 * HOUR, uncut=uncut), "L1", "T05:00")


def test_l1_long_stretches_are_counted_without_visiting_them() -> None:
    """A year of seconds-long grid is one division, and still exact."""
    eras = (Era(T0, Every(10 * SECOND, T0)),)
    count = 365 * DAY // (10 * SECOND)
    year = gap(1, 0, 365 * 24, count, planned_at=T0 + 10 * SECOND)
    check(laws.tiles("x", eras, [year], after=T0, through=T0 + 365 * DAY), "L1", None)
    check(laws.tiles("x", eras, [year._replace(instants=count - 1)], after=T0, through=T0 + 365 * DAY), "L1", "says")


def test_l1_daylight_saving_is_counted_as_the_zone_has_it() -> None:
    """The repeated hour of Berlin's October is one instant of a daily cron at 02:30."""
    daily = Cron("30 2 * * *", "Europe/Berlin")
    start = 1_792_800_000_000  # 2026-10-24T00:00Z
    eras = (Era(start, daily),)
    row = gap(1, 0, count=3, planned_at=start + 30 * MINUTE, planned_until=start + 2 * DAY + 90 * MINUTE)
    check(laws.tiles("x", eras, [row], after=start, through=start + 2 * DAY + 90 * MINUTE), "L1", None)
    check(laws.tiles("x", eras, [row._replace(instants=4)], after=start, through=start + 3 * DAY), "L1", "there are 3")


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        pytest.param(run(), run(outcome="failed"), None, id="an outcome changes"),
        pytest.param(gap(1, 1, 3, 3), gap(1, 1, 2, 2), None, id="a gap is cut"),
        pytest.param(gap(1, 1, 2, 2), gap(1, 1, 3, 3), None, id="a gap grows"),
        pytest.param(run(1, 1), run(1, 2), "was moved", id="a run moves to another instant"),
        pytest.param(run(1, 1), run(1, 1, until=2, count=2), "was moved", id="a run grows"),
        pytest.param(gap(1, 2, 3, 2), gap(1, 1, 3, 3), "was moved", id="a gap grows backwards"),
        pytest.param(run(), run(schedule_id=2), "was moved", id="a run changes hands"),
    ],
)
def test_l1_rows_stay_in_place(before: Run, after: Run, words: str | None) -> None:
    """What a row covers is written once."""
    check(laws.stays_in_place("x", Shift(before, after)), "L1", words)


# -- L2 ---------------------------------------------------------------------------------------------------------------


def test_l2_the_check_reports_a_second_row_for_an_instant() -> None:
    """Two rows with one occurrence are one too many; manual runs have occurrences of their own."""
    check(laws.one_row_per_instant("x", [run(1, 1), run(2, 2), run(3, 1, occurrence=-3)]), "L2", None)
    check(laws.one_row_per_instant("x", [run(1, 1), run(2, 1)]), "L2", "second run of the instant")


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("waiting", "running", None),
        ("running", "succeeded", None),
        ("unknown", "timedOut", None),
        ("succeeded", "running", "became running"),
        ("failed", "waiting", "became waiting"),
        ("missed", "running", "became running"),
        ("waiting", "timedOut", "became timedOut"),
    ],
)
def test_l2_what_is_settled_stays_settled(before: Any, after: Any, words: str | None) -> None:
    """A run moves along the transition table only."""
    check(laws.moves_by_the_table("x", Shift(run(outcome=before), run(outcome=after))), "L2", words)


@pytest.mark.parametrize(
    ("row", "ended", "begun", "words"),
    [
        pytest.param(run(attempt=1), [], 1, None, id="first try"),
        pytest.param(run(attempt=2, crashes=1), [tried(1, "crashed")], 2, None, id="one more after a crash"),
        pytest.param(
            run(attempt=4), [tried(1, "failed"), tried(2, "busy"), tried(3, "timedOut")], 4, None, id="retries"
        ),
        pytest.param(
            run(attempt=3, crashes=1), [tried(1, "crashed"), tried(2, "failed")], 3, None, id="a crash and a retry"
        ),
        pytest.param(run(attempt=3), [], 3, "begun 3 times although only 0", id="a third attempt, uncounted"),
        pytest.param(
            run(attempt=3), [tried(1, "crashed"), tried(2, "crashed")], 2, "after 2 crashes", id="again after two"
        ),
        pytest.param(run(attempt=2, crashes=2, outcome="waiting"), [], 2, "still open after 2", id="open after two"),
        pytest.param(run(attempt=1), [], 2, "begun 2 times and counts 1", id="more begun than counted"),
    ],
)
def test_l2_a_crash_costs_at_most_one_more_attempt(
    row: Run, ended: list[Attempt], begun: int, words: str | None
) -> None:
    """Answered attempts may be followed by retries; crashes by one more attempt in all."""
    check(laws.attempts_are_bounded("x", row, ended, [seen(n + 1) for n in range(begun)]), "L2", words)


def test_l2_attempts_begin_once_under_one_key() -> None:
    """No attempt begins twice, and no attempt has another key."""
    check(laws.attempts_begin_once("x", [seen(1), seen(2)]), "L2", None)
    check(laws.attempts_begin_once("x", [seen(1), seen(1, node=2)]), "L2", "on node 1 and on 2")
    check(laws.attempts_begin_once("x", [seen(1), seen(2, key="other")]), "L2", "has the keys")


def test_l2_a_key_belongs_to_one_run() -> None:
    """Otherwise the target would take the second for a repetition of the first."""
    check(laws.keys_are_unique("x", seen(), {}), "L2", None)
    check(laws.keys_are_unique("x", seen(), {"key-1": 1}), "L2", None)
    check(laws.keys_are_unique("x", seen(), {"key-1": 7}), "L2", "share the key")


RUNNING = run(outcome="running")
PAUSED = cadence(state="paused")


@pytest.mark.parametrize(
    ("before", "after", "shift", "words"),
    [
        pytest.param(cadence(), cadence(), Shift(None, RUNNING), None, id="active"),
        pytest.param(PAUSED, PAUSED, Shift(None, RUNNING), "paused", id="paused"),
        pytest.param(cadence(state="disabled"), cadence(state="disabled"), Shift(None, RUNNING), "disabled", id="off"),
        pytest.param(cadence(state="paused"), None, Shift(None, RUNNING), "although", id="removed while paused"),
        pytest.param(
            PAUSED, PAUSED, Shift(None, run(trigger="manual", outcome="running")), None,
            id="by hand while paused",
        ),
        pytest.param(PAUSED, PAUSED, Shift(RUNNING, run()), None, id="begun before"),
        pytest.param(
            PAUSED, PAUSED, Shift(run(attempt=0, outcome="waiting"), RUNNING), "began",
            id="a waiting run begins while paused",
        ),
        pytest.param(PAUSED, PAUSED, Shift(None, gap(2, 2)), None, id="a gap"),
        pytest.param(
            cadence(state="paused"), cadence(state_at=T0 + 2 * HOUR), Shift(None, RUNNING), "before paused ended",
            id="an instant of the pause",
        ),
        pytest.param(
            cadence(state="paused"), cadence(state_at=T0 + HOUR // 2), Shift(None, RUNNING), None, id="after the pause"
        ),
    ],
)  # fmt: skip
def test_l2_what_is_halted_does_not_fire(
    before: Cadence, after: Cadence | None, shift: Shift, words: str | None
) -> None:
    """Nothing planned begins while a schedule is paused or disabled; what began before goes on."""
    check(laws.halted_does_not_fire("x", before, after, shift), "L2", words)


# -- L3 ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("row", "words"),
    [
        pytest.param(cadence(3, 4), None, id="the next hour"),
        pytest.param(cadence(3.5, 4), None, id="from between two instants"),
        pytest.param(cadence(3, 3), "not after", id="standing still"),
        pytest.param(cadence(3, 2), "not after", id="backwards"),
        pytest.param(cadence(3, 5), "the grid says 2026-01-01T04:00", id="an instant dropped"),
        pytest.param(cadence(3, 4.25), "the grid says", id="off the grid"),
        pytest.param(cadence(3, None), "the grid says", id="nothing ahead"),
        pytest.param(cadence(3, None, state="paused"), None, id="paused"),
    ],
)
def test_l3_next_is_the_first_instant_after_the_border(row: Cadence, words: str | None) -> None:
    """Strictly forward, and on the grid."""
    check(laws.is_forward("x", row, HOURLY), "L3", words)


def test_l3_what_is_spent_has_no_next() -> None:
    """A single instant that is behind, and a schedule by hand only."""
    check(laws.is_forward("x", cadence(3, None), Once(T0 + HOUR)), "L3", None)
    check(laws.is_forward("x", cadence(3, None), Manual()), "L3", None)


def test_l3_runs_of_past_instants_count_for_nothing() -> None:
    """Neither as errors nor as the last run; another run in the same commit may."""
    asked, own = run(priority=2, trigger="replay", outcome="failed"), run(2, outcome="failed")
    before = cadence(consecutive_errors=1)
    counted, last = cadence(consecutive_errors=2), cadence(consecutive_errors=1, last_outcome="failed")
    for after, shifts, words in (
        (before, [Shift(None, asked)], None),
        (counted, [Shift(None, asked)], "counts as a run of the plan"),
        (last, [Shift(None, asked)], "counts as a run of the plan"),
        (counted, [Shift(None, asked), Shift(None, own)], None),
        (counted, [Shift(None, own)], None),
    ):
        check(laws.backfills_count_for_nothing("x", before, after, shifts), "L3", words)


def test_l3_done_means_that_nothing_is_left() -> None:
    """A clock that was ahead and came back leaves a schedule with instants to come, and not done."""
    done = cadence(3, None, state="done")
    check(laws.done_is_done("x", done, Once(T0 + HOUR), frozenset()), "L3", None)
    check(laws.done_is_done("x", done, Once(T0 + 9 * HOUR), frozenset()), "L3", "still to come")
    check(laws.done_is_done("x", done, Once(T0 + 9 * HOUR), frozenset({T0 + 9 * HOUR})), "L3", None)
    check(laws.done_is_done("x", cadence(), HOURLY, frozenset()), "L3", None)


RULES = Rules(HOURLY)


def alarm(hour: float | None, **changes: Any) -> Alarm:
    due_at = None if hour is None else int(T0 + hour * HOUR)
    return Alarm(ALARM_SCHEDULE, 1, due_at, 1, None, 0)._replace(**changes)


@pytest.mark.parametrize(
    ("row", "rings", "rules", "words"),
    [
        pytest.param(cadence(3, 4), alarm(4), RULES, None, id="at its instant"),
        pytest.param(cadence(3, 4), alarm(4.25), Rules(HOURLY, offset=HOUR // 4), None, id="at its stagger"),
        pytest.param(cadence(3, 4, backoff_until=T0 + 6 * HOUR), alarm(6), RULES, None, id="backing off"),
        pytest.param(cadence(3, 4, state="paused"), None, RULES, None, id="paused"),
        pytest.param(cadence(3, 4, catch_up_until=T0, open_run_id=1), alarm(None), RULES, None, id="one by one"),
        pytest.param(cadence(3, 4), None, RULES, "no alarm is set", id="no alarm"),
        pytest.param(cadence(3, 4), alarm(None), RULES, "no alarm is set", id="an alarm that rests"),
        pytest.param(cadence(3, 4), alarm(5), RULES, "the alarm rings at", id="too late"),
        pytest.param(cadence(3, 4), alarm(3), RULES, "the alarm rings at", id="too early"),
        pytest.param(cadence(3, 4, backoff_until=T0 + 6 * HOUR), alarm(7), RULES, "the alarm rings", id="beyond"),
    ],
)
def test_l3_an_active_schedule_has_its_alarm(
    row: Cadence, rings: Alarm | None, rules: Rules, words: str | None
) -> None:
    """At the next instant, or held back by a backlog or a backoff, and by nothing else."""
    check(laws.has_its_alarm("x", row, rings, rules), "L3", words)


@pytest.mark.parametrize(
    ("row", "due_at", "is_asleep", "words"),
    [
        pytest.param(cadence(3, 4), T0 + 4 * HOUR, True, None, id="due later"),
        pytest.param(cadence(3, 4), T0 + 3 * HOUR - 5 * MINUTE, False, None, id="due, and the clock looks again"),
        pytest.param(cadence(3, 4), T0 + 3 * HOUR - 5 * MINUTE, True, "was due", id="due, and the clock sleeps"),
        pytest.param(cadence(9, 10), T0 + 10 * HOUR, True, "silent until then", id="planned beyond the clock"),
        pytest.param(cadence(9, 10, state="paused"), None, True, None, id="paused"),
    ],
)
def test_l3_no_silence_after_a_tick(row: Cadence, due_at: int | None, is_asleep: bool, words: str | None) -> None:
    """After a look at the clock nothing that was due is left lying, and nothing is planned beyond the clock."""
    found = laws.is_not_silent("x", row, due_at, now=T0 + 3 * HOUR, is_asleep=is_asleep, ahead_max=MINUTE)
    check(found, "L3", words)


def test_l3_the_border_moves_only_when_instants_are_decided() -> None:
    """A manual run, a retry or an edit of the prompt leaves it where it is."""
    before, after = cadence(3, 4), cadence(4, 5)
    check(laws.grid_stays("x", before, after, [Shift(None, run(4, 4))]), "L3", None)
    check(laws.grid_stays("x", before, before, [Shift(None, run(9, 3.5, trigger="manual"))]), "L3", None)
    check(laws.grid_stays("x", before, after, [Shift(gap(1, 1, 3, 3), gap(1, 1, 4, 4))]), "L3", None)
    check(laws.grid_stays("x", before, after, []), "L3", "no instant was decided")
    check(laws.grid_stays("x", before, after, [Shift(None, run(9, 4, trigger="manual"))]), "L3", "no instant")
    check(laws.grid_stays("x", before, after, [Shift(run(3, 3, attempt=1), run(3, 3, attempt=2))]), "L3", "no instant")


# -- L4 ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hour", "now", "rules", "backlog", "words"),
    [
        pytest.param(3, 3.01, Rules(HOURLY, catch_up="skip"), 0, None, id="on time"),
        pytest.param(3, 3.5, Rules(HOURLY, catch_up="once"), 1, None, id="the latest one"),
        pytest.param(3, 9.5, Rules(HOURLY, catch_up="all"), 3, None, id="one of the backlog"),
        pytest.param(3, 3.5, Rules(HOURLY, lateness_max=HOUR), 1, None, id="late enough"),
        pytest.param(3, 3.5, Rules(HOURLY, catch_up="skip"), 0, "policy is to skip", id="skip"),
        pytest.param(3, 4.5, Rules(HOURLY, catch_up="once"), 1, "newer 2026-01-01T04:00", id="not the latest"),
        pytest.param(3, 9.5, Rules(HOURLY, catch_up="all", catch_up_max=3), 4, "at most 3", id="too many"),
        pytest.param(3, 3.5, Rules(HOURLY, lateness_max=MINUTE), 1, "at most 1m is allowed", id="too late"),
    ],
)
def test_l4_late_instants_start_by_their_policy(
    hour: float, now: float, rules: Rules, backlog: int, words: str | None
) -> None:
    """After an outage each schedule is caught up as it says, and no more than that."""
    row = run(1, hour, outcome="running", trigger="catchUp")
    check(laws.start_obeys_policy("x", row, rules, now=int(T0 + now * HOUR), backlog=backlog), "L4", words)


def test_l4_capacity_is_a_limit() -> None:
    """A full node is full."""
    check(laws.within_capacity(1, 4, 4), "L4", None)
    check(laws.within_capacity(1, 5, 4), "L4", "5 attempts are running at once")


# -- L5 ---------------------------------------------------------------------------------------------------------------


def in_lane(run_id: int, **changes: Any) -> Run:
    return run(run_id, run_id, **{"outcome": "running", "lane": "a", **changes})


@pytest.mark.parametrize(
    ("busy", "holders", "words"),
    [
        pytest.param([in_lane(1)], {"a": 1}, None, id="one holds it"),
        pytest.param([in_lane(1), in_lane(2, lane="b"), run(3)], {"a": 1, "b": 2}, None, id="two lanes"),
        pytest.param([], {}, None, id="nobody"),
        pytest.param([in_lane(1), in_lane(2)], {"a": 1}, "are in it at once", id="two at once"),
        pytest.param([in_lane(1)], {}, "the store says None", id="runs without holding it"),
        pytest.param([in_lane(1)], {"a": 9}, "the store says 9", id="another holds it"),
        pytest.param([], {"a": 1}, "neither running nor stuck", id="held by nobody's run"),
    ],
)
def test_l5_one_at_a_time_per_lane(busy: list[Run], holders: dict[str, int], words: str | None) -> None:
    """Who runs in a lane holds it, and who holds it runs."""
    check(laws.one_per_lane(busy, holders), "L5", words)


@pytest.mark.parametrize(
    ("under_way", "words"),
    [
        pytest.param([seen(1, 1, lane="a"), seen(1, 2, lane="b", schedule_id=2)], None, id="two lanes"),
        pytest.param([seen(1, 1, lane="a", ended_at=5), seen(1, 2, lane="a", schedule_id=2)], None, id="one after one"),
        pytest.param([seen(1, 1, is_ghost=True), seen(2, 1)], None, id="beside a ghost"),
        pytest.param([seen(1, 1, lane="a"), seen(1, 2, lane="a", schedule_id=2)], "run in it at once", id="one lane"),
        pytest.param([seen(1, 1), seen(1, 2)], "schedule 1: runs 1 and 2", id="two of one schedule"),
        pytest.param([seen(1, 1), seen(2, 1)], "schedule 1: runs 1 and 1", id="two attempts of one run"),
    ],
)
def test_l5_seen_from_outside_too(under_way: list[Seen], words: str | None) -> None:
    """Whatever the store believes: two attempts of one lane or one schedule are never seen running at once."""
    check(laws.seen_one_at_a_time(under_way), "L5", words)


@pytest.mark.parametrize(
    ("row", "open_rows", "rules", "words"),
    [
        pytest.param(cadence(open_run_id=1), [in_lane(1)], RULES, None, id="one"),
        pytest.param(
            cadence(open_run_id=1, queued_run_id=2), [in_lane(1), run(2, 2, outcome="waiting")],
            Rules(HOURLY, overlap="queue"), None, id="one and one queued",
        ),
        pytest.param(cadence(), [run()], RULES, None, id="closed ones do not count"),
        pytest.param(
            cadence(open_run_id=1), [in_lane(1), run(2, 2, outcome="waiting")], RULES, "2 runs are open", id="two"
        ),
        pytest.param(
            cadence(open_run_id=1, queued_run_id=2), [in_lane(1), in_lane(2)], Rules(HOURLY, overlap="queue"),
            "2 runs are running", id="both running",
        ),
        pytest.param(cadence(), [in_lane(1)], RULES, "does not know of it", id="forgotten"),
    ],
)  # fmt: skip
def test_l5_open_runs_are_few(row: Cadence, open_rows: list[Run], rules: Rules, words: str | None) -> None:
    """One open run per schedule, and one queued behind it where the schedule wants that."""
    check(laws.open_runs_are_few("x", row, open_rows, rules), "L5", words)


def test_l5_nobody_is_parked_at_a_free_lane() -> None:
    """Freeing a lane lets the next one go; a lost hand-over would park it for ever."""
    parked = Alarm(ALARM_RUN, 5, T0, 1, "a", 1)
    check(laws.nobody_waits_at_a_free_lane([parked], {"a": 1}), "L5", None)
    check(laws.nobody_waits_at_a_free_lane([parked], {"b": 1}), "L5", "parked although nobody holds the lane")
    called = parked._replace(ref=6, parked=0)
    check(laws.nobody_waits_at_a_free_lane([parked, called], {}), "L5", None)
    elsewhere = [parked, called._replace(lane="b"), called._replace(due_at=None)]
    check(laws.nobody_waits_at_a_free_lane(elsewhere, {}), "L5", "parked although nobody holds the lane")


# -- L6 ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        pytest.param(run(fence=1, attempt=1), run(fence=2, attempt=2), None, id="grows with the attempt"),
        pytest.param(run(fence=1), run(fence=1, outcome="failed"), None, id="stays while it is settled"),
        pytest.param(run(fence=3), run(fence=2), "went back from 3 to 2", id="goes back"),
        pytest.param(run(fence=1, attempt=1), run(fence=1, attempt=2), "fence 1 of the attempt before", id="stays"),
    ],
)
def test_l6_the_fence_grows(before: Run, after: Run, words: str | None) -> None:
    """Each attempt has a fence of its own."""
    check(laws.fence_grows("x", Shift(before, after)), "L6", words)


DONE = {"ended_at": 5, "ending": "done"}


@pytest.mark.parametrize(
    ("before", "after", "attempts", "words"),
    [
        pytest.param(RUNNING, run(), [seen(1, **DONE)], None, id="its own answer"),
        pytest.param(
            run(outcome="running", attempt=2), run(attempt=2), [seen(1, is_ghost=True), seen(2, **DONE)], None,
            id="the second attempt's answer beside a ghost",
        ),
        pytest.param(
            run(outcome="running", attempt=2), run(attempt=2), [seen(1, is_ghost=True, **DONE), seen(2)], "still runs",
            id="the late answer of a ghost",
        ),
        pytest.param(RUNNING, run(), [], "never seen to begin", id="out of thin air"),
        pytest.param(RUNNING, run(), [seen(1, ended_at=5, ending="failed")], "ended failed", id="a failure as success"),
        pytest.param(RUNNING, run(outcome="timedOut"), [seen(1, ended_at=5, ending="cancelled")], None, id="timed out"),
        pytest.param(RUNNING, run(outcome="timedOut"), [seen(1)], "called timed out", id="timed out and still there"),
        pytest.param(RUNNING, run(outcome="failed"), [seen(1)], "counts as failed", id="failed and still there"),
        pytest.param(RUNNING, run(outcome="unknown"), [seen(1)], None, id="unknown claims nothing"),
        pytest.param(run(outcome="waiting"), run(), [seen(1, **DONE)], "while nobody held it", id="nobody held it"),
    ],
)  # fmt: skip
def test_l6_only_the_attempt_that_holds_a_run_settles_it(
    before: Run, after: Run, attempts: list[Seen], words: str | None
) -> None:
    """And what is said of its end really happened."""
    check(laws.answers_are_its_own("x", Shift(before, after), attempts), "L6", words)


def test_l6_a_retry_follows_an_end() -> None:
    """An attempt that failed or timed out is over before the next one is planned."""
    shift = Shift(RUNNING, run(outcome="waiting"))
    check(laws.retry_follows_an_end("x", shift, [tried(1, "timedOut")], [seen(1, ended_at=5)]), "L6", None)
    check(laws.retry_follows_an_end("x", shift, [tried(1, "crashed")], [seen(1, is_ghost=True)]), "L6", None)
    check(laws.retry_follows_an_end("x", shift, [tried(1, "timedOut")], [seen(1)]), "L6", "called timedOut; it still")


STUCK = run(1, 1, outcome="unknown", stuck=1, lane="a")


@pytest.mark.parametrize(
    ("row", "where", "holders", "words"),
    [
        pytest.param(STUCK, cadence(open_run_id=1), {"a": 1}, None, id="keeps both"),
        pytest.param(STUCK, None, {"a": 1}, None, id="its schedule was removed"),
        pytest.param(run(), cadence(), {}, None, id="not stuck"),
        pytest.param(STUCK, cadence(open_run_id=1), {}, "its lane a is held by None", id="lost its lane"),
        pytest.param(STUCK, cadence(), {"a": 1}, "has let go of it", id="lost its schedule"),
        pytest.param(
            STUCK._replace(outcome="timedOut"), cadence(open_run_id=1), {"a": 1}, "as if its end were known", id="named"
        ),
    ],
)
def test_l6_what_is_stuck_keeps_its_place(
    row: Run, where: Cadence | None, holders: dict[str, int], words: str | None
) -> None:
    """What could not be ended is still out there."""
    check(laws.stuck_keeps_its_place("x", row, where, holders), "L6", words)


def test_l6_ghosts_leave() -> None:
    """A node that finds its lease gone ends what it began; it may take a moment."""
    check(laws.ghosts_leave([seen(is_ghost=True)], awake_for=5 * SECOND, patience=MINUTE), "L6", None)
    check(laws.ghosts_leave([seen(is_ghost=True)], awake_for=HOUR, patience=MINUTE), "L6", "lost the lease")
    check(laws.ghosts_leave([seen(is_ghost=True, ended_at=5)], awake_for=HOUR, patience=MINUTE), "L6", None)


def test_l6_lease_is_kept() -> None:
    """It is taken from a node that was not up, and from no other."""
    check(laws.lease_is_kept("node-0", 7, steady_for=MINUTE, lease=MINUTE), "L6", None)
    check(laws.lease_is_kept("node-0", 7, steady_for=HOUR, lease=MINUTE), "L6", "another node took it")


def test_l6_runs_belong_to_nodes_that_exist() -> None:
    """Running: to a node in the books. Waiting: to nobody."""
    check(laws.open_runs_have_owners("x", run(outcome="running", owner=1), frozenset({1})), "L6", None)
    check(laws.open_runs_have_owners("x", run(outcome="waiting"), frozenset({1})), "L6", None)
    check(laws.open_runs_have_owners("x", run(outcome="running", owner=2), frozenset({1})), "L6", "nobody registered")
    check(laws.open_runs_have_owners("x", run(outcome="running", owner=None), frozenset({1})), "L6", "node None")
    check(laws.open_runs_have_owners("x", run(outcome="waiting", owner=1), frozenset({1})), "L6", "still owned")


# -- L8 ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("outcome", "carried_by", "words"),
    [("cancelled", None, None), ("unknown", 9, None), ("cancelled", 9, "run 9 carried its event 3")],
)
def test_l8_an_event_that_was_carried_is_not_cancelled(outcome: str, carried_by: int | None, words: str | None) -> None:
    """Its agent may have heard it."""
    event = SystemEvent(3, None, "schedule", "x", T0, 1, "s1", 1, carried_by, None)
    row = run(outcome=outcome, reason="cancelled" if outcome == "unknown" else None)
    assert heartbeat_laws.is_cancelled(row)
    check(heartbeat_laws.cancelled_means_untold(event, row), "L8", words)
    check(heartbeat_laws.cancelled_is_withdrawn(row, None), "L8", None)
    check(heartbeat_laws.cancelled_is_withdrawn(row, event), "L8", "its event 3 is still to be told")
    check(heartbeat_laws.cancelled_is_withdrawn(run(), event), "L8", None)
