"""Shared by the measurements of Wakeful: an app on a store, many schedules, and the end of a burst."""

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from wakeful import New, Wakeful
from wakeful.core.time.timing import Timing

# Twice as many concurrent attempts as the engine claims in one transaction: while one batch runs, another is written.
CONCURRENCY: Final = 400
RECENT: Final = 2 * CONCURRENCY


def make_app(store: str, handler: Callable[..., Any], **settings: Any) -> Wakeful:
    """An app whose schedules all call this handler."""
    app = Wakeful(store, timezone="UTC", concurrency_max=CONCURRENCY, **settings)
    app.on_due(handler)
    return app


def schedules(count: int, prefix: str, timing: Callable[[int], Timing], **options: Any) -> list[New]:
    """That many schedules, each with its timing; a callable option is called for each."""
    return [
        New(
            f"{prefix}-{i}",
            timing(i),
            **{name: value(i) if callable(value) else value for name, value in options.items()},
        )
        for i in range(count)
    ]


def soon(seconds: float) -> datetime:
    """A time this far in the future."""
    return datetime.now(UTC) + timedelta(seconds=seconds)


async def settled(app: Wakeful, within: float) -> float:
    """The time at which all recent runs are recorded as succeeded; call it after the last handler call."""
    give_up = time.perf_counter() + within
    while time.perf_counter() < give_up:
        outcomes = {run.outcome for run in await app.runs(limit=RECENT)}
        if outcomes == {"succeeded"}:
            return time.perf_counter()
        if outcomes - {"succeeded", "running", "waiting"}:
            raise RuntimeError(f"some runs did not succeed: {sorted(outcomes)}")
        await asyncio.sleep(0.002)
    raise TimeoutError("the ledger did not come to rest")
