"""A simulation's process: reads a job from standard input and writes the result to standard output."""

import gc
import json
import os
import pickle
import sys
from contextlib import suppress
from typing import Final

from wakeful.app.bootstrap.looking import looking
from wakeful.app.simulation_job import SimulationJob
from wakeful.core.errors import Invalid
from wakeful.simulation.answer import simulation
from wakeful.simulation.copying import read_copy
from wakeful.simulation.forecast import forecast
from wakeful.simulation.orphan import ending_with_parent

NICE: Final = 10
"""Real runs take precedence."""

COLLECT_EVERY: Final = (50_000, 20, 20)
"""Garbage collector threshold: a simulation creates many short-lived objects, and ends soon."""


def main() -> None:
    """Run one job."""
    with suppress(OSError):
        os.nice(NICE)
    gc.set_threshold(*COLLECT_EVERY)
    with ending_with_parent():
        job: SimulationJob = pickle.load(sys.stdin.buffer)  # noqa: S301 - written by the process that started this one
        sys.stdout.write(json.dumps(answer(job), ensure_ascii=False))


def answer(job: SimulationJob) -> dict[str, object]:
    """The result, or the request's errors."""
    with looking(job.url) as look:
        copied = read_copy(look.tx, job)
    try:
        made = forecast(job, copied) if job.answer == "forecast" else simulation(job, copied)
        return {"answer": made}
    except Invalid as invalid:
        return {"errors": [{"field": error.field, "message": error.message} for error in invalid.errors]}


if __name__ == "__main__":
    main()
