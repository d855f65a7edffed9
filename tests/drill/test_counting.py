"""How a drill counts: on a ledger that the kernel wrote, and on one that somebody broke."""

from collections.abc import Sequence

import pytest

from features.kit import Bench, Bot, World, instant, virtual
from wakeful import every
from wakeful.core.run.runs import Attempt
from wakeful.core.schedule.actions import Call
from wakeful.core.schedule.definition import Definition
from wakeful.core.time.instants import HOUR, MINUTE, SECOND
from wakeful.core.time.timing import Every
from wakeful.drill.counting import ClockSteps, Counted, Expected, count
from wakeful.drill.failpoints import Failpoint
from wakeful.drill.laws import Seen, attempts_begin_in_order, begun_is_recorded, unknown_is_not_repeated
from wakeful.drill.observed import Observation
from wakeful.testing.virtual_clock import EPOCH


def test_when_a_stepped_clock_reached_an_instant() -> None:
    """An instant that was jumped over was due at the jump; one that came twice, the first time."""
    steps = ClockSteps(since=0)
    steps.step(1_000, 3 * HOUR)
    steps.step(5_000, 0)
    assert steps.due(500) == 500
    assert steps.due(2 * HOUR) == 1_000, "jumped over"
    assert steps.due(3 * HOUR + 2_000) == 2_000
    assert steps.due(7_000) == 1_000, "the clock was beyond it already"
    assert steps.due(4 * HOUR) == 4 * HOUR, "it never got there while it was ahead"


@pytest.mark.parametrize("text", ["claim:after:3", "mark:after:1:freeze", "enter:before:1", "mark:held:2"])
def test_a_failpoint_as_text(text: str) -> None:
    """As it is written into the control file of a daemon."""
    assert str(Failpoint.parse(text)) == text


def test_an_attempt_that_begins_after_a_later_one() -> None:
    """Its node had lost the run."""
    seen = [Seen(7, 1, attempt, "key", None, 0, began_at) for attempt, began_at in ((1, 900), (2, 500))]
    (sentence,) = attempts_begin_in_order("job", seen)
    assert "attempt 1 of run 7 began" in sentence
    assert list(attempts_begin_in_order("job", [*seen[::-1], Seen(7, 1, 3, "key", None, 0, 950)])) == [sentence]
    assert list(attempts_begin_in_order("job", [seen[1], seen[0]._replace(attempt=3)])) == []


@virtual
async def test_a_crash_between_acknowledgement_and_commit(world: World) -> None:
    """The target saw the attempt, and its record says that nothing was sent."""
    app, _ = await _hours(world)
    (run,) = await app.store.read(lambda tx: tx.runs.page(limit=1))
    seen = [Seen(run.run_id, 1, attempt, "key", None, 0, attempt) for attempt in (1, 2)]
    lost = Attempt(run.run_id, 1, 0, 1, "crashed", "claimed", None, 1)
    (sentence,) = begun_is_recorded("job", run, [lost], seen)
    assert f"attempt 1 of run {run.run_id}" in sentence
    assert list(begun_is_recorded("job", run, [lost], seen[1:])) == [], "nothing was sent, as it says"
    assert list(begun_is_recorded("job", run, [lost._replace(rung="sent")], seen)) == []
    assert list(begun_is_recorded("job", run, [lost._replace(outcome="failed")], seen)) == [], "its end is known"


@virtual
async def test_a_repetition_that_is_ruled_out(world: World) -> None:
    """Only what was answered, or never began, may be tried again; the answer of the repetition does not excuse it."""
    app, _ = await _hours(world)
    (run,) = await app.store.read(lambda tx: tx.runs.page(limit=1))
    seen = [Seen(run.run_id, 1, attempt, "key", None, 0, attempt) for attempt in (1, 2)]
    lost, failed = (Attempt(run.run_id, 1, 0, 1, outcome, "sent", None, 1) for outcome in ("crashed", "failed"))
    assert len(list(unknown_is_not_repeated("job", run, [lost], seen))) == 1
    assert len(list(unknown_is_not_repeated("job", run, [lost, failed._replace(attempt=2)], seen))) == 1
    assert list(unknown_is_not_repeated("job", run, [failed], seen)) == []
    assert list(unknown_is_not_repeated("job", run, [lost], seen[1:])) == []


