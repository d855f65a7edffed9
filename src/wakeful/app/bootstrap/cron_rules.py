"""Replanning at the first start of a version that reads some stored cron expressions in another way."""

import json
from collections.abc import Sequence
from typing import Final

from wakeful.app.bootstrap.parts import Parts
from wakeful.core.time.cron import is_single_range
from wakeful.core.time.instants import Instant
from wakeful.core.time.timing import Cron, Timing
from wakeful.features.schedules.compiled import Compiled, read_stored
from wakeful.features.workflows.compiled import Compilations
from wakeful.features.workflows.replanning import concerned_producers, replan_producers
from wakeful.ports.meta import Meta
from wakeful.ports.store import Tx
from wakeful.ports.workflows import StoredWorkflows

CRON_RULES: Final = "cron_rules"
CURRENT: Final = "2"
"""2: a range of one value with a step is this value (0.3)."""

REPLANNED: Final = "cron_replanned"
"""What was replanned, as a JSON list of names, for the finding."""

STEP: Final = 500
NAMED_MAX: Final = 100
WORKFLOW: Final = "workflow:"


async def replan_if_cron_rules_changed(parts: Parts, now: Instant) -> None:
    """Replan what was planned while `7-7/1` was read as 7 to the end of the field."""
    if await parts.store.read(lambda tx: tx[Meta].value(CRON_RULES)) == CURRENT:
        return
    names = [*await _schedules(parts), *(f"{WORKFLOW}{name}" for name in await _workflows(parts, now))]

    def note(tx: Tx) -> None:
        if names:
            tx[Meta].set(REPLANNED, json.dumps(names[:NAMED_MAX]))
        tx[Meta].set(CRON_RULES, CURRENT)

    await parts.store.write(note)


def still_concerned(tx: Tx) -> Sequence[str]:
    """What was replanned and still has such an expression."""
    noted = tx[Meta].value(REPLANNED)
    if noted is None:
        return ()
    names: list[str] = json.loads(noted)
    schedules = tx.schedules.by_slugs([name for name in names if not name.startswith(WORKFLOW)])
    workflows = tx[StoredWorkflows].by_names(
        [name.removeprefix(WORKFLOW) for name in names if name.startswith(WORKFLOW)]
    )
    compilations = Compilations()
    concerned = {slug for slug, row in schedules.items() if _is_concerned(row.schedule_id, row.version, row.definition)}
    for name, workflow in workflows.items():
        if concerned_producers(workflow, compilations, _was_misread):
            concerned.add(f"{WORKFLOW}{name}")
    return [name for name in names if name in concerned]


def _is_concerned(schedule_id: int, version: int, definition: str) -> bool:
    compiled = read_stored(schedule_id, version, definition)
    return isinstance(compiled, Compiled) and _was_misread(compiled.definition.timing)


async def _schedules(parts: Parts) -> list[str]:
    slugs: list[str] = []
    after_id = 0
    while True:
        start = after_id
        step = await parts.store.write(
            lambda tx, start=start: parts.alarms.replan_zoned(tx, after_id=start, limit=STEP, concerns=_was_misread)  # type: ignore[misc]
        )
        if step is None:
            return slugs
        after_id, found = step
        slugs += found


async def _workflows(parts: Parts, now: Instant) -> list[str]:
    names: list[str] = []
    compilations, after_id = Compilations(), 0
    while True:
        start = after_id
        step = await parts.store.write(
            lambda tx, start=start: replan_producers(  # type: ignore[misc]
                tx, compilations, concerns=_was_misread, after_id=start, limit=STEP, now=now
            )
        )
        if step is None:
            return names
        after_id, found = step
        names += found


def _was_misread(timing: Timing) -> bool:
    return isinstance(timing, Cron) and is_single_range(timing.expression)
