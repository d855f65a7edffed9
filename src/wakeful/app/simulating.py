"""Simulations for Python programs, REST and the command line: each in a separate process, one at a time."""

import asyncio
import json
import os
import pickle
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any, Final

from wakeful.app.definitions import Definitions
from wakeful.app.simulation_job import Answer, SimulationJob
from wakeful.core.errors import FieldError, Invalid
from wakeful.core.refusals import Conflict
from wakeful.core.schedule.definition_json import definition_from_json
from wakeful.core.simulation.request import SimulationRequest, request_from_json
from wakeful.core.time.instants import Instant
from wakeful.features.schedules.checks import Checked, check, refuse_past, refuse_short_lateness

PROGRAM: Final = ("-m", "wakeful.simulation")
WITHIN: Final = 600.0
"""Seconds after which a simulation is stopped."""
WAITING_MAX: Final = 8
"""How many simulations may wait to start."""


class Simulations(Definitions):
    """What will happen."""

    _simulating: asyncio.Semaphore | None = None
    _simulations_waiting = 0

    async def _simulated(self, written: Mapping[str, Any], *, rows: bool) -> bytes:
        """Simulate what a request in JSON describes; returns the result as text."""
        now, zone = self._clock.read().now, self._open.conditions.default_zone
        request = request_from_json(written, now=now, zone=zone)
        drafts = self._drafts(request)
        return await self._answered("simulation", request, now, drafts=drafts, rows=rows)

    def _drafts(self, request: SimulationRequest) -> tuple[Checked, ...]:
        """The checked drafts; raises `Invalid` with all their errors."""
        errors: list[FieldError] = []
        checked: list[Checked] = []
        for index, draft in enumerate(request.drafts):
            try:
                checked.append(self._draft(draft, request.starts_at))
            except Invalid as invalid:
                errors += [replace(error, field=f"with[{index}].{error.field}".rstrip(".")) for error in invalid.errors]
        if errors:
            raise Invalid(*errors)
        return tuple(checked)

    def _draft(self, draft: Mapping[str, Any], at: Instant) -> Checked:
        conditions = self._open.conditions
        definition = definition_from_json(draft, default_zone=conditions.default_zone, now=at)
        checked = check(definition, conditions, now=at)
        refuse_past(checked.definition, at)
        refuse_short_lateness(checked.definition)
        return checked

    async def _answered(
        self,
        answer: Answer,
        request: SimulationRequest,
        now: Instant,
        *,
        drafts: tuple[Checked, ...] = (),
        rows: bool = False,
    ) -> bytes:
        setup, has_agents = self._setup, self._has_heartbeat or self._all_agents() is not None
        job = SimulationJob(
            answer,
            self._url,
            now,
            request,
            setup.limits.concurrency_max,
            self._open.terms.value,
            self._money.terms,
            self._heartbeat.terms if has_agents else None,
            drafts,
            rows,
        )
        async with self._turn():
            output = await run_apart(job)
        return unwrapped(output)

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """Wait for a turn: simulations run one at a time."""
        if self._simulating is None:
            self._simulating = asyncio.Semaphore(1)
        if self._simulations_waiting >= WAITING_MAX:
            raise Conflict(f"{WAITING_MAX} simulations are already waiting; try again when they have finished")
        self._simulations_waiting += 1
        try:
            async with self._simulating:
                yield
        finally:
            self._simulations_waiting -= 1


async def run_apart(job: SimulationJob) -> bytes:
    """Run a simulation in a separate process, which ends with the caller."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *PROGRAM,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(WITHIN):
            output, errors = await process.communicate(pickle.dumps(job, pickle.HIGHEST_PROTOCOL))
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # also the child that simulates the present plan
            await process.wait()
    if process.returncode != 0:
        lines = errors.decode("utf-8", "replace").strip().splitlines()
        raise RuntimeError(f"the simulation ended with {process.returncode}: {lines[-1] if lines else 'no output'}")
    return output


_ANSWER: Final = b'{"answer": '


def unwrapped(output: bytes) -> bytes:
    """The response text; raises `Invalid` if the request was refused."""
    if output.startswith(_ANSWER):
        return output[len(_ANSWER) : -1]
    errors = json.loads(output)["errors"]
    raise Invalid(*(FieldError(error["field"], error["message"]) for error in errors))
