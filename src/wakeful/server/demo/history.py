"""The demo's past: ten days of runs, so that costs, statistics and the forecast have something to go by.

The schedules really run, on the virtual clock, before the daemon starts: nothing is contacted, and the ledger is like
any other. The virtual clock's mark is removed afterwards, because the file continues in real time.
"""

import asyncio
import itertools
import random
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from wakeful.api.python import Wakeful
from wakeful.app import bootstrap
from wakeful.core.run.results import Done, Failed
from wakeful.core.run.usage import usage_of
from wakeful.server.demo.programs import model
from wakeful.testing import virtual
from wakeful.testing.virtual_time import VirtualTime

DAYS: Final = 10
JUST_NOW: Final = timedelta(seconds=2)
EXPIRED_FOR: Final = timedelta(hours=7)
"""Since when the key of the failing agent has been invalid."""
SECONDS: Final = {"nightly-backup": (40.0, 95.0), "hourly-report": (2.0, 9.0)}
"""How long commands take: the least and the most."""
TURN: Final = (3.0, 25.0)
ITEMS_MAX: Final = 1_000
UNREAD: Final = 2
"""Messages that have not been read yet."""


def write_history(file: Path, schedules: Mapping[str, Mapping[str, Any]]) -> None:
    """Run these schedules over the last days, in a new file."""
    asyncio.run(_run(file, schedules))
    _continue_in_real_time(file)


async def _run(file: Path, schedules: Mapping[str, Mapping[str, Any]]) -> None:
    app, now, dice = Wakeful(str(file)), datetime.now(UTC), random.Random(7)  # noqa: S311 - the same history each time
    clock: list[VirtualTime] = []

    async def command(_: object, fire: Any) -> str:
        await app.sleep(timedelta(seconds=dice.uniform(*SECONDS.get(fire.slug, (1.0, 5.0)))))
        return "nothing left to tidy\n"

    def agent(name: str) -> Callable[..., Any]:
        turns = itertools.count()

        async def turn(prompt: str) -> Done | Failed:
            await app.sleep(timedelta(seconds=dice.uniform(*TURN)))
            at = clock[0].now
            if name == "reviewer" and at > now - EXPIRED_FOR:
                return Failed(model.EXPIRED)
            seconds = 20.0 * next(turns)
            reply = model.reply_to(prompt, seconds)
            return Done(reply=reply, usage=usage_of(model.usage_of(prompt, reply, dice.uniform(0, 300))))

        return turn

    agents = {name: agent(name) for name in ("default", "coder", "reviewer")}
    start = now - timedelta(days=DAYS)
    async with virtual(app, start=start, on_command=command, agents=agents) as time:
        clock.append(time)
        for slug, definition in schedules.items():
            await app.schedules.put(slug, definition)
        await time.advance_to(now - JUST_NOW)
        for item in (await app.people.inbox(unread=True, limit=ITEMS_MAX)).items[UNREAD:]:
            await app.people.mark_read(item.id)


def _continue_in_real_time(file: Path) -> None:
    with closing(sqlite3.connect(file)) as db, db:
        db.execute("DELETE FROM meta WHERE name = ?", (bootstrap.VIRTUAL_TIME,))
