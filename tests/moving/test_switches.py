"""Switching jobs off in their own files: exactly these, with a backup next to the file."""

import json
import os
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from moving.kit import read
from wakeful.integrations.imports.crontab import USER_PLACE
from wakeful.integrations.imports.entries import Entry
from wakeful.integrations.imports.switches import MARK, CrontabSwitch, switches
from wakeful.ports.moving import SwitchFailed

JOB = {
    "prompt": "My tasks", "payload": {"kind": "systemEvent", "text": "Hi"},
    "cronExpression": "0 9 * * *", "schedule": {"kind": "cron", "expr": "0 9 * * *", "cron": "0 9 * * *"},
}  # fmt: skip
DEFINITION = {"slug": "one", "prompt": "Hi", "schedule": {"type": "cron", "expression": "0 9 * * *"}}
AUTOMATION = '# mine\nrrule = "FREQ=DAILY;BYHOUR=9"\nprompt = """\nstatus = "ACTIVE"\n"""\n'


async def inline(work: Any) -> Any:
    return work()


async def switch_off(entry: Entry, folder: Path) -> None:
    assert entry.off is not None
    switch = switches(inline, backups=folder)[entry.off.kind]
    assert not await switch.is_off([entry.off.what])
    await switch.switch_off([entry.off.what], within=10_000)
    assert await switch.is_off([entry.off.what])


def with_ids(*names: str) -> list[dict[str, Any]]:
    return [{"id": name, **JOB} for name in names]


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("hermes", {"jobs": with_ids("one", "two")}),
        ("hermes", with_ids("one", "two")),
        ("hermes", {"jobs": {"one": JOB, "two": JOB}}),
        ("hermes", {"jobs": [JOB, JOB], "updated_at": "2026-11-16"}),
        ("openclaw", {"jobs": with_ids("one", "two")}),
        ("openalice", {"jobs": with_ids("one", "two")}),
        ("openalice", {"jobs": [JOB, JOB]}),
        ("claude", {"scheduledTasks": with_ids("one", "two")}),
        ("claude", {"tasks": [{"taskId": name, **JOB} for name in ("one", "two")]}),
    ],
)
async def test_one_of_two_jobs_in_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, data: Any) -> None:
    """In every form in which the file occurs, also with a byte order mark; the other job stays as it is."""
    monkeypatch.setenv("PATH", "")
    path = tmp_path / "jobs.json"
    text = json.dumps(data)
    path.write_text("\ufeff" + text)
    first, _ = read(kind, path)
    await switch_off(first, tmp_path)
    assert [entry.is_paused for entry in read(kind, path)] == [True, False]
    assert (tmp_path / "jobs.json.wakeful-backup").read_text() == text


async def test_a_task_of_claude_code_is_removed(tmp_path: Path) -> None:
    """It cannot be switched off there; the other task stays as it is."""
    tasks = [
        {"id": name, "cron": "0 9 * * *", "prompt": "Hi", "createdAt": 1, "recurring": True} for name in ("a", "b")
    ]
    path = tmp_path / ".claude" / "scheduled_tasks.json"
    path.parent.mkdir()
    path.write_text(json.dumps({"tasks": tasks}))
    first, _ = read("claude", tmp_path)
    await switch_off(first, tmp_path)
    assert json.loads(path.read_text()) == {"tasks": tasks[1:]}
    assert json.loads((path.parent / "scheduled_tasks.json.wakeful-backup").read_text()) == {"tasks": tasks}


@pytest.mark.parametrize("status", ['status = "ACTIVE"\n', "status='ACTIVE' # on\n", ""])
async def test_a_codex_automation(tmp_path: Path, status: str) -> None:
    """Only its status changes, not the text in the prompt that looks like it; comments stay."""
    path = tmp_path / "triage" / "automation.toml"
    path.parent.mkdir()
    path.write_text(AUTOMATION + status)
    (entry,) = read("codex", tmp_path)
    await switch_off(entry, tmp_path)
    (after,) = read("codex", tmp_path)
    assert after.is_paused and after.action == entry.action and "# mine" in path.read_text()
    assert tomllib.loads(path.read_text())["status"] == "PAUSED"
    assert (path.parent / "automation.toml.wakeful-backup").read_text() == AUTOMATION + status


def program(folder: Path, script: str) -> str:
    made = folder / "crontab"
    made.write_text(f"#!/bin/sh\n{script}\n")
    made.chmod(0o755)
    return str(made)


async def test_a_crontab_that_cannot_be_listed_is_not_off(tmp_path: Path) -> None:
    """Otherwise both would run. Without a table there is nothing left to switch off."""
    what = [{"place": USER_PLACE, "line": "0 0 31 2 * true"}]
    denied = CrontabSwitch(inline, backups=tmp_path, program=program(tmp_path, "echo not allowed >&2; exit 1"))
    with pytest.raises(SwitchFailed, match="not allowed"):
        await denied.is_off(what)
    empty = CrontabSwitch(inline, backups=tmp_path, program=program(tmp_path, "echo no crontab for me >&2; exit 1"))
    assert await empty.is_off(what)


def of_nobody(*arguments: str, text: str | None = None) -> subprocess.CompletedProcess[str]:
    argv = ["crontab", "-u", "nobody", *arguments]
    return subprocess.run(argv, input=text, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.torture
@pytest.mark.skipif(os.getuid() != 0 or shutil.which("crontab") is None, reason="needs root and cron's own crontab")
async def test_the_real_program_crontab(tmp_path: Path) -> None:
    """A table of the user nobody, with a line that never runs. Variables, comments and other lines stay."""
    if of_nobody("-l").returncode == 0:
        pytest.skip("the user nobody has a crontab")
    table = "# mine\nLANG=C\n0 0 31 2 * true\n0 0 30 2 * true  # other\n"
    switch = CrontabSwitch(inline, backups=tmp_path, program=program(tmp_path, 'exec crontab -u nobody "$@"'))
    what = [{"place": USER_PLACE, "line": "0 0 31 2 * true"}]
    try:
        assert await switch.is_off(what)
        assert of_nobody("-", text=table).returncode == 0
        assert not await switch.is_off(what)
        await switch.switch_off(what, within=60_000)
        assert await switch.is_off(what)
        after = table.replace("0 0 31", f"{MARK}0 0 31")
        assert of_nobody("-l").stdout == after
        assert (tmp_path / "crontab.wakeful-backup").read_text() == table
    finally:
        of_nobody("-r")


async def test_a_caco_schedule(tmp_path: Path) -> None:
    """Its definition is switched off as a whole."""
    path = tmp_path / "schedule" / "one" / "definition.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(DEFINITION))
    (entry,) = read("caco", tmp_path)
    await switch_off(entry, tmp_path)
    assert json.loads(path.read_text()) == {**DEFINITION, "enabled": False}
    assert json.loads((path.parent / "definition.json.wakeful-backup").read_text()) == DEFINITION
