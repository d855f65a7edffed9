"""`app.run()` with one job under way. Arguments: how long the job takes, the grace, and call or command."""

import asyncio
import os
import sys
from typing import Any

from wakeful import Wakeful, every

takes, grace, kind = sys.argv[1:4]
app = Wakeful("wakeful.db", every_min="100ms", shutdown_grace=grace)


async def work(fire: Any) -> None:
    os.write(1, b"working\n")
    await asyncio.sleep(float(takes))


if kind == "call":
    app.job(every("1d", anchor=sys.argv[4]), "work")(work)
else:

    @app.job(every("1d", anchor=sys.argv[4]), "starter")
    async def starter(fire: Any) -> None:
        await app.add("work", every("30d"), command=["sh", "-c", f"echo $$ > pid; sleep {takes}; true"])
        await app.run_now("work")
        os.write(1, b"working\n")


app.run()
print("over")
