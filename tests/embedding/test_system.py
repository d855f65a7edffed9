"""The process and its store in a program: `app.system`, and its blocking form."""

import json
from pathlib import Path
from typing import Any

import pytest

from wakeful import Conflict, Invalid, Wakeful
from wakeful.api.actors import Actor, Refused
from wakeful.api.system import System
from wakeful.sync import Wakeful as BlockingWakeful
from wakeful.testing import virtual

CRONTAB = "@daily /bin/true\n"


async def test_nodes_health_and_forms_are_typed(tmp_path: Path) -> None:
    """What REST says in JSON, as objects; a program without a daemon has no settings file."""
    app = Wakeful(tmp_path / "wakeful.db", timezone="UTC")
    async with virtual(app):
        (node,) = (await app.system.nodes()).nodes
        assert node.is_alive and node.labels == []
        health = await app.system.health()
        assert (health.status, health.nodes, health.is_store_writable, health.problems) == ("ok", 1, True, [])
        assert {finding.level for finding in health.findings} == {"ok"}
        assert "schedule" in (await app.system.schedule_form()).fields
        assert "subscribe" in (await app.system.workflow_form()).consumer
        assert "glm" in [provider["name"] for provider in (await app.system.slot_form()).providers]
        with pytest.raises(Conflict, match="this process has no settings file"):
            await app.system.settings()


async def test_a_code_logs_in_and_only_an_admin_gets_one(tmp_path: Path) -> None:
    """The link has the code; ending all logins voids it."""
    async with Wakeful(tmp_path / "wakeful.db", timezone="UTC", tick=False) as app:
        made = await app.system.login_code()
        assert made.path == f"/#code={made.code}"
        with pytest.raises(Refused, match="the role 'operate' does not permit POST /api/login-codes"):
            await System(app, Actor("operate")).login_code()
        assert (await app.system.end_logins()).ended == 1


async def test_definitions_are_exported_applied_and_imported(tmp_path: Path) -> None:
    """A plan changes nothing; what is applied is what was planned."""
    async with Wakeful(tmp_path / "wakeful.db", timezone="UTC", tick=False) as app:
        planned = await app.system.import_schedules("crontab", CRONTAB)
        assert [(entry.slug, entry.action) for entry in planned.entries] == [("true", "create")]
        assert not planned.applied and (await app.system.export()).files == {}
        definition = {"schedule": {"type": "every", "every": "2h"}, "command": {"argv": ["true"]}}
        files = {"schedules/report.json": json.dumps(definition)}
        assert (await app.system.apply(files)).create == ["schedules/report.json"]
        assert (await app.system.export()).files == {}
        assert (await app.system.apply(files, apply=True)).create == ["schedules/report.json"]
        assert list((await app.system.export()).files) == ["schedules/report.json"]
        with pytest.raises(Invalid, match="is not a kind of import; write one of crontab"):
            await app.system.import_schedules("cronjob")


def test_it_waits_for_the_result_in_a_program_without_an_event_loop(tmp_path: Path) -> None:
    """The same operations, blocking."""
    with BlockingWakeful(tmp_path / "wakeful.db", timezone="UTC") as app:
        assert app.system.health().is_ticking
        assert len(app.system.nodes().nodes) == 1


async def test_the_old_names_work_and_warn(tmp_path: Path) -> None:
    """What 0.2 called on the app returns what it returned."""
    app: Any = Wakeful(tmp_path / "wakeful.db", timezone="UTC")
    async with virtual(app):
        with pytest.warns(DeprecationWarning, match=r"Wakeful.health is deprecated.*use app.system.health"):
            assert (await app.health()).level == "ok"
        with pytest.warns(DeprecationWarning, match=r"use app.system.nodes"):
            assert len((await app.pulse()).nodes) == 1
        with pytest.warns(DeprecationWarning, match=r"use app.system.health"):
            assert (await app.is_writable()).level == "ok"
