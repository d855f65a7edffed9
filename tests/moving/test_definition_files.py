"""Export and apply: definitions as files made for Git."""

import asyncio
import json
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from core.test_definition_json import DEFINITIONS
from new_store import prepare
from postgres.server import emptied_url as url
from postgres.server import server
from sampling import examples
from wakeful import Wakeful
from wakeful.core.errors import Invalid
from wakeful.core.schedule.actions import Command, Http
from wakeful.core.schedule.definition import Definition
from wakeful.core.schedule.definition_json import definition_to_json
from wakeful.core.time.instants import DAY, MINUTE
from wakeful.core.time.timing import AfterReset, Every, Once
from wakeful.core.time.timing_json import timing_to_store

__all__ = ["server", "url"]

REPORT: dict[str, Any] = {
    "slug": "report",
    "schedule": {"type": "cron", "expression": "0 9 * * 1-5", "timezone": "Europe/Berlin"},
    "command": {"argv": ["make", "report"]},
}
WORKFLOW: dict[str, Any] = {
    "id": "inbox",
    "status": "paused",
    "producers": {
        "poll": {
            "schedule": {"type": "every", "every": "5m"},
            "publishes": ["mail"],
            "handler": {"command": {"argv": ["true"]}},
        }
    },
    "consumers": {
        "digest": {
            "subscribe": ["mail"],
            "handler": {"command": {"argv": ["echo", '{"reservations": [], "data": {}}']}},
        }
    },
}


def text(data: Any) -> str:
    return json.dumps(data)


def possible(definition: Definition) -> Definition:
    """A definition that a process without agents, channels and slots accepts."""
    timing = definition.timing
    if isinstance(timing, AfterReset):
        timing = Every(DAY, 0)
    if isinstance(timing, Once):
        timing = Once(4_000_000_000_000)
    action = definition.action
    if isinstance(action, Command):
        action = replace(action, argv=("sh", *action.argv[1:]), cwd=None, env={"A": "é"})
    if isinstance(action, Http):
        action = replace(action, headers={"X-Test": "1"})
    late = None if definition.lateness_max is None else max(definition.lateness_max, MINUTE)
    return replace(definition, timing=timing, action=action, deliver=None, slot=None, success=None, lateness_max=late)


LISTS = st.lists(
    DEFINITIONS.filter(lambda drawn: isinstance(drawn.action, Command | Http)).map(possible),
    min_size=1,
    max_size=8,
    unique_by=lambda drawn: drawn.slug,
)


def fresh(folder: str, name: str) -> Wakeful:
    prepare(Path(folder) / name)
    return Wakeful(Path(folder) / name, timezone="UTC", tick=False)


async def there_and_back(definitions: Sequence[Definition]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with fresh(folder, "one.db") as one, fresh(folder, "two.db") as two:
            for definition in definitions:
                data = {**definition_to_json(definition), "schedule": timing_to_store(definition.timing)}
                await one.schedules.put(definition.slug, data)
            first, second = one.system, two.system
            files = (await first.export()).files
            assert len(files) == len(definitions)
            again = await first.apply(files, apply=True)
            assert (again.unchanged, again.diff) == (sorted(files), "")
            taken = await second.apply(files, apply=True)
            assert taken.create == sorted(files)
            assert (await second.export()).files == files


@settings(max_examples=examples(5), deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
@given(LISTS)
def test_a_round_trip_is_the_identity(definitions: list[Definition]) -> None:
    """Exported files change nothing where they come from, and give the same files from an empty store."""
    asyncio.run(there_and_back(definitions))


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.torture)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgres":
        address: str = request.getfixturevalue("url")
        return address
    prepare(tmp_path / "wakeful.db")
    return str(tmp_path / "wakeful.db")


async def test_apply_plans_writes_and_prunes(store: str) -> None:
    """A plan writes nothing; twice changes nothing; only what was applied from there is pruned."""
    async with Wakeful(store, timezone="UTC", tick=False) as app:
        files = app.system
        given = {
            "schedules/report.json": text(REPORT),
            "schedules/tidy.json": text({"schedule": {"type": "every", "every": "2h"}, "http": {"url": "http://x/"}}),
            "workflows/inbox.json": text(WORKFLOW),
        }
        planned = await files.apply(given)
        assert planned.create == sorted(given) and "+++ b/schedules/report.json" in planned.diff
        assert (await files.export()).files == {}
        await files.apply(given, place="repo", apply=True)
        exported = (await files.export()).files
        assert sorted(exported) == sorted(given)
        assert json.loads(exported["schedules/report.json"]) == REPORT
        assert (await files.apply(given, place="repo", apply=True)).unchanged == sorted(given)

        await app.schedules.put("own", {"schedule": {"type": "manual"}, "command": {"argv": ["true"]}})
        del given["workflows/inbox.json"], given["schedules/tidy.json"]
        given["schedules/report.json"] = text({**REPORT, "timeout": "5m", "enabled": False})
        elsewhere = await files.apply(given, place="other", prune=True)
        assert elsewhere.remove == []
        done = await files.apply(given, place="repo", apply=True, prune=True)
        assert done.update == ["schedules/report.json"]
        assert done.remove == ["schedules/tidy.json", "workflows/inbox.json"]
        left = (await files.export()).files
        assert sorted(left) == ["schedules/own.json", "schedules/report.json"]
        assert json.loads(left["schedules/report.json"])["enabled"] is False
        assert (await files.apply(given, place="repo", apply=True, prune=True)).diff == ""


async def test_one_bad_file_and_nothing_is_written(store: str) -> None:
    """Every error is named with its file and field."""
    async with Wakeful(store, timezone="UTC", tick=False) as app:
        files = app.system
        given = {
            "schedules/good.json": text({**REPORT, "slug": "good"}),
            "schedules/bad.json": text({"schedule": {"type": "cron", "expression": "61 * * * *"}, "prompt": "x"}),
            "schedules/other.json": text(REPORT),
            "../schedules/up.json": "{}",
            "schedules/'; DROP TABLE schedules; --.json": "{}",
            "schedules/twice.json": '{"slug": "twice", "slug": "twice"}',
            "schedules/deep.json": "[" * 100_000,
            "workflows/empty.json": "{}",
        }
        for only in ({}, {"schedules/bad.json", "schedules/good.json", "workflows/empty.json"}):
            chosen = {path: given[path] for path in only or given}
            with pytest.raises(Invalid) as refused:
                await files.apply(chosen, apply=True)
            named = {error.field.split(": ")[0] for error in refused.value.errors}
            assert named == (
                {*chosen}
                - {"schedules/good.json"}
                - (set() if only else {"workflows/empty.json", "schedules/bad.json"})
            )
        assert (await files.export()).files == {}


async def test_a_paused_schedule_stays_paused(tmp_path: Path) -> None:
    """Neither an unchanged nor a changed file without `enabled` ends a pause."""
    async with fresh(str(tmp_path), "wakeful.db") as app:
        files = app.system
        await files.apply({"schedules/report.json": text(REPORT)}, apply=True)
        await app.pause("report")
        await files.apply({"schedules/report.json": text({**REPORT, "timeout": "5m"})}, apply=True)
        view = await app.get("report")
        assert view.status == "paused" and view.to_json()["timeout"] == "5m"
