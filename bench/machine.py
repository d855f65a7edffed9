"""Facts about the machine, without anything that identifies it."""

import asyncio
import os
import platform
import sqlite3
import time
from pathlib import Path
from typing import Final

FSYNC_SECONDS: Final = 1.0
BLOCK: Final = b"\0" * 4096
TASKS: Final = 50_000
TASKS_AT_ONCE: Final = 200


def facts(folder: Path, postgres_version: str | None) -> dict[str, str | float]:
    """Cores, versions, and syncs per second of this disk."""
    return {
        "system": platform.system(),
        "machine": platform.machine(),
        "cores": os.cpu_count() or 1,
        "load": round(os.getloadavg()[0], 1),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "postgres": postgres_version or "not available",
        "fsyncPerSecond": round(fsync_rate(folder)),
        "asyncioTasksPerSecond": round(task_rate()),
    }


def task_rate() -> float:
    """Empty tasks per second of CPU time: the speed of this machine for asyncio code."""

    async def nothing() -> None:
        pass

    async def all_of_them() -> float:
        began = time.thread_time()
        for _ in range(TASKS // TASKS_AT_ONCE):
            await asyncio.gather(*(nothing() for _ in range(TASKS_AT_ONCE)))
        return TASKS / (time.thread_time() - began)

    return asyncio.run(all_of_them())


def fsync_rate(folder: Path) -> float:
    """Appends of 4 KiB, each followed by fsync, per second."""
    path = folder / "fsync"
    count = 0
    began = time.perf_counter()
    with path.open("wb", buffering=0) as file:
        while (took := time.perf_counter() - began) < FSYNC_SECONDS:
            file.write(BLOCK)
            os.fsync(file.fileno())
            count += 1
    path.unlink()
    return count / took
