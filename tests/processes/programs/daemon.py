"""`app.run()` with one job under way, which leaves a file `working`.

Arguments: how long the job takes, the grace, call or command. It begins two seconds after the start, or forty later if
the start takes longer.
"""

import asyncio
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from wakeful import Wakeful, every

takes, grace, kind = sys.argv[1:4]
soon = (datetime.now(UTC) + timedelta(seconds=2)).isoformat(timespec="milliseconds")
app = Wakeful("wakeful.db", every_min="100ms", shutdown_grace=grace)


async def work(fire: Any) -> None:
    Path("working").touch()
    await asyncio.sleep(float(takes))


if kind == "call":
    app.job(every("40s", anchor=soon), "work")(work)
else:

    @app.job(every("40s", anchor=soon), "starter")
    async def starter(fire: Any) -> None:
        await app.add("work", every("30d"), command=["sh", "-c", f"echo $$ > pid; sleep {takes}; true"])
        await app.run_now("work")
        Path("working").touch()


app.run()
print("over")
