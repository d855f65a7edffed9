"""Taking over the slots of GLM-Tray: only while it does not run, and off here until they are off there."""

import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from features.kit import World, virtual
from features.quota_kit import Opened, Shop, config, open_quota
from moving.kit import BASE
from patience import PATIENCE
from wakeful.api.importing import Importer
from wakeful.integrations.imports import switches
from wakeful.integrations.imports.switches import GlmTraySwitch
from wakeful.ports.moving import SwitchFailed

SLOTS = [
    {"slot": 1, "name": "main", "api_key": "sk-1", "enabled": True, "wake_interval_minutes": 60},
    {"slot": 2, "name": "second", "api_key": "sk-2", "enabled": True, "wake_interval_minutes": 60},
    {"slot": 3, "name": "third", "api_key": "sk-3", "enabled": False, "wake_interval_minutes": 60},
]


async def inline(work: Any) -> Any:
    return work()


@contextmanager
def glm_tray(folder: Path) -> Iterator[None]:
    """A process of that name."""
    program = shutil.copy(shutil.which("sleep") or "", folder / "glm-tray")
    child = subprocess.Popen([program, "600"])
    try:
        end = time.monotonic() + PATIENCE
        while not switches._is_running("glm-tray"):
            assert time.monotonic() < end
            time.sleep(0.02)
        yield
    finally:
        child.kill()
        child.wait()


async def test_a_running_program_is_not_changed_behind_its_back(tmp_path: Path) -> None:
    """It would not read the file, and write it over later."""
    path = tmp_path / "settings.json"
    path.write_text(json.dumps({"slots": SLOTS}))
    what = [{"path": str(path), "list": "slots", "id": "2", "set": {"enabled": False}}]
    switch = GlmTraySwitch(inline)
    with glm_tray(tmp_path), pytest.raises(SwitchFailed, match="reads its settings only when it starts; quit it"):
        await switch.switch_off(what, within=1_000)
    assert not await switch.is_off(what)
    await switch.switch_off(what, within=1_000)
    assert await switch.is_off(what)
    assert [one["enabled"] for one in json.loads(path.read_text())["slots"]] == [True, False, False]


async def start(world: World) -> tuple[Opened, Importer, Path]:
    path = world.path.parent / "settings.json"
    path.write_text(json.dumps({"slots": SLOTS}))
    opened = await open_quota(world, Shop(world), config(world, {}), home=world.path.parent)
    importer = Importer(opened.app, in_thread=inline)
    importer.plug(opened.app._open)
    return opened, importer, path


@virtual
async def test_slots_are_off_here_until_they_are_off_there(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    running = [True]
    monkeypatch.setattr(switches, "_is_running", lambda program: running[0])
    opened, importer, path = await start(world)
    plan = await importer.plan("glm-tray", path=path, context=replace(BASE, now=world.now))
    done = await importer.apply(plan.chosen(["main", "third"]), is_handover=True)
    assert done.handover is not None and [one.slug for one in done.entries] == ["main", "third"]

    async def enabled() -> dict[str, Any]:
        return {slot["name"]: slot["enabled"] for slot in await opened.slots()}

    await world.sleep("5m")
    assert await enabled() == {"main": False, "third": False}  # the program still runs, and wakes them itself
    running[0] = False
    await world.sleep("5m")
    assert await enabled() == {"main": True, "third": False}
    assert [one["enabled"] for one in json.loads(path.read_text())["slots"]] == [False, True, False]
    again = await importer.plan("glm-tray", path=path, context=replace(BASE, now=world.now))
    assert [one.action for one in again.chosen(["main", "third"]).entries] == ["unchanged", "unchanged"]
