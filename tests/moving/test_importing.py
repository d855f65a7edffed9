"""The plan of an import, applying it, and applying it again."""

import asyncio
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from edges.http.kit import Client, served
from features.kit import World, ledger, virtual
from moving.kit import BASE, CORPUS
from moving.stand_ins import Machine
from new_store import prepare
from postgres.server import emptied_url as url
from postgres.server import server
from wakeful import Wakeful
from wakeful.api.importing import Importer
from wakeful.core.run.results import Done
from wakeful.core.schedule.actions import Command
from wakeful.core.time.instants import DAY, HOUR
from wakeful.features.moving.handover import next_handover_at
from wakeful.features.schedules.takeover import await_handover, take_over
from wakeful.integrations.imports.entries import Context, Entry
from wakeful.integrations.imports.wall_rules import WallRules

__all__ = ["server", "url"]


async def inline(work: Callable[[], Any]) -> Any:
    return work()


async def test_a_pasted_crontab(tmp_path: Path) -> None:
    """The plan has each entry in words, its next times there and here, and no secrets; applied twice changes
    nothing; the entries remember where they came from; an edit of a person is not undone."""
    text = runnable((CORPUS / "crontab.txt").read_text(), tmp_path)
    workdays = f"0 9 * * 1-5\t{tmp_path}/bin/workdays\n"
    async with served(tmp_path, tick=False) as api:
        body = {"kind": "crontab", "content": text}
        plan = (await api.post("/api/import", body)).body
        assert "do-not-print-me" not in json.dumps(plan) and "hunter2" not in json.dumps(plan)
        actions = [entry["action"] for entry in plan["entries"]]
        assert actions.count("create") >= 40 and actions.count("refused") == 7
        for entry in plan["entries"]:
            if entry["action"] == "create":
                assert entry["description"] and entry["next"] == entry["sourceNext"] and len(entry["next"]) == 3
        assert (await api.get("/api/schedule")).body["schedules"] == []

        done = (await api.post("/api/import?apply=true", body)).body
        slugs = [entry["slug"] for entry in done["entries"] if entry["action"] == "create"]
        assert len(set(slugs)) == len(slugs) and {"twice", "twice-2"} <= set(slugs)
        before = (await api.get("/api/export")).body
        again = (await api.post("/api/import?apply=true", body)).body
        assert {entry["action"] for entry in again["entries"]} == {"unchanged", "refused"}
        assert (await api.get("/api/export")).body == before

        await api.ask("PATCH", "/api/schedule/hourly", {"timeout": "3m"})
        changed = text.replace(workdays, workdays.replace("0 9", "0 10"))
        update = (await api.post("/api/import?apply=true", {"kind": "crontab", "content": changed})).body
        assert [entry["slug"] for entry in update["entries"] if entry["action"] == "update"] == ["workdays"]
        stored = (await api.get("/api/schedule/workdays")).body
        assert stored["schedule"]["expression"] == "0 10 * * 1-5"


def runnable(table: str, folder: Path) -> str:
    """A table whose programs exist, as stand-ins in a folder, and whose output is mailed to no one."""
    machine = Machine(folder)
    names = re.findall(r"/usr/local/bin/([\w.-]+)|/usr/lib/sa/(\w+)", table)
    machine.install("run-parts", "mail", "curl", "pg_dump", *{name or other for name, other in names})
    table = re.sub(r"/usr/local/bin/|/usr/lib/sa/", f"{machine.bin}/", table).replace("MAILTO=ops@example.org\n", "")
    return re.sub(r"(?m)^PATH=.*$", f"PATH={machine.path}", table)


