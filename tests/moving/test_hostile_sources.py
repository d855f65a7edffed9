"""What a source may contain, and what a path may be: a clear refusal, bounded in bytes and time."""

import json
import os
import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest

from edges.http.kit import Client, served


@pytest.fixture
async def api(tmp_path: Path) -> Any:
    async with served(tmp_path) as client:
        yield client


KINDS = ("crontab", "systemd", "openclaw", "hermes", "claude", "codex", "caco", "openalice", "glm-tray", "kubernetes")


@pytest.mark.parametrize("kind", KINDS)
async def test_a_path_that_is_no_source_is_refused(api: Client, tmp_path: Path, kind: str) -> None:
    """Files of the kernel, devices, pipes, sockets, and what no file name can be: a clear 400, at once."""
    os.mkfifo(tmp_path / "pipe")
    os.mkfifo(tmp_path / "pipe.sqlite")
    paths = ["/proc/self/mem", "/proc/kmsg", "/proc/version", "/dev/zero", "/dev/tty", "/dev/stdin", "/dev/full"]
    paths += [str(tmp_path / "pipe"), str(tmp_path / "pipe.sqlite"), "/" + "x" * 5000, "/x\0y", "/\ud800"]
    for path in paths:
        refused = await api.post("/api/import?apply=true", {"kind": kind, "path": path})
        assert refused.status in (400, 422), (path, refused.body)
        (error,) = refused.body["errors"]
        assert error["field"] in ("path", "body", "") and error["message"], (path, refused.body)


async def test_other_peoples_files_are_bounded(api: Client, tmp_path: Path) -> None:
    """A database with a view that never ends, with a cell of 30 MB, and more files than memory."""
    for name, statement in {
        "endless": "CREATE VIEW cron_jobs AS WITH RECURSIVE n(job_json) AS (SELECT 1 UNION ALL SELECT 1 FROM n) "
        "SELECT job_json FROM n WHERE job_json > 1",
        "large": "CREATE TABLE cron_jobs AS SELECT zeroblob(30000000) AS job_json",
    }.items():
        with sqlite3.connect(tmp_path / f"{name}.sqlite") as store:
            store.execute(statement)
        store.close()
        refused = await api.post("/api/import", {"kind": "openclaw", "path": str(tmp_path / f"{name}.sqlite")})
        assert refused.status == 400 and "cannot be read" in refused.body["error"], name
    for number in range(9):
        folder = tmp_path / "schedule" / f"s{number}"
        folder.mkdir(parents=True)
        (folder / "definition.json").write_text(" " * 8_000_000)
    refused = await api.post("/api/import", {"kind": "caco", "path": str(tmp_path)})
    assert refused.status == 400 and "characters in all" in refused.body["error"]


async def test_a_source_that_never_answers_is_refused(api: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hanging file system holds up neither the caller nor the end of the process."""
    answer = threading.Event()
    monkeypatch.setattr("wakeful.api.importing.READ_WITHIN", 50)
    monkeypatch.setattr("wakeful.api.importing.entries_of", lambda *_, **__: answer.wait() and [])
    refused = await api.post("/api/import", {"kind": "crontab", "path": "/etc/crontab"})
    answer.set()
    assert refused.status == 400 and "it takes too long to read" in refused.body["error"]


BAD: tuple[Any, ...] = (
    None, True, 0, -1, 1e300, 10**30, "", "\ud800", "x\0y", "9" * 5000, [], [1], {}, {"a": 1}, "2026-99-99",
    "0 0 30 2 *", "Mars/Phobos", 253_402_300_800_000,
)  # fmt: skip
SOURCES: dict[str, Any] = {
    "openclaw": {"jobs": [{
        "id": "a", "name": "n", "createdAtMs": 1, "schedule": {"kind": "at", "at": "2099-01-01T09:00:00Z"},
        "payload": {"kind": "command", "argv": ["true"], "env": {"A": "b"}}, "state": {"lastRunAtMs": 5},
    }]},
    "hermes": [{
        "id": "a", "schedule": {"kind": "interval", "minutes": 90}, "prompt": "x", "last_run_at": "2020-01-01",
    }],
    "claude": {"tasks": [{"id": "a", "cron": "0 9 * * *", "prompt": "x", "createdAt": 1, "recurring": True}]},
    "openalice": {"jobs": [{
        "id": "a", "schedule": {"kind": "every", "every": "2h"}, "payload": "x", "createdAtMs": 1,
    }]},
    "glm-tray": {"slots": [{
        "slot": 1, "name": "x", "api_key": "k", "schedule_times": ["09:00"], "poll_interval_minutes": 3,
    }]},
    "kubernetes": {"kind": "CronJob", "metadata": {"name": "a"}, "spec": {"schedule": "0 0 * * *", "timeZone": "UTC"}},
    "caco": {"slug": "a", "prompt": "x", "schedule": {"type": "interval", "intervalMinutes": 60}, "enabled": True},
}  # fmt: skip


def changed(value: Any) -> list[Any]:
    """A source with one of its values replaced, in every place."""
    if isinstance(value, dict):
        places: Any = value.items()
    elif isinstance(value, list):
        places = enumerate(value)
    else:
        return []
    found: list[Any] = []
    for key, inner in list(places):
        for other in (*BAD, *changed(inner)):
            copy: Any = dict(value) if isinstance(value, dict) else list(value)
            copy[key] = other
            found.append(copy)
    return found


@pytest.mark.parametrize("kind", SOURCES)
async def test_no_value_in_a_source_is_an_internal_error(api: Client, kind: str) -> None:
    """Each value, in each place, refuses its entry or the source."""
    sources = changed(SOURCES[kind])
    assert len(sources) > 50
    for source in sources:
        answer = await api.post("/api/import", {"kind": kind, "content": json.dumps(source)})
        assert answer.status in (200, 400), (source, answer.body)
