"""The settings as the API shows them."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

from settings.kit import CONTRACT, loaded
from wakeful.config import MASK, diff, load, to_json
from wakeful.config.model import SETTINGS


def test_values_are_shown_as_the_file_writes_them(tmp_path: Path) -> None:
    """Durations as text, lists as lists, everything of the file and every default beside it."""
    shown = to_json(loaded(tmp_path, CONTRACT))["settings"]
    written = tomllib.loads(CONTRACT)
    for table in (
        written["server"],
        written["tokens"]["grafana"],
        written["hooks"]["door"],
        written["channels"]["phone"],
    ):
        table["token"] = MASK
    written["slots"]["main"]["api_key"] = MASK
    written["tokens"]["grafana"]["agent"] = None
    written["channels"]["phone"]["senders"] = []
    written["channels"]["hook"]["token"] = None
    written["slots"]["main"] |= {"retry_window": None, "errors_max": None, "backoff_cap": None, "model": "glm-5"}
    written["agents"]["default"] |= {"budget_day": None, "budget_month": None, "cost_per_run": None}
    written |= {
        "budgets": {"brake": False, "day": None, "month": None, "unpriced": "refuse", "warn_at": 0.8},
        "prices": {},
    }
    written |= {
        "plugins": [],
        "exclude": {"dates": [], "calendar": None},
        "node": {"labels": []},
        "otel": {"endpoint": None},
    }
    assert shown == written


def test_each_value_says_where_it_came_from(tmp_path: Path) -> None:
    """A line of the file, an option, the environment, or nowhere."""
    text = '[server]\nport = 1\ntoken = {env = "WAKEFUL_TOKEN"}\n'
    answer = to_json(loaded(tmp_path, text, **{"server.host": "0.0.0.0"}))
    sources = answer["sources"]
    assert sources["server.host"] == {"from": "option"}
    assert sources["server.port"] == {"from": "file", "line": 2}
    assert sources["server.token"] == {"from": "environment", "line": 3, "name": "WAKEFUL_TOKEN"}
    assert sources["log.days"] == {"from": "default"}
    own = answer["settings"]["server"]
    assert (own["host"], own["port"], own["token"], own["auth"]) == ("0.0.0.0", 1, MASK, "token")
    assert answer["file"].endswith("wakeful.toml")


def test_without_a_file_all_is_default(tmp_path: Path) -> None:
    """And the answer can be sent as JSON."""
    answer = to_json(load(tmp_path))
    assert {source["from"] for source in answer["sources"].values()} == {"default"}
    assert set(answer["settings"]) == set(SETTINGS.names)
    assert json.loads(json.dumps(answer)) == answer


def test_warnings_are_shown_too(tmp_path: Path) -> None:
    """With their place."""
    answer = to_json(loaded(tmp_path, '[hooks.a]\ntoken = "abc"\n'))
    [warning] = answer["warnings"]
    assert (warning["field"], warning["line"]) == ("hooks.a.token", 2)


def test_a_difference_is_named_by_its_path(tmp_path: Path) -> None:
    """A value by its own, an entry that came, went or became another kind as a whole."""
    old = loaded(tmp_path, '[log]\ndays = 3\n[agents.a]\n[agents.b]\n[hooks.x]\ntoken = "tok-1"\n').settings
    new = loaded(
        tmp_path,
        '[agents.a]\nsessions_max = 1\n[agents.b]\nadapter = "sessions"\n[agents."c.d"]\n'
        '[hooks.x]\ntoken = "tok-2"\n[heartbeat]\nactive_hours = {start = "09:00", end = "10:00"}\n',
    ).settings
    assert diff(old, new) == [
        "agents.a.sessions_max",
        "agents.b",
        'agents."c.d"',
        "heartbeat.active_hours",
        "hooks.x.token",
        "log.days",
    ]
    assert diff(old, old) == []
    assert diff(new, old)[2] == 'agents."c.d"'
