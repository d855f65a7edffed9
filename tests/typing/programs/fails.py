"""A program with mistakes, one on each line that ends with `# wrong`."""

from wakeful import AgentReply, Fire, New, Wakeful, every, manual
from wakeful.sync import Wakeful as BlockingWakeful

app = Wakeful("wakeful.db", concurency_max=8)  # wrong
other = Wakeful("wakeful.db", ledger_days="30")  # wrong
blocking = BlockingWakeful("wakeful.db", tick="no")  # wrong


@app.job  # wrong
def bare() -> None: ...


@app.agent  # wrong
def agent(prompt: str) -> str:
    return prompt


@app.job(3600)  # wrong
def number() -> None: ...


@app.job(manual())
def misspelt(fire: Fire) -> str:
    return fire.plannedAt  # wrong


@app.job(manual(), retriess=3)  # wrong
def options() -> None: ...


def used() -> AgentReply:
    return AgentReply("hello", usage={"inptu": 1200})  # wrong


async def main() -> None:
    await app.add("often", every("2h"), comand=["true"])  # wrong
    await app.add("often", every("2h"), command=["true"], timeout=300)  # wrong
    await app.add("often", every("2h"), command=["true"], catch_up="twice")  # wrong
    await app.add_many([New("often", every("2h"), prompt=["true"])])  # wrong
    await app.update("often", retries="3")  # wrong
    print((await app.find("often")).slug)  # wrong
    await app.add("often", every([5]), command=["true"])  # wrong
    await app.schedules.pause("often", untl="2h")  # wrong
    await app.schedules.list(limit="5")  # wrong
    await app.schedules.list(status="pausd")  # wrong
    await app.schedules.pause()  # wrong
    await app.schedules.pauze("often")  # wrong
    await app.cost("agnt")  # wrong
    await app.simulate(day=7)  # wrong
    (await app.forecast(2))["totals"]  # wrong
    await app.next_times("often", "3")  # wrong
    await app.ledger.list(outcome="mised")  # wrong
    await app.ledger.backfill("often")  # wrong
    await app.people.send(5)  # wrong
    await app.people.deliveries(status="lost")  # wrong
    await app.touch()  # wrong
    await app.request_wake("boredom")  # wrong
    await app.turns.test_agent()  # wrong
    await app.system.apply({}, dry_run=True)  # wrong
    await app.people.decide("p1f3a9c2e", "perhaps")  # wrong
    await app.workflows.resolve("inbox", 7, "perhaps")  # wrong
    await app.workflows.skip("inbox", "mail", 5)  # wrong
    await app.slots.patch("main")  # wrong


app.on(lambda: None)  # wrong
app.register_channel("phone", None, "phone")  # wrong


def imported() -> None:
    from wakeful import sometimes  # wrong


async def mixed() -> None:
    await blocking.cost()  # wrong


def plain() -> None:
    count: int = blocking.schedules.get("often")  # wrong
    blocking.schedules.pause("often", until=3)  # wrong
    blocking.cost(by=1)  # wrong
    blocking.add("often", every("2h"), timout="5m")  # wrong
    blocking.find(7)  # wrong
    blocking.workflows.run(7)  # wrong
    print(count)
