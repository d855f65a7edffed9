"""A program that passes strict checks."""

from datetime import datetime, timedelta
from typing import assert_type
from zoneinfo import ZoneInfo

from wakeful import AddOptions, AgentReply, Fire, New, ScheduleView, Wakeful, cron, every, once, times
from wakeful.sync import Wakeful as BlockingWakeful

app = Wakeful("wakeful.db", timezone="Europe/Berlin", shutdown_grace=timedelta(seconds=5))


@app.job(cron("0 9 * * 1-5", tz=ZoneInfo("Europe/Berlin")), timeout=timedelta(minutes=10))
async def stand_up(fire: Fire) -> str:
    assert_type(fire.planned_at, datetime)
    return f"{fire.slug} {fire.attempt} {fire.idempotency_key}"


@app.job("weekdays at 9:00")
def digest(days: int = 30, fire: Fire | None = None) -> None: ...


@app.on_due
async def due(fire: Fire) -> None: ...


@app.agent()
async def answer(prompt: str, *, fire: Fire) -> str:
    return prompt


@app.agent("counting")
async def count(prompt: str, session_id: str | None) -> AgentReply:
    return AgentReply(prompt, usage={"input": len(prompt), "output": 7, "model": "small"}, session=session_id or "s1")


class Desk:
    def tidy(self) -> None: ...


app.job("every 2h")(Desk().tidy)


async def many() -> None:
    shared: AddOptions = {
        "command": ["make", "report"],
        "timeout": timedelta(minutes=5),
        "retry_on": (OSError, TimeoutError),
    }
    slugs: list[str] = await app.add_many(New(f"report-{n}", every("2h"), **shared) for n in range(10_000))
    found: ScheduleView | None = await app.find(slugs[0])
    await app.update(slugs[0], schedule="weekdays at 9:00", timeout=None, run_on=["gpu", "fast"])
    print(found)


async def main() -> None:
    async with app:
        await app.add("later", once(timedelta(minutes=5)), call=digest, args={"days": 7})
        await app.add("daily", times("09:00", tz=ZoneInfo("UTC")), prompt="What is new?")
        print((await app.run_now("later", wait=True)).outcome)
        view = await app.schedules.pause("daily", until=datetime.now(ZoneInfo("UTC")) + timedelta(days=1))
        when: datetime | None = view.next_run
        page = await app.schedules.list(status="paused", limit=5)
        known: float | None = (await app.cost("agent")).rows[0].cost
        missed = (await app.ledger.list(outcome="missed", since="2026-01-01T00:00:00Z")).runs
        estimate: float | None = (await app.ledger.replay_missed("2026-01-01T00:00:00Z", dry_run=True)).estimate
        error: str | None = (await app.people.send("hello", channel="phone")).last_error
        await app.request_wake("manual", "the kettle boils", context_key="kettle")
        heartbeat, turns = await app.turns.heartbeat()
        busy: bool = heartbeat.status == "running" and bool(turns)
        found = [agent.version for agent in (await app.turns.agents()).agents if agent.is_found]
        waiting = [one.proposal_id for one in (await app.people.proposals()).proposals]
        print(busy, found, (await app.people.decide(waiting[0], "approve")).is_missed)
        alive = [node.name for node in (await app.system.nodes()).nodes if node.is_alive]
        print(alive, (await app.system.health()).level, (await app.system.apply({}, prune=True)).diff)
        names = [channel.name for channel in (await app.touch("phone", "7")).channels]
        week = await app.simulate(days=7, failing={"daily": 0.2})
        print(week["from"], week["schedules"][0]["unknownCosts"], (await app.forecast(2))["total"]["cost"]["high"])
        times_ahead: list[datetime] = await app.next_times("daily", 3)
        print(times_ahead, (await app.get("daily")).status, (await app.schedules.upcoming()).instants[0].due_at)
        print(when, page.next, known, estimate, error, names, [run.reason for run in missed])


async def flows() -> None:
    flow = await app.workflows.get("inbox")
    waits = flow.open_run is not None and flow.open_run.awaits == "uncertain"
    put = await app.workflows.publish("inbox", "mail", payload={"subject": "hello"})
    print(waits, flow.topics["mail"].pending, flow.producers["poll"].next_run, put.fate, put.seq)
    print((await app.slots.patch("main", {"poll": "10m"})).next_poll)


async def by_hand(fire: Fire) -> None:
    assert_type(await stand_up(fire), str)


def plain() -> None:
    with BlockingWakeful("wakeful.db", ledger_days=30) as blocking:
        blocking.add("often", every("1h"), command=["true"], catch_up="skip", deliver={"channel": "phone"})
        assert_type(blocking.add_many([New("other", "every 2h")]), list[str])
        assert_type(blocking.find("often"), ScheduleView | None)
        assert_type(blocking.run_now("often", wait=True).slug, str)
        view = blocking.schedules.resume("often")
        print(view.status, blocking.cost("day").total.cost, blocking.money.budgets().stopped)
        print(blocking.ledger.list(limit=5).next, blocking.ledger.cancel(7).outcome, blocking.ledger.get(7).log)
        print(blocking.turns.wake("hook").is_coalesced)
        print(blocking.workflows.list(limit=5).next, blocking.slots.get("main").percentage)