async def test_it_overwrites_nothing_of_others(tmp_path: Path) -> None:
    """A schedule of the same name that was not imported stays as it is."""
    async with served(tmp_path) as api:
        await api.put("daily")
        content = runnable("@daily /usr/local/bin/daily\n", tmp_path)
        done = (await api.post("/api/import?apply=true", {"kind": "crontab", "content": content})).body
        assert done["entries"][0]["slug"] == "daily-2"


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_import_and_handover_on_both_stores(request: pytest.FixtureRequest, tmp_path: Path, kind: str) -> None:
    """Origins, missed times and the handover itself; twice changes nothing."""
    if kind == "sqlite":
        prepare(tmp_path / "wakeful.db")
    store = str(tmp_path / "wakeful.db") if kind == "sqlite" else request.getfixturevalue("url")
    async with Wakeful(store, timezone="UTC", tick=False) as app:
        now = app._moment().now
        far_away = (now // HOUR + 12) % 24  # not due between now and the handover
        job = {
            "id": "j", "name": "Daily", "schedule": {"kind": "cron", "expr": f"0 {far_away} * * *", "tz": "UTC"},
            "payload": {"kind": "command", "argv": ["true"]},
        }  # fmt: skip
        job["state"] = {"lastRunAtMs": now - 3 * DAY}
        importer = Importer(app)
        content = json.dumps({"jobs": [job]})
        await importer.apply(await importer.plan("openclaw", content=content))
        (missed,) = await app.runs("daily")
        assert (missed.outcome, missed.reason, missed.count) == ("missed", "before import", 3)
        again = await importer.plan("openclaw", content=content)
        assert [planned.action for planned in again.entries] == ["unchanged"]

        await app._store.write(lambda tx: await_handover(tx, "daily", now=now))
        assert (await app.get("daily")).status == "disabled"
        hand_at = next_handover_at(now)
        for _ in range(2):  # a journal may be completed twice
            await app._store.write(lambda tx: take_over(tx, "daily", off_at=now, hand_at=hand_at, now=hand_at))
        view = await app.get("daily")
        assert view.status == "idle" and view.next_run is not None and len(await app.runs("daily")) == 1


async def test_what_our_limits_would_change_is_refused(tmp_path: Path) -> None:
    """An interval of five seconds would become one of ten."""
    job = {
        "id": "j", "schedule": {"kind": "every", "everyMs": 5000, "anchorMs": 0},
        "payload": {"kind": "command", "argv": ["true"]},
    }  # fmt: skip
    async with served(tmp_path) as api:
        body = {"kind": "openclaw", "content": json.dumps({"jobs": [job]})}
        (entry,) = (await api.post("/api/import?apply=true", body)).body["entries"]
        assert entry["action"] == "refused" and "every_min" in entry["reason"]


async def test_what_cannot_be_switched_off_is_refused_in_a_handover(tmp_path: Path) -> None:
    """It would run twice. The reason says what to do by hand; without a handover it is imported."""
    (tmp_path / "job.json").write_text(
        json.dumps({"kind": "CronJob", "metadata": {"name": "nightly"}, "spec": {"schedule": "0 3 * * *"}})
    )
    (tmp_path / "a.timer").write_text("[Timer]\nOnCalendar=daily\n")
    (tmp_path / "a.service").write_text("[Service]\nExecStart=/bin/true\n")
    said = {"kubernetes": "kubectl -n default patch", "systemd": "disable --now a.timer"}
    names = {"kubernetes": "job.json", "systemd": "a.timer"}
    async with served(tmp_path) as api:
        for kind, name in names.items():
            body = {"kind": kind, "path": str(tmp_path / name)}
            for query in ("disableSource=true", "disableSource=true&apply=true"):
                told = (await api.post(f"/api/import?{query}", body)).body
                (entry,) = told["entries"]
                assert entry["action"] == "refused" and told["handover"] is None
                assert "without --disable-source" in entry["reason"] and said[kind] in entry["reason"]
        assert (await api.get("/api/schedule")).body["schedules"] == []
        done = (await api.post("/api/import?apply=true", body)).body
        assert [entry["action"] for entry in done["entries"]] == ["create"]


async def test_importing_twice_at_once_writes_once(tmp_path: Path) -> None:
    """The second write of the same definition is an edit that changes nothing."""
    async with served(tmp_path) as api:
        body = {"kind": "crontab", "content": runnable("@daily /usr/local/bin/daily\n", tmp_path)}
        await asyncio.gather(*(api.post("/api/import?apply=true", body) for _ in range(4)))
        listed = (await api.get("/api/schedule")).body["schedules"]
        assert [schedule["slug"] for schedule in listed] == ["daily"]


async def test_only_what_is_chosen_is_taken(tmp_path: Path) -> None:
    """By slug, or all but some; the rest is neither written nor switched off."""
    table = tmp_path / "table"
    lines = "".join(f"@daily /usr/local/bin/{name}\n" for name in ("one", "two", "three"))
    table.write_text(runnable(f"{lines}@reboot /usr/local/bin/four\n", tmp_path))
    body = {"kind": "crontab", "path": str(table)}
    async with served(tmp_path) as api:
        plan = (await api.post("/api/import", {**body, "except": ["two"]})).body
        assert [entry["slug"] for entry in plan["entries"]] == ["one", "three", None]
        done = (await api.post("/api/import?apply=true", {**body, "only": ["three", "one"], "except": ["one"]})).body
        assert [entry["slug"] for entry in done["entries"]] == ["three"]
        nothing = (await api.post("/api/import?apply=true", {**body, "only": []})).body
        assert nothing["entries"] == []
        refused = await api.post("/api/import?apply=true", {**body, "only": ["three", "five"]})
        assert refused.status == 400 and "there is no entry 'five' in this source; there are one, two" in str(
            refused.body
        )
        assert [one["slug"] for one in (await api.get("/api/schedule")).body["schedules"]] == ["three"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"kind": "crontab", "content": "@daily x\n", "only": "x"}, "only"),
        ({"kind": "crontab", "content": "@daily x\n", "except": [1]}, "except"),
        ({"kind": "cron"}, "kind"),
        ({"kind": "crontab", "content": "x", "path": "/x"}, "content"),
        ({"kind": "crontab", "path": "etc/crontab"}, "path"),
        ({"kind": "crontab", "path": "/no/such/file"}, "path"),
        ({"kind": "crontab", "content": "* * * * * x\n" + "y" * 70_000}, "content"),
    ],
)
async def test_bad_requests_are_refused_by_field(api: Client, body: dict[str, Any], field: str) -> None:
    """And nothing is written."""
    refused = await api.post("/api/import?apply=true", body)
    assert refused.status == 400 and [error["field"] for error in refused.body["errors"]] == [field]
    assert (await api.get("/api/schedule")).body["schedules"] == []


