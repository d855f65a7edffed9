"""Labels: a schedule with `runOn` runs only on nodes that have one of its labels."""

import pytest

from features.kit import Bench, Bot, World, instant, short, virtual
from wakeful import cron, every
from wakeful.core.errors import Invalid
from wakeful.core.schedule.definition_json import definition_from_json
from wakeful.core.time.instants import HOUR, MINUTE
from wakeful.features.schedules.health import Finding, health
from wakeful.features.schedules.why import why

NEAR = {"lease": 2 * MINUTE, "renew_every": MINUTE}


async def _finding(app: Bench) -> Finding:
    now = app.clock.read().now
    found = await app.store.read(lambda tx: health(tx, now=now))
    return next(finding for finding in found.findings if finding.name == "labels")


async def _why(app: Bench, slug: str, at: str | None = None) -> str:
    now, asked = app.clock.read().now, None if at is None else instant(at)
    return (await app.store.read(lambda tx: why(tx, slug, at=asked, now=now))).sentence


async def _ran(app: Bench, slug: str) -> list[tuple[str, str, str | None]]:
    return [(short(run.planned_at)[-8:-3], run.outcome, run.node) for run in reversed(await app.runs(slug))]


@virtual
async def test_a_schedule_runs_on_the_node_with_its_label(world: World) -> None:
    """Of several labels a node needs one; without a label any node will do."""
    plain, gpu = Bot(world, usual=MINUTE), Bot(world, usual=MINUTE)
    first = await world.open(plain, name="first", is_shared=True, limits=NEAR)
    second = await world.open(gpu, name="second", is_shared=True, limits=NEAR, labels=["gpu", "eu"])
    await first.add("render", every("1h"), run_on="gpu")
    await first.add("both", every("1h"), run_on=["tpu", "eu"])
    await world.until("01-01 03:30:00")
    for slug in ("render", "both"):
        assert await _ran(first, slug) == [(f"0{hour}:00", "succeeded", "second") for hour in (1, 2, 3)]
    assert plain.planned == []
    shown = (await first.get("render")).to_json()
    assert (shown["runOn"], shown["health"]) == ("gpu", "ok")
    assert (await _finding(second)).level == "ok"


@virtual
async def test_a_label_that_no_node_has_is_late_and_found(world: World) -> None:
    """The schedule waits, others go on, the node sleeps, and `why` says what is missing. When a node gets the label,
    the latest missed time is caught up, and the reason of the others is not an outage."""
    bot = Bot(world, usual=MINUTE)
    app = await world.open(bot)
    for n in range(5):
        await app.add(f"lost{n}", every("1h"), run_on="gpu")
    await app.add("fine", every("1h"))
    await world.until("01-01 02:30:00")
    assert [fire.slug for fire in bot.fires] == ["fine", "fine"]
    view = await app.get("lost0")
    assert (view.status, view.health) == ("idle", "late")
    found = await _finding(app)
    assert (found.level, found.slugs) == ("warn", [f"lost{n}" for n in range(5)])
    assert found.sentence.startswith("no live node has the label gpu; waiting: lost0, lost1")
    assert "lost0 at 2026-01-01 01:00 (UTC) is due and waits: no live node has the label gpu" in await _why(
        app, "lost0", "01-01 01:00:00"
    )
    assert "it was due at 01:00 and waits: no live node has the label gpu" in await _why(app, "lost0")
    await app._change(labels=["gpu"])
    await world.until("01-01 02:40:00")
    assert await _ran(app, "lost0") == [("01:00", "missed", None), ("02:00", "succeeded", "node")]
    assert (await app.runs("lost0"))[-1].reason == "label"
    assert "because no live node had the label gpu" in await _why(app, "lost0", "01-01 01:00:00")
    assert (await _finding(app)).level == "ok"


