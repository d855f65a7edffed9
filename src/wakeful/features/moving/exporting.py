"""Export: the stored definitions as files. Needs nothing but a transaction, so it works without a daemon too."""

import json
from collections.abc import Iterator
from typing import Any, Final

from wakeful.core.definition_files import DefinitionFile, without_secrets
from wakeful.core.schedule.definition import RESERVED_SLUGS
from wakeful.ports.ownerships import Ownerships
from wakeful.ports.slots import QuotaSlots
from wakeful.ports.store import Schedule, Tx
from wakeful.ports.workflows import StoredWorkflows

STEP: Final = 500


def stored_files(tx: Tx) -> list[DefinitionFile]:
    """All definitions that are kept in the store. Slots in wakeful.toml, workflows in Python modules, agents' schedules
    and finished one-shots are left out."""
    return [*_schedules(tx), *_workflows(tx), *_slots(tx)]


def schedule_file(tx: Tx, slug: str) -> DefinitionFile | None:
    """One schedule's file; None if it is not exported."""
    rows = list(tx.schedules.by_slugs([slug]).values())
    return next(iter(_schedule_files(tx, rows)), None)


def _schedules(tx: Tx) -> Iterator[DefinitionFile]:
    after: str | None = None
    while rows := tx.schedules.page(after=after, limit=STEP):
        yield from _schedule_files(tx, rows)
        after = rows[-1].slug


def _schedule_files(tx: Tx, rows: list[Schedule]) -> Iterator[DefinitionFile]:
    schedule_ids = [row.schedule_id for row in rows]
    cadences, owned = tx.cadences.lock(schedule_ids), tx[Ownerships].among(schedule_ids)
    for row in rows:
        state = cadences[row.schedule_id].state
        if row.slug in RESERVED_SLUGS or row.schedule_id in owned or state == "done":
            continue
        data: dict[str, Any] = json.loads(row.definition)
        if state == "disabled":
            data = {"slug": row.slug, "enabled": False, **data}
        yield DefinitionFile("schedule", row.slug, data)


def _workflows(tx: Tx) -> Iterator[DefinitionFile]:
    after: str | None = None
    while rows := tx[StoredWorkflows].page(after=after, limit=STEP):
        for row in rows:
            if row.origin != "python":
                data = json.loads(row.definition)
                yield DefinitionFile("workflow", row.name, {"id": row.name, "status": row.status, **data})
        after = rows[-1].name


def _slots(tx: Tx) -> Iterator[DefinitionFile]:
    for slot in tx[QuotaSlots].all():
        if slot.definition is not None:
            yield DefinitionFile("slot", slot.name, without_secrets(json.loads(slot.definition)))
