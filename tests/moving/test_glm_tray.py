"""GLM-Tray's settings in all their versions: wake modes, addresses, limits, places."""

import json
from pathlib import Path
from typing import Any

import pytest

from moving.kit import read
from wakeful.integrations.imports.entries import Entry

Z_AI, BIG_MODEL = "https://api.z.ai", "https://open.bigmodel.cn"
QUOTA, WAKE = "/api/monitor/usage/quota/limit", "/api/coding/paas/v4/chat/completions"
SLOT: dict[str, Any] = {
    "slot": 1, "name": "Work", "enabled": True, "api_key": "k-1", "quota_url": Z_AI + QUOTA, "request_url": Z_AI + WAKE,
    "schedule_interval_enabled": False, "schedule_times_enabled": False, "schedule_after_reset_enabled": False,
    "schedule_interval_minutes": 60, "schedule_times": [], "schedule_after_reset_minutes": 1,
    "poll_interval_minutes": 30, "logging": False,
}  # fmt: skip
SETTINGS: dict[str, Any] = {
    "theme": "glm", "global_quota_url": Z_AI + QUOTA, "global_request_url": Z_AI + WAKE, "log_directory": None,
    "max_log_days": 7, "wake_quota_retry_window_minutes": 15, "max_consecutive_errors": 10,
    "quota_poll_backoff_cap_minutes": 480, "debug": False, "mock_url": None, "config_version": 3,
}  # fmt: skip


def one(slot: dict[str, Any] | None = None, **settings: Any) -> Entry:
    """What a slot becomes."""
    content = json.dumps({"slots": [{**SLOT, **(slot or {})}], **SETTINGS, **settings})
    (entry,) = read("glm-tray", content=content)
    return entry


@pytest.mark.parametrize("interval", [True, False])
@pytest.mark.parametrize("times", [True, False])
@pytest.mark.parametrize("after_reset", [True, False])
def test_every_wake_mode_that_is_on(interval: bool, times: bool, after_reset: bool) -> None:
    """And none that is off, whatever else is written for it."""
    entry = one({
        "schedule_interval_enabled": interval, "schedule_interval_minutes": 90,
        "schedule_times_enabled": times, "schedule_times": ["09:00", " 14:30 "],
        "schedule_after_reset_enabled": after_reset, "schedule_after_reset_minutes": 2,
    })  # fmt: skip
    modes = {name: entry.action[name] for name in ("interval", "times", "afterReset") if name in entry.action}
    expected: dict[str, Any] = {"interval": "1h30m"} if interval else {}
    expected |= {"times": ["09:00", "14:30"]} if times else {}
    expected |= {"afterReset": "2m"} if after_reset else {}
    assert modes == expected and entry.not_carried == ()


def test_limits_and_intervals_as_the_program_reads_them() -> None:
    """They are limited there as well: at least a minute, at most a day, a thousand errors."""
    entry = one({"poll_interval_minutes": 0})
    limits = {name: entry.action[name] for name in ("poll", "retryWindow", "errorsMax", "backoffCap")}
    assert limits == {"poll": "1m", "retryWindow": "15m", "errorsMax": 10, "backoffCap": "8h"}
    entry = one(wake_quota_retry_window_minutes=0, max_consecutive_errors=9999, quota_poll_backoff_cap_minutes=9999)
    assert (entry.action["retryWindow"], entry.action["errorsMax"], entry.action["backoffCap"]) == ("1m", 1000, "1d")
    entry = one({"schedule_times_enabled": True, "schedule_times": ["9:00", "25:00", "07:00", "x", "08:00", "09:00"]})
    assert entry.action["times"] == ["07:00", "08:00"]  # five are read, and those that are no time are dropped
    assert entry.not_carried == ("schedule_times (GLM-Tray ignores 9:00, 25:00, x too: not a time)",)


@pytest.mark.parametrize(
    ("slot", "settings", "address"),
    [
        ({}, {}, Z_AI),
        ({"quota_url": BIG_MODEL + QUOTA, "request_url": BIG_MODEL + WAKE}, {}, BIG_MODEL),
        ({"quota_url": "", "request_url": None},
         {"global_quota_url": BIG_MODEL + QUOTA, "global_request_url": BIG_MODEL + WAKE}, BIG_MODEL),
        ({"quota_url": "not a url", "request_url": "ftp://x"}, {"global_quota_url": "", "global_request_url": ""},
         Z_AI),
        ({"quota_url": "https://proxy.example.org/glm" + QUOTA, "request_url": "https://proxy.example.org/glm" + WAKE},
         {}, "https://proxy.example.org/glm"),
    ],
)  # fmt: skip
def test_the_key_goes_where_it_went(slot: dict[str, Any], settings: dict[str, Any], address: str) -> None:
    """To the URL of the slot; to the global one if it has none; to Z.ai if there is none either."""
    entry = one(slot, **settings)
    assert entry.refused is None and entry.action.get("baseUrl", Z_AI) == address


@pytest.mark.parametrize(
    ("slot", "settings", "said"),
    [
        ({"quota_url": BIG_MODEL + QUOTA}, {}, "are not the two addresses of one GLM provider"),
        ({"quota_url": BIG_MODEL + "/other", "request_url": BIG_MODEL + WAKE}, {}, "are not the two addresses"),
        ({}, {"debug": True, "mock_url": "http://127.0.0.1:3456"}, "debug mode"),
    ],
)
def test_an_address_that_would_be_lost_is_refused(slot: dict[str, Any], settings: dict[str, Any], said: str) -> None:
    """Rather than send a key to someone else."""
    entry = one(slot, **settings)
    assert said in str(entry.refused) and "k-1" not in entry.source


def test_versions_one_and_two() -> None:
    """Version 2 has a switch for each mode; version 1 has one mode at a time."""
    base = {"slot": 1, "name": "Old", "enabled": True, "api_key": "k", "quota_url": BIG_MODEL + QUOTA}
    base |= {"request_url": BIG_MODEL + WAKE, "wake_interval_minutes": 60, "wake_times": ["09:00"]}
    second = {**base, "wake_enabled": True, "wake_mode": "interval", "wake_interval_enabled": True}
    second |= {"wake_times_enabled": False, "wake_after_reset_enabled": True, "wake_after_reset_minutes": 5}
    first = {**base, "wake_enabled": True, "wake_mode": "times", "wake_after_reset_minutes": 5}
    for slot, modes in (
        (second, {"interval": "1h", "afterReset": "5m"}),
        (first, {"times": ["09:00"]}),
        ({**first, "wake_enabled": False}, {}),
    ):
        (entry,) = read("glm-tray", content=json.dumps({"slots": [slot]}))
        assert {name: entry.action[name] for name in entry.action.keys() & {"interval", "times", "afterReset"}} == modes
        assert entry.action["baseUrl"] == BIG_MODEL


@pytest.mark.parametrize(
    "folder",
    [".config/com.kiwina.glm-tray", "Library/Application Support/com.kiwina.glm-tray", ".config/glm-tray"],
)
def test_the_places_of_its_settings(tmp_path: Path, folder: str) -> None:
    """On Linux, on macOS, and of older versions."""
    (tmp_path / folder).mkdir(parents=True)
    (tmp_path / folder / "settings.json").write_text(json.dumps({"slots": [SLOT], **SETTINGS}))
    (entry,) = read("glm-tray", user_home=tmp_path)
    assert (entry.name, entry.place) == ("work", str(tmp_path / folder / "settings.json"))