@virtual
async def test_everything_that_waits_keeps_its_label(world: World) -> None:
    """Manual runs, retries, queued runs and runs behind a lane, backfills: all of them begin where the label is."""
    plain = Bot(world, usual=MINUTE)
    gpu = Bot(world, usual=MINUTE)
    gpu.script = [RuntimeError("no"), HOUR]
    first = await world.open(plain, name="first", is_shared=True, limits=NEAR)
    second = await world.open(gpu, name="second", is_shared=True, limits=NEAR, labels=["gpu"])
    retry = {"times": 3, "delay": "1m"}
    await first.add("a", cron("0 1 * * *"), run_on="gpu", retry=retry, lane="car")
    await first.add("b", every("10m", anchor="2026-01-01T01:02Z"), run_on="gpu", lane="car", overlap="queue")
    await first.add("c", cron("0 0 2 1 *"), run_on="gpu", lane="car")
    await world.until("01-01 01:05:00")
    await first.run_now("c")
    await world.until("01-01 06:00:00")
    assert plain.planned == []
    for slug in ("a", "b", "c"):
        runs = await first.runs(slug)
        assert {run.node for run in runs if run.outcome == "succeeded"} == {"second"}
        assert any(run.outcome == "succeeded" for run in runs)
    assert [attempt.node for attempt in (await first.runs("a"))[-1].attempts] == ["second", "second"]
    await second.stop()
    await first.run_now("c")
    await world.until("01-01 07:00:00")
    assert (await first.runs("c"))[0].outcome == "waiting"
    assert (await first.get("c")).health == "late"
    assert "is waiting to start: no live node has the label gpu" in await _why(first, "c")


@virtual
async def test_a_backfill_waits_for_a_node_with_the_label(world: World) -> None:
    """Any node advances a backfill, but its runs begin where those of its schedule do."""
    plain, gpu = Bot(world), Bot(world)
    first = await world.open(plain, name="first", is_shared=True, limits=NEAR)
    await first.add("render", cron("0 * * * *", tz="UTC"), run_on="gpu")
    assert await first.backfill("render", "2025-12-31T20:00:00Z", "2025-12-31T21:00:00Z", apply=True) == 2
    await world.until("01-01 00:10:00")
    assert [(run.outcome, run.trigger) for run in await first.runs("render")] == [("waiting", "backfill")]
    await world.open(gpu, name="second", is_shared=True, limits=NEAR, labels=["gpu"])
    await world.until("01-01 00:20:00")
    assert await _ran(first, "render") == [("20:00", "succeeded", "second"), ("21:00", "succeeded", "second")]
    assert plain.planned == []


@virtual
async def test_a_run_that_no_node_can_begin_does_not_hold_up_its_lane(world: World) -> None:
    """Behind the same lane, those that this node can run go on."""
    app = await world.open(Bot(world, usual=MINUTE), labels=["here"])
    await app.add("busy", every("1h"), lane="car")
    await app.add("there", every("1h"), lane="car", run_on="there")
    await app.add("here", every("1h"), lane="car", run_on="here")
    await world.until("01-01 01:00:30")
    await app.run_now("there")
    await world.until("01-01 03:30:00")
    for slug in ("busy", "here"):
        assert [run.outcome for run in await app.runs(slug)] == ["succeeded"] * 3
    assert (await app.runs("there"))[0].outcome == "waiting"


@virtual
async def test_an_edit_moves_what_waits(world: World) -> None:
    """The label of an alarm and of a waiting run is the one its owner wrote last."""
    app = await world.open(Bot(world, usual=MINUTE))
    await app.add("render", every("1h"), run_on="gpu")
    await app.run_now("render")
    await world.until("01-01 00:30:00")
    assert (await app.runs("render"))[0].outcome == "waiting"
    await app.schedules.patch("render", {"runOn": None})
    await world.until("01-01 02:30:00")
    assert [run.outcome for run in await app.runs("render")] == ["succeeded"] * 3
    await app.schedules.patch("render", {"runOn": ["gpu", "tpu"]})
    await world.until("01-01 04:30:00")
    assert len(await app.runs("render")) == 3
    assert (await app.get("render")).health == "late"


@virtual
async def test_a_lost_label_takes_effect_at_once(world: World) -> None:
    """What runs goes on; nothing more begins."""
    app = await world.open(Bot(world, usual=10 * MINUTE), labels=["gpu"])
    await app.add("render", every("1h"), run_on="gpu")
    await world.until("01-01 01:05:00")
    await app._change(labels=[])
    await world.until("01-01 03:30:00")
    assert await _ran(app, "render") == [("01:00", "succeeded", "node")]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("", "is not a label"),
        ([], "is not a label or a list"),
        (["gpu", "a b"], "'a b' is not a label; write 1 to 64"),
        (5, "5 is not a label"),
    ],
)
def test_a_wrong_label_is_refused(wrong: object, message: str) -> None:
    """With the field and the cure."""
    written = {"schedule": {"type": "manual"}, "command": {"argv": ["true"]}, "runOn": wrong}
    with pytest.raises(Invalid) as refused:
        definition_from_json(written, default_zone="UTC", slug="a")
    assert refused.value.errors[0].field.startswith("runOn")
    assert message in refused.value.errors[0].message
