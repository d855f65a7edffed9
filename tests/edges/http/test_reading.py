"""Reading changes nothing (L1): every GET of the API, asked while an instant is overdue and nobody ticks."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from edges.http.kit import EVERY, served

# What stands in the place of each name in a path; anything else is a name that nobody has.
NAMES = {"{slug}": "late", "{id}": "1", "{name}": "inbox", "{run}": "1", "{topic}": "mail"}
HOUR = 3_600_000


def everything(path: Path) -> dict[str, list[Any]]:
    """Every row of every table, except what reading writes by design: the mark by which `/healthz` finds out whether
    the store can be written, and the day's forecast, which is kept to be compared with what happens."""
    with closing(sqlite3.connect(path)) as database:
        names = database.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall()
        rows = {name: database.execute(f"SELECT * FROM {name} ORDER BY 1, 2").fetchall() for (name,) in names}
    return {**rows, "forecasts": [], "meta": [row for row in rows["meta"] if row[0] != "health_probe"]}


async def test_no_get_moves_what_is_planned(tmp_path: Path) -> None:
    """Field note 1: a list or a status asked for after the due time once advanced the next run and skipped the job."""
    path = tmp_path / "wakeful.db"
    async with served(tmp_path, tick=False) as client:
        assert (await client.put("late", EVERY)).status == 201
        with closing(sqlite3.connect(path)) as database, database:
            back = (3 * HOUR,)
            database.execute("UPDATE cadences SET next_at = next_at - ?1, planned_through = planned_through - ?1", back)
            database.execute("UPDATE alarms SET due_at = due_at - ?1", back)
        before = everything(path)
        described = (await client.get("/api/openapi.json")).body["paths"]
        asked: dict[str, int] = {}
        for _ in range(2):
            for route in sorted(route for route, methods in described.items() if "get" in methods):
                if route == "/api/stream":
                    continue  # it goes on until somebody leaves
                address = route
                for name, value in NAMES.items():
                    address = address.replace(name, value)
                asked[route] = (await client.get(address)).status
        assert everything(path) == before
    assert {route for route, status in asked.items() if status == 200} >= {
        "/api/schedule",
        "/api/schedule/{slug}",
        "/api/schedule/{slug}/next",
        "/api/schedule/{slug}/runs",
        "/api/schedule/{slug}/stats",
        "/api/schedule/{slug}/why",
        "/api/runs",
        "/api/upcoming",
    }
    assert all(status < 500 or route in ("/healthz", "/readyz") for route, status in asked.items()), asked
