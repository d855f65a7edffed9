"""Alerts: one for each incident, one note when it is over, and never in a circle."""

from delivery.kit import Unsent, reachable, target_of
from features.kit import Bot, World, virtual
from wakeful import every
from wakeful.core.run.effects import Alert
from wakeful.core.run.results import Done, Unconfirmed
from wakeful.core.time.instants import SECOND

DOWN = Unsent("it is down")


@virtual
async def test_a_schedule_that_is_disabled_is_told_of_and_so_is_its_recovery(world: World) -> None:
    """With its name, the reason, and once."""
    app, people = await reachable(world, "phone")
    bot = Bot(world, RuntimeError("boom"))
    await app.add("flaky", every("1h"), call=bot)
    await world.sleep("6h")
    (report,) = people["phone"].got
    assert report.startswith("flaky: it failed 2 times in a row. ")
    bot.usual = None
    await app.resume("flaky")
    await world.sleep("2h")
    (over,) = people["phone"].got[1:]
    assert over.startswith("flaky: recovered after 7h. The problem was: it failed 2 times in a row. ")
    await world.sleep("5h")
    assert len(people["phone"].got) == 2


@virtual
async def test_one_that_is_disabled_again_is_told_of_again(world: World) -> None:
    """Whoever resumed it knows of the first time only."""
    app, people = await reachable(world, "phone")
    await app.add("flaky", every("1h"), call=Bot(world, RuntimeError("boom")))
    for _ in range(2):
        await world.sleep("6h")
        await app.resume("flaky")
    assert len(people["phone"].got) == 2


@virtual
async def test_the_same_trouble_all_night_is_one_alert_and_survives_a_restart(world: World) -> None:
    """An agent that never confirms: one alert, however often, and one note in the morning (note 38)."""
    app, people = await reachable(world, "phone")
    bot = Bot(world, Unconfirmed("no sign of life"))
    await app.add("agent", every("1h"), call=bot, max_consecutive_errors=0)
    await world.sleep("3h")
    assert len(people["phone"].got) == 1
    assert "no sign of life" in people["phone"].got[0]
    await app.stop()
    bench = world.bench()
    bench.register_channel("phone", None, people["phone"])
    bench._registry.register(target_of(world, "agent"), bot)
    await bench.start()
    await world.sleep("3h")
    assert len(people["phone"].got) == 1
    bot.usual = None
    await world.sleep("3h")
    assert len([text for text in people["phone"].got if "recovered after" in text]) == 1
    (closed,) = world.query("SELECT times FROM incidents WHERE name LIKE 'failing:%' AND closed_at IS NOT NULL")
    assert closed[0] >= 5


@virtual
async def test_a_schedule_that_may_fail_for_ever_is_told_of_all_the_same(world: World) -> None:
    """After two in a row, although nothing disables it."""
    app, people = await reachable(world, "phone")
    await app.add("stubborn", every("1h"), call=Bot(world, RuntimeError("boom")), max_consecutive_errors=0)
    await world.sleep("20h")
    (report,) = people["phone"].got
    assert report.startswith("stubborn: it failed 2 times in a row. ")


@virtual
async def test_an_alert_about_a_broken_channel_goes_elsewhere(world: World) -> None:
    """Once, however many dead letters there are; and one note when it works again."""
    app, people = await reachable(world, "phone", "mail")
    people["phone"].usual = DOWN
    for n in range(3):
        await app.people.send(f"x{n}", channel="phone", to=str(n))
    await world.sleep("1h")
    (alert,) = people["mail"].got
    assert alert.startswith(
        "A message to phone could not be delivered: it is down. Send it again: wakeful outbox retry "
    )
    people["phone"].usual = None
    await app.people.send("y", channel="phone")
    await world.settle()
    notes = [text for person in people.values() for text in person.got if "recovered after" in text]
    assert len(notes) == 1
    assert notes[0].startswith("phone: recovered after ")


@virtual
async def test_the_incident_ends_when_its_last_dead_letter_is_discarded(world: World) -> None:
    """Before that, it names a message that is still there. Nobody is told that the channel works again."""
    app, people = await reachable(world, "phone", "mail")
    people["phone"].usual = DOWN
    for n in range(2):
        await app.people.send(f"x{n}", channel="phone", to=str(n))
    await world.sleep("2h")
    told = len(people["mail"].got)
    for left in (1, 0):
        (named,) = [one.text.rpartition(" ")[2] for one in (await app.people.alerts(is_open=True)).alerts]
        assert named in [one.id for one in (await app.people.deliveries(status="dead")).deliveries]
        await app.people.discard(named)
        alerts = (await app.people.alerts(is_open=True)).alerts
        assert len([one for one in alerts if one.incident == "delivery:phone"]) == left
    assert [item for item in (await app.people.today()).attention if item.level == "bad"] == []
    await world.sleep("1h")
    assert len(people["mail"].got) == told


@virtual
async def test_when_every_channel_is_broken_the_inbox_has_it_all_and_nothing_goes_in_circles(world: World) -> None:
    """One alert for each channel, the alerts themselves included."""
    app, people = await reachable(world, "phone", "mail", "chat", usual=DOWN)
    await app.people.send("x")
    await world.sleep("1d")
    items = (await app.people.inbox()).items
    assert len(items) == 1
    assert "could not be delivered" in items[0].text
    dead = (await app.people.deliveries(status="dead")).deliveries
    assert sorted(row.channel for row in dead) == ["chat", "mail", "phone"]
    assert {row.purpose for row in dead} == {"message", "alert"}
    assert len((await app.people.deliveries(limit=1_000)).deliveries) == 4
    names = [name for (name,) in world.query("SELECT name FROM incidents WHERE closed_at IS NULL ORDER BY name")]
    assert names == ["delivery:chat", "delivery:mail", "delivery:phone"]
    assert all(len(person.letters) == 6 for person in people.values())


@virtual
async def test_alerts_of_the_engine_reach_people(world: World) -> None:
    """A run nobody knows the end of."""
    app, people = await reachable(world, "phone")
    await app.add("x", every("1h"), call=Bot(world, 30 * SECOND), on_crash="unknown")
    await world.sleep("1h10s")
    await app.kill()
    _, people = await reachable(world, "phone")
    await world.settle()
    assert len(people["phone"].got) == 1
    assert "died" in people["phone"].got[0]


@virtual
async def test_successes_alone_tell_nobody_anything(world: World) -> None:
    """Silence is the sound of things going well."""
    app, people = await reachable(world, "phone")
    await app.add("fine", every("1h"), call=Bot(world, Done()))
    await world.sleep("1d")
    assert people["phone"].letters == []
    assert world.query("SELECT count(*) FROM incidents") == [(0,)]


@virtual
async def test_trouble_that_comes_back_after_days_of_quiet_is_told_again(world: World) -> None:
    """A budget that trips once a week, say: nobody says that it is over, and each time is news."""
    app, people = await reachable(world, "phone")

    async def raised() -> None:
        applier = app.parts.hooks.appliers[Alert]
        now = world.now
        await app.parts.store.write(lambda tx: applier(tx, Alert("heartbeat:budget", "too many turns"), now))

    for _ in range(3):
        await raised()
        await world.sleep("1d")
    assert len(people["phone"].letters) == 1
    await world.sleep("2d")
    await raised()
    app.engine.ring_bell()
    await world.settle()
    assert len(people["phone"].letters) == 2