@pytest.fixture
async def api(tmp_path: Path) -> Any:
    async with served(tmp_path) as client:
        yield client


@virtual
async def test_a_hundred_late_entries_do_not_fire_at_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their last runs lie days back. What the source missed is in the ledger as missed(before import); each runs next
    at its own time."""
    started: list[str] = []

    class Shell:
        is_local = True

        def check(self, _: Any) -> None:
            return None

        def proves(self, _: Any) -> str:
            return "finished"

        async def perform(self, spec: Command, fire: Any, *_: Any) -> Any:
            started.append(fire.slug)
            return Done()

        async def close(self) -> None: ...

    app = world.bench(timezone="UTC", actions={Command: Shell()})
    await app.start()
    await world.until("01-10 12:00:30")

    def late(kind: str, *, content: str | None, path: Path | None, context: Context, **_: object) -> list[Entry]:
        return [
            Entry(
                "jobs.json",
                f"id-{number}",
                f"job {number}",
                f"job-{number}",
                schedule={"type": "cron", "expression": f"{number % 60} 9 * * *", "timezone": "UTC"},
                action={"command": {"argv": ["true"]}},
                options={"catchUp": "once"},
                times=WallRules("UTC", lambda _: True, (9 * 3600 + number % 60 * 60,), "skip", "once"),
                last_run=world.now - 5 * DAY,
            )
            for number in range(100)
        ]

    monkeypatch.setattr("wakeful.api.importing.entries_of", late)
    importer = Importer(app, in_thread=inline)
    plan = await importer.plan("crontab", content="", context=replace(BASE, zone="UTC", now=world.now))
    assert len(plan.writable) == 100
    await importer.apply(plan)
    await world.sleep("10m")
    assert started == []
    assert await ledger(app, "job-7") == ["01-06 09:07:00 missed (before import) x5"]
    await world.until("01-11 10:00:30")
    assert sorted(started) == sorted(f"job-{number}" for number in range(100))
    assert (await ledger(app, "job-7"))[1:] == ["01-11 09:07:00 succeeded"]
    await asyncio.sleep(0)
