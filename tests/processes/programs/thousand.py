"""A thousand schedules due at one instant: most are quick calls, every twenty-fifth a command.

The instant is twenty seconds after the first start, when all are added; it is kept in `at`. Handlers leave
`key attempt` (commands also their pid) in `done`. While the file `sleepy` is there, a command sleeps long, and so does
each call after the first five hundred.
"""

import asyncio
import itertools
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from wakeful import Wakeful, once

app = Wakeful("wakeful.db", concurrency_max=64, shutdown_grace="5s")
begun = itertools.count()
done = os.open("done", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

COMMAND = """
echo "$WAKEFUL_IDEMPOTENCY_KEY $WAKEFUL_ATTEMPT $$" >> done
if [ -e sleepy ]; then exec sleep 120; fi
"""


def instant() -> str:
    kept = Path("at")
    if not kept.exists():
        kept.write_text((datetime.now(UTC) + timedelta(seconds=20)).isoformat(timespec="milliseconds"))
    return kept.read_text()


async def quick(fire: Any) -> None:
    os.write(done, f"{fire.idempotency_key} {fire.attempt}\n".encode())
    await asyncio.sleep(120 if next(begun) >= 500 and Path("sleepy").exists() else 0.03)


async def main() -> None:
    async with app:
        at = once(instant())
        await asyncio.gather(
            *(
                app.add(f"job-{number:04}", at, command=["sh", "-c", COMMAND])
                if number % 25 == 0
                else app.add(f"job-{number:04}", at, call=quick)
                for number in range(1000)
            )
        )
        await asyncio.Event().wait()


asyncio.run(main())
