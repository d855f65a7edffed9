"""A simulation's result as JSON."""

import os
import pickle
from collections.abc import Callable
from typing import TypeVar

from wakeful.app.simulation_job import SimulationJob
from wakeful.core.errors import FieldError, Invalid, refuse
from wakeful.core.simulation.difference import Difference, compare
from wakeful.core.simulation.request import ROWS_MAX, Troubles
from wakeful.core.simulation.results import Simulation
from wakeful.core.simulation.summary import Days, SimulatedPlan, by_day, by_lane, by_schedule
from wakeful.core.time.instants import format_instant
from wakeful.core.time.timing import AfterReset, tally
from wakeful.features.schedules.compiled import Compiled, read_stored
from wakeful.simulation.copying import Copied
from wakeful.simulation.orphan import ending_with_parent
from wakeful.simulation.plan import run_plan

T = TypeVar("T")


def simulation(job: SimulationJob, copied: Copied) -> Simulation:
    """Simulate the plan with its changes, and the present plan for comparison."""
    check(job, copied)
    request = job.request
    if request.changes_plan:
        wait = beside(lambda: run_plan(job, copied, troubles=Troubles()))
        plan = run_plan(job, copied, troubles=request.troubles, drafts=job.drafts)
        difference = compare(wait().rows, plan.rows)
    else:
        plan, difference = run_plan(job, copied, troubles=Troubles()), Difference()
    return _made(job, plan, difference)


def _made(job: SimulationJob, plan: SimulatedPlan, difference: Difference) -> Simulation:
    request, zone = job.request, job.terms.default_zone
    days = Days(request.starts_at, request.ends_at, zone)
    made: Simulation = {
        "from": format_instant(request.starts_at),
        "until": format_instant(request.ends_at),
        "seed": request.seed,
        "timezone": zone,
        "schedules": [{"slug": slug, **sums.to_json()} for slug, sums in by_schedule(plan.rows).items()],
        "days": [{"date": date, **sums.to_json()} for date, sums in by_day(plan.rows, days).items()],
        "lanes": [{"lane": lane, **sums.to_json()} for lane, sums in by_lane(plan.rows).items()],
        "peak": plan.peak.to_json(),
        "difference": difference.to_json(),
    }
    if job.rows:
        made["rows"] = [row.to_json() for row in plan.rows]
    return made


def check(job: SimulationJob, copied: Copied) -> None:
    """Refuse names that do not exist, and more rows than the limit."""
    troubles, drafted = job.request.troubles, {checked.definition.slug for checked in job.drafts}
    known = {schedule.slug for schedule in copied.schedules}
    errors = [_unknown(f"without[{n}]", slug) for n, slug in enumerate(troubles.without) if slug not in known]
    for field, named in (("failing", troubles.failing), ("slow", troubles.slow)):
        errors += [_unknown(f"{field}.{s}", s) for s in named if s not in known | drafted | {"heartbeat"}]
    if errors:
        raise Invalid(*errors)
    count = _instants(job, copied)
    if count > ROWS_MAX:
        refuse("until", f"the period has about {count} instants; at most {ROWS_MAX} are simulated, so shorten it")


def _unknown(field: str, slug: str) -> FieldError:
    return FieldError(field, f"there is no schedule {slug!r}")


def _instants(job: SimulationJob, copied: Copied) -> int:
    """How many instants lie in the period."""
    starts_at, ends_at = job.request.starts_at, job.request.ends_at
    left_out = {*job.request.troubles.without, *(checked.definition.slug for checked in job.drafts)}
    timings = [checked.definition.timing for checked in job.drafts]
    for schedule in copied.schedules:
        compiled = read_stored(schedule.schedule_id, schedule.version, schedule.definition)
        is_active = copied.cadences[schedule.schedule_id].state == "active"
        if isinstance(compiled, Compiled) and is_active and schedule.slug not in left_out:
            timings.append(compiled.rules.timing)
    return sum(tally(timing, starts_at - 1, ends_at).count for timing in timings if not isinstance(timing, AfterReset))


def beside(work: Callable[[], T]) -> Callable[[], T]:
    """Start the work in a child process; returns a function that waits for the result."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(reading)
            with ending_with_parent(), os.fdopen(writing, "wb") as pipe:
                pickle.dump(work(), pipe, pickle.HIGHEST_PROTOCOL)
            code = 0
        finally:
            os._exit(code)
    os.close(writing)

    def wait() -> T:
        with os.fdopen(reading, "rb") as pipe:
            data = pipe.read()
        _, status = os.waitpid(child, 0)
        if status != 0:
            raise RuntimeError("the simulation of the present plan failed; see the log")
        result: T = pickle.loads(data)  # noqa: S301 - written by our own child
        return result

    return wait
