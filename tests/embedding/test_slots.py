"""Quota slots in Python: the daemon's, and none anywhere else."""

from pathlib import Path

import pytest

from features.kit import World, virtual
from features.quota_kit import Shop, config, open_quota
from wakeful import Conflict, Wakeful, sync
from wakeful.features.quota.queries import SLOT


async def test_a_program_has_no_slots(tmp_path: Path) -> None:
    """They are in the settings of a daemon; without one, every operation says so."""
    async with Wakeful(tmp_path / "wakeful.db") as app:
        for asked in (app.slots.list(), app.slots.get("main"), app.slots.wake("main"), app.slots.put("main", {})):
            with pytest.raises(Conflict, match="this process has no quota slots"):
                await asked


def test_a_program_without_an_event_loop_has_none_either(tmp_path: Path) -> None:
    """The blocking class has the same operations."""
    with sync.Wakeful(tmp_path / "wakeful.db") as app, pytest.raises(Conflict, match="this process has no quota slots"):
        app.slots.poll("main")


@virtual
async def test_a_view_has_the_definition_and_the_state(world: World) -> None:
    """The definition is as a person writes it, without secrets; JSON has its fields beside the others."""
    opened = await open_quota(world, Shop(world), config(world, {}))
    done = await opened.app.slots.put("mine", {"apiKey": "sk-mine", "interval": "1h"})
    assert done.is_created
    assert (done.view.status, done.view.source, done.view.definition["interval"]) == ("new", "store", "1h")
    shown = SLOT.write(await opened.app.slots.get("mine"))
    assert (shown["interval"], shown["apiKey"], shown["status"]) == ("1h", "••••", "new")
    assert (await opened.app.slots.patch("mine", {"interval": None})).definition.get("interval") is None
    await opened.app.slots.remove("mine")
    assert (await opened.app.slots.list()).slots == []
