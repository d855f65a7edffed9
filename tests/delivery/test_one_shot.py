"""A one-shot prompt to a dead agent: tried four times, failed for good, reported, and shown until someone looks."""

from typing import Any

from delivery.kit import Person
from features.kit import Bench, World, short, virtual
from features.voice import NO, Voice
from wakeful import once
from wakeful.core.schedule.actions import Prompt


async def failed_for_good(world: World, **options: Any) -> tuple[Bench, Person, Voice]:
    voice, person = Voice(world, NO), Person(world)
    app = world.bench(actions={Prompt: voice})
    app.register_channel("phone", None, person)
    await app.start()
    await app.add("ask", once("2026-01-01T09:00Z"), prompt="Is the report ready?", **options)
    await world.sleep("1d")
    return app, person, voice


@virtual
async def test_it_is_reported_when_it_is_still_bad_an_hour_after_its_time(world: World) -> None:
    """Tried every half hour: people are told before the last attempt, and not again when it has failed."""
    _, person, voice = await failed_for_good(world)
    assert [at[6:] for at in voice.began] == ["09:00:00", "09:30:00", "10:00:00", "10:30:00"]
    assert person.at == ["01-01 10:01:00"]


@virtual
async def test_it_is_tried_four_times_reported_at_once_and_explained(world: World) -> None:
    """With an `alert.within` that is longer than all attempts, the report comes with the last one."""
    app, person, voice = await failed_for_good(world, alert={"within": "6h"})
    assert len(voice.began) == 4
    (run,) = await app.runs("ask")
    assert (run.outcome, run.attempt, run.error) == ("failed", 4, "the model is down")
    (text,) = person.got
    assert person.at == [short(run.ended_at)]
    assert "the model is down" in text
    assert "`wakeful alerts ack ask`" in text
    sentence = (await app.why("ask")).sentence
    assert "the model is down" in sentence
    assert "4 attempts" in sentence
    (alert,) = (await app.people.alerts(is_open=True)).alerts
    assert (alert.slug, alert.text) == ("ask", text.removeprefix("ask: "))
    view = await app.get("ask")
    assert (view.health, view.status) == ("failing", "done")


@virtual
async def test_it_is_failing_until_someone_acknowledges_it(world: World) -> None:
    """That is not reported, and the ledger keeps what happened."""
    app, person, _ = await failed_for_good(world)
    await app.schedules.acknowledge("ask")
    assert (await app.get("ask")).health == "off"
    assert (await app.people.alerts(is_open=True)).alerts == []
    assert len(person.got) == 1
    assert [run.outcome for run in await app.runs("ask")] == ["failed"]


@virtual
async def test_removing_it_ends_its_incident(world: World) -> None:
    """Nothing about it is left open."""
    app, person, _ = await failed_for_good(world)
    await app.remove("ask")
    assert (await app.people.alerts(is_open=True)).alerts == []
    assert len(person.got) == 1


@virtual
async def test_a_run_by_hand_that_succeeds_makes_up_for_it(world: World) -> None:
    """And people hear that it works again."""
    app, person, voice = await failed_for_good(world)
    voice.usual = "It is ready."
    await app.run_now("ask")
    await world.settle()
    assert (await app.get("ask")).health == "off"
    assert [text.partition(" after ")[0] for text in person.got[1:]] == ["ask: recovered"]