async def _hours(world: World) -> tuple[Bench, Bot]:
    """Ten and a half hours with an outage of three, in which no instant is run late."""
    bot = Bot(world)
    app = await world.open(bot)
    await app.add("hourly", every("1h"), catch_up="skip", on_crash="unknown")
    await world.sleep("4h30m")
    app = await world.reopen(app, bot, off="3h")
    await world.sleep("3h")
    return app, bot


def _seen(bot: Bot) -> list[Observation]:
    return [
        Observation(fire.run_id, fire.attempt, fire.idempotency_key, instant(began), instant(began) + MINUTE)
        for fire, began in zip(bot.fires, bot.began, strict=True)
    ]


async def _counted(app: Bench, seen: Sequence[Observation], until: int = EPOCH + 10 * HOUR) -> Counted:
    expected = Expected([Definition("hourly", Every(HOUR, EPOCH), Call("bot", {}))], EPOCH, until)
    found: Counted = await app.store.read(lambda tx: count(tx, expected, seen, ClockSteps(EPOCH)))
    return found


@virtual
async def test_everything_that_was_planned_ran_or_is_excused(world: World) -> None:
    """Seven hours ran, three fell into the outage."""
    app, bot = await _hours(world)
    found = await _counted(app, _seen(bot))
    assert found == Counted(planned=10, ran=7, excused=3, reasons={"outage": 3})
    late = [_seen(bot)[0]._replace(began_at=EPOCH + HOUR + 5 * SECOND), *_seen(bot)[1:]]
    assert (await _counted(app, late))[5:7] == (1, 5 * SECOND)


@pytest.mark.parametrize(
    ("sql", "lost", "words"),
    [
        ("DELETE FROM runs WHERE outcome = 'missed'", 3, "3 planned instants have no row"),
        ("UPDATE runs SET outcome = 'running' WHERE run_id = (SELECT max(run_id) FROM runs)", 1, "never ended"),
        ("UPDATE schedules SET slug = 'other'", 1, "the schedule is gone"),
    ],
)
@virtual
async def test_what_is_lost(world: World, sql: str, lost: int, words: str) -> None:
    """A row that is missing, a run that hangs, a schedule that is gone."""
    app, bot = await _hours(world)
    world.tamper(sql)
    found = await _counted(app, _seen(bot))
    assert found.lost == lost
    assert any(words in finding for finding in found.findings)


@virtual
async def test_a_success_that_nobody_saw_is_lost(world: World) -> None:
    """The witness decides, not the ledger."""
    app, bot = await _hours(world)
    found = await _counted(app, _seen(bot)[1:])
    assert (found.planned, found.ran, found.excused, found.lost) == (10, 6, 3, 1)


@virtual
async def test_a_schedule_that_stops_before_its_end_is_lost(world: World) -> None:
    """Its own border is not believed: the definition says how far it had to go."""
    app, bot = await _hours(world)
    found = await _counted(app, _seen(bot), until=EPOCH + 15 * HOUR)
    assert (found.planned, found.lost) == (15, 5)


@virtual
async def test_what_is_doubled(world: World) -> None:
    """The same attempt twice, and a repetition that the schedule rules out."""
    app, bot = await _hours(world)
    seen = _seen(bot)
    again = seen[-1]._replace(began_at=seen[-1].began_at + HOUR, ended_at=None)
    found = await _counted(app, [*seen, again])
    assert found.doubled == 2
    assert [words for words in ("began twice", "onCrash: unknown") if any(words in one for one in found.findings)] == [
        "began twice",
        "onCrash: unknown",
    ]
