"""One of several processes on one file, as web workers are: adds a schedule of its own and the shared one, and runs.

Arguments: its name. Every run leaves `name slug key attempt` in `done`; `seen-name` says whether it ticks, and which
schedules it sees.
"""

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

from wakeful import Wakeful, every

name = sys.argv[1]
app = Wakeful("wakeful.db", name=name, every_min="100ms", shutdown_grace="2s")
done = os.open("done", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)


async def beat(fire: Any) -> None:
    os.write(done, f"{name} {fire.slug} {fire.idempotency_key} {fire.attempt}\n".encode())


async def main() -> None:
    async with app:
        await app.add("shared", every("200ms"), call=beat)
        await app.add(f"of-{name}", every("300ms"), call=beat)
        while True:
            seen = " ".join(view.slug for view in await app.list())
            Path(f"{name}.new").write_text(f"{int(app._is_ticking)} {seen}")
            Path(f"{name}.new").replace(f"seen-{name}")
            await asyncio.sleep(0.1)


asyncio.run(main())
