"""The example of the documentation, as it stands there; only `async with` needs a coroutine around it."""

import asyncio

from wakeful import Wakeful, cron, every, once, times  # noqa: F401 - as in the example

app = Wakeful("wakeful.db")  # or "postgresql://…"  # fmt: skip


@app.job(cron("0 9 * * 1-5", tz="Asia/Shanghai"))
async def standup(fire): ...  # fire.slug, .planned_at, .attempt, .idempotency_key  # fmt: skip


async def main() -> None:
    async with app:  # start … stop  # fmt: skip
        await app.add("report", every("2h"), command=["make", "report"])
        await app.pause("report"); await app.resume("report"); await app.run_now("report")  # fmt: skip  # noqa: E702
        while (await app.runs("report"))[0].outcome in ("waiting", "running"):
            await asyncio.sleep(0.02)
        for view in await app.list():
            print(view.slug, view.status, view.version, view.last_result)


asyncio.run(main())
