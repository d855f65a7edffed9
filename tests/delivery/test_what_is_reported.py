"""What is reported and when: each kind of subject against each kind of trouble, row by row."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from delivery.kit import Person, reachable
from delivery.report_stage import FIRST, STAGES
from delivery.report_table import TABLE, table_of_docs
from features.kit import Bench, Bot, World, as_ms, instant, virtual
from features.quota_kit import Shop, config, open_quota
from sampling import sampled
from wakeful import RunView, every
from wakeful.core.time.instants import HOUR, MINUTE, Instant, format_duration, parse_duration
from wakeful.core.time.timing import Timing

BOOM = RuntimeError("boom")
MINUTELY, HOURLY = every("1m"), every("1h")
SILENT_MAX = HOUR + 5 * MINUTE
BAD = frozenset({"failed", "timedOut", "unknown", "unconfirmed"})
PAGE = Path(__file__).parents[2] / "docs" / "alerts.md"
OWNERS = {"heartbeat": "heartbeat", "handler": "workflow:inbox", "slot": "slot:main"}


def told(person: Person, first: Instant) -> str:
    """What they were told, as the table has it, to the minute."""
    return ", ".join(f"{_since(first, at)} {_sign(text)}" for at, text in zip(person.at, person.got, strict=True))


def _since(first: Instant, at: str) -> str:
    return format_duration((instant(at[:14]) - first) // MINUTE * MINUTE)


def _sign(text: str) -> str:
    return "ok" if ": recovered after " in text else "!"


def bad_stretches(runs: list[RunView], end: Instant) -> list[tuple[Instant, Instant]]:
    """From the time of a bad instant to the end of the next good one, by the ledger."""
    found: list[tuple[Instant, Instant]] = []
    since: Instant | None = None
    for run in sorted(runs, key=lambda run: run.planned_at):
        if run.trigger == "manual":
            continue
        is_bad = run.outcome in BAD or (run.outcome in ("waiting", "running") and run.error is not None)
        if is_bad and since is None:
            since = as_ms(run.planned_at)
        elif run.outcome == "succeeded" and since is not None and run.ended_at is not None:
            found.append((since, as_ms(run.ended_at)))
            since = None
    return found if since is None else [*found, (since, end)]


def untold(person: Person, runs: list[RunView], end: Instant) -> list[tuple[Instant, Instant]]:
    """Stretches that lasted too long without a word."""
    reports = [instant(at[:14]) for at, text in zip(person.at, person.got, strict=True) if _sign(text) == "!"]
    return [
        (since, until)
        for since, until in bad_stretches(runs, end)
        if until - since > SILENT_MAX and not any(since <= at <= since + SILENT_MAX for at in reports)
    ]


@pytest.mark.parametrize(("kind", "trouble"), sampled(TABLE, every=5))
@virtual
async def test_each_kind_of_subject_against_each_kind_of_trouble(world: World, kind: str, trouble: str) -> None:
    """Nothing is reported twice, and nothing that stays bad is silent for longer than `within` and five minutes."""
    row, person, first = TABLE[kind, trouble], Person(world), world.now + parse_duration(FIRST.get(kind, "0s"))
    app = await STAGES[kind](world, kind, trouble, person)
    end = first + parse_duration(row.lasts)
    await world.sleep(max(0, end - world.now))
    assert told(person, first) == row.told, person.got
    signs = [_sign(text) for text in person.got]
    assert all(one != other for one, other in pairwise(signs)), "reported twice"
    if trouble in ("quota", "paused"):  # what waits, or rests, is not bad
        return
    runs = await app.runs(OWNERS.get(kind, "x"), limit=1000)
    assert untold(person, runs, world.now) == []
    assert trouble == "long" or any(run.outcome in BAD or run.attempt > 1 for run in runs)


def test_the_page_shows_this_table() -> None:
    """`docs/alerts.md` says what is asserted here."""
    assert table_of_docs() in PAGE.read_text()


@pytest.mark.parametrize("mood", ["unreachable", "refused"])
@virtual
async def test_a_slot_that_cannot_be_read_is_reported_once(world: World, mood: str) -> None:
    """Long before it is disabled, or a wake of it fails; and once more when it can be read again."""
    shop, person = Shop(world), Person(world)
    shop.account("sk-main").warm("3h")
    slot = {"times": ["12:00"], "poll": "20m"}
    await open_quota(world, shop, config(world, {"main": slot}), people={"phone": person})
    await world.sleep("10m")
    shop.is_unreachable, shop.account("sk-main").mood = mood == "unreachable", mood
    await world.until("01-01 02:00:00")
    (text,) = person.got
    assert text.startswith("slot:main: its quota cannot be read: ")
    assert "`wakeful slots resume main`" in text
    await world.until("01-01 11:00:00")
    assert len(person.got) == 1
    shop.is_unreachable, shop.account("sk-main").mood = False, "normal"
    await world.until("01-01 20:00:00")
    assert [_sign(text) for text in person.got] == ["!", "ok"]


def flapping(bot: Bot) -> None:
    """The bot fails two of five."""
    asked = iter(range(1_000_000))

    def act() -> None:
        if next(asked) % 5 < 2:
            raise BOOM

    bot.usual = act


async def failing_for(world: World, app: Bench, duration: str, timing: Timing = HOURLY, **options: Any) -> Bot:
    bot = Bot(world, BOOM)
    await app.add("x", timing, call=bot, **options)
    await world.sleep(duration)
    return bot


@virtual
async def test_a_report_has_the_cause_the_cure_and_how_to_resume(world: World) -> None:
    """The sentence of `why` is in it; a schedule that is disabled says how it is enabled again."""
    app, people = await reachable(world, "phone")
    await failing_for(world, app, "2h", max_consecutive_errors=2)
    (text,) = people["phone"].got
    assert text.startswith("x: it failed 2 times in a row. ")
    assert (await app.why("x")).sentence in text
    assert text.count("RuntimeError: boom") == 1
    assert "`wakeful resume x`" in text


@pytest.mark.torture
@virtual
async def test_what_comes_back_soon_after_its_end_is_counted_and_not_reported(world: World) -> None:
    """A schedule that flaps for hours is reported once; if it stays bad for an hour, it is reported again."""
    app, people = await reachable(world, "phone")
    bot = Bot(world)
    flapping(bot)
    await app.add("x", MINUTELY, call=bot)
    await world.sleep("6h")
    assert len(people["phone"].got) == 2
    ((reopened,),) = world.query("SELECT max(reopened) FROM incidents")
    assert reopened > 10
    bot.usual = BOOM
    await app.update("x", max_consecutive_errors=0)
    await world.sleep("2h")
    assert len(people["phone"].got) == 3
    assert "failed" in people["phone"].got[2]


@virtual
async def test_a_schedule_can_choose_its_own_rule_or_none(world: World) -> None:
    """`alert` of a schedule counts more than the settings."""
    app, people = await reachable(world, "phone", "mail")
    await app.touch("phone")
    await app.add("quiet", HOURLY, call=Bot(world, BOOM), alert=False)
    await app.add("late", HOURLY, call=Bot(world, BOOM), alert={"errors": 4, "within": "30h", "channel": "mail"})
    await world.sleep("1d")
    assert people["phone"].got == []
    (text,) = people["mail"].got
    assert text.startswith("late: it failed 4 times in a row")
    assert people["mail"].at == ["01-01 04:00:00"]


@virtual
async def test_a_schedule_that_was_resumed_and_fails_again_is_news(world: World) -> None:
    """And its recovery is reported once, from the incident that is open."""
    app, people = await reachable(world, "phone")
    bot = await failing_for(world, app, "6h")
    assert len(people["phone"].got) == 1
    await app.resume("x")
    await world.sleep("3h")
    assert len(people["phone"].got) == 2
    bot.usual = None
    await world.sleep("5h")
    assert [text.partition(" after ")[0] for text in people["phone"].got[2:]] == ["x: recovered"]
