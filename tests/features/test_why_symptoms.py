"""Each common problem of a schedule has a chapter in docs/troubleshooting.md, and `why` says what it quotes."""

from pathlib import Path

import pytest

from features.kit import Bench, Bot, World, instant, virtual
from wakeful import cron, every
from wakeful.core.run.results import Busy, Unconfirmed
from wakeful.features.schedules.why import why

pytestmark = pytest.mark.promise

PAGE = (Path(__file__).parents[2] / "docs" / "troubleshooting.md").read_text()
WORDS = " ".join(PAGE.split())


async def told(app: Bench, at: str | None = None) -> str:
    now = app.clock.read().now
    wanted = None if at is None else instant(at)
    return (await app.store.read(lambda tx: why(tx, "tick", at=wanted, now=now))).sentence


@pytest.mark.parametrize(
    "symptom",
    [
        '"success" but no message in history',
        "Schedule not running",
        "Wrong nextRun time",
        "Session busy (409) every run",
    ],
)
def test_every_common_issue_has_a_chapter(symptom: str) -> None:
    """With what `why` or `doctor` says, and a cure."""
    chapter = PAGE.split(f"### {symptom}\n")[1].split("\n##")[0]
    assert "**`why` says**" in chapter
    assert "Cure" in chapter or "→" in chapter


@virtual
async def test_success_without_a_message(world: World) -> None:
    """Accepted, and never confirmed."""
    app = await world.open(Bot(world, usual=Unconfirmed("no sign of life within 5m")))
    await app.add("tick", every("1h"))
    await world.until("01-01 01:30:00")
    assert "is unconfirmed (it got as far as " in await told(app, "01-01 01:00:00")
    assert "is unconfirmed (it got as far as accepted)" in WORDS


@virtual
async def test_not_running_because_it_is_disabled(world: World) -> None:
    """By a person, and by its errors."""
    app = await world.open(Bot(world, usual=RuntimeError("no")))
    await app.add("tick", every("1h"), enabled=False)
    for phrase in ("does not run because it has been disabled since", ": by a person"):
        assert phrase in await told(app)
        assert phrase in WORDS
    await app.resume("tick")
    await world.until("01-01 08:00:00")
    assert ": 5 errors in a row, the last: " in await told(app)
    assert ": 5 errors in a row, the last: " in WORDS


@virtual
async def test_not_running_because_nothing_ticks(world: World) -> None:
    """The first thing said."""
    app = await world.open(Bot(world))
    await app.add("tick", every("1h"))
    await app.stop()
    await world.sleep("2h")
    app = await world.open(Bot(world), tick=False)
    assert (await told(app)).startswith("No process is ticking (last seen at ")
    assert "so nothing will run until one is started" in await told(app)
    assert "No process is ticking (last seen at …), so nothing will run until one is started" in WORDS


@virtual
async def test_wrong_next_run(world: World) -> None:
    """The timing in plain words, in its zone."""
    app = await world.open(Bot(world))
    await app.add("tick", cron("0 9 * * 1-5", tz="Asia/Shanghai"))
    phrase = "because it runs every weekday at 09:00 (Asia/Shanghai)"
    assert phrase in await told(app, "01-05 09:00:00")
    assert phrase in WORDS


@virtual
async def test_busy(world: World) -> None:
    """Until when, and that it is no error."""
    app = await world.open(Bot(world, usual=Busy("Session busy")))
    await app.add("tick", every("3h"))
    await world.until("01-01 03:10:00")
    assert "is waiting until 04:00, because its target is busy: Session busy" in await told(app)
    assert "because its target is busy: Session busy" in WORDS
