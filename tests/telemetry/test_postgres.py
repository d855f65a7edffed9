"""The same on PostgreSQL: a store that tells, the question why, and health."""

from postgres.server import emptied_url as url
from postgres.server import server
from telemetry.kit import Heard
from wakeful import Wakeful, every
from wakeful.app.options import Host
from wakeful.features.schedules.health import health
from wakeful.features.schedules.why import why
from wakeful.observe.fan_out import FanOut
from wakeful.ports.clock import Clock
from wakeful.ports.sink import NodeEntered, RunsClaimed, RunsSettled, SchedulesChanged, Sink
from wakeful.ports.store import Store, Tx

__all__ = ["server", "url"]


async def test_facts_why_and_health_on_postgres(url: str) -> None:
    """One run asked for by hand, told from its claim to its end, explained, and found well; then it is removed."""
    heard = Heard()

    def listened(store: Store, clock: Clock) -> Sink:
        fan_out = FanOut(store)
        fan_out.listen(heard)
        return fan_out

    app = Wakeful(url, timezone="UTC", host=Host(sink=listened))
    app.on_due(lambda: None)
    async with app:
        await app.add("tick", every("1h"))
        run = await app.run_now("tick", wait=True)
        store, now = app._open.store, app._clock.read().now

        def look(tx: Tx) -> tuple[str, str, bool]:
            asked_for = why(tx, "tick", at=now, now=now)
            standing = why(tx, "tick", at=None, now=now)
            return standing.sentence, asked_for.facts["cause"], health(tx, now=now).is_alive

        sentence, cause, is_alive = await store.read(look)
        assert sentence.startswith("The manual run of tick requested at ")
        assert "succeeded" in sentence
        assert cause in ("notAnInstant", "ran")
        assert is_alive
        await app.remove("tick")
        gone = await store.read(lambda tx: why(tx, "tick", at=None, now=now))
        assert gone.facts["cause"] == "removed"
    assert run.outcome == "succeeded"
    assert [type(fact) for fact in heard.facts if isinstance(fact, RunsClaimed | RunsSettled)] == [
        RunsClaimed,
        RunsSettled,
    ]
    assert [change.kind for fact in heard.of(SchedulesChanged) for change in fact.changes] == ["created", "removed"]
    assert len(heard.of(NodeEntered)) == 1
