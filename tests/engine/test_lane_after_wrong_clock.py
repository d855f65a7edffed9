"""A run that became ready by a clock that was ahead, and finds its lane held after the clock went back."""

from features.kit import Bot, World, virtual
from wakeful import manual
from wakeful.core.time.instants import DAY, HOUR
from wakeful.ports.store import ALARM_RUN, Tx, run_alarm


@virtual
async def test_it_begins_when_its_lane_is_free(world: World) -> None:
    """L1: its row names a time ten years ahead, and only its alarm was brought forward. Waiting for the lane, it keeps
    the alarm's time, and not that of the row."""
    app = await world.open(Bot(world, usual=HOUR))
    for slug in ("first", "second"):
        await app.add(slug, manual(), lane="desk")
    await app.run_now("first")
    await world.sleep("1s")
    waiting = (await app.run_now("second")).run_id
    await world.sleep("1s")

    def as_after_the_clock_went_back(tx: Tx) -> None:
        row = tx.runs.lock([waiting])[waiting]
        assert (row.outcome, row.reason) == ("waiting", "lane")
        row = row._replace(next_attempt_at=world.now + 3650 * DAY)
        tx.runs.save_many([row])
        tx.alarms.set_many([run_alarm(row, world.now)])

    await app.store.write(as_after_the_clock_went_back)
    app.engine.ring_bell()
    await world.sleep("1s")
    (alarm,) = await app.store.read(lambda tx: tx.alarms.by_refs(ALARM_RUN, [waiting]).values())
    assert alarm.parked
    await world.sleep("2h")
    assert (await app.ledger.get(waiting)).outcome == "succeeded"
