"""GLM-Tray's settings. Its slots become quota slots; their keys go into files that only their owner can read.

Version 3 of the file has `schedule_*` fields; versions 1 and 2 have `wake_*`. Each slot has a URL for its quota and one
for its wakes; a URL that is missing is the global one. Limits are settings of the whole program.
"""

import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from wakeful.core.slug import slug_of
from wakeful.core.time.instants import MINUTE, format_duration
from wakeful.integrations.imports.agent_jobs import entry_or_refusal, jobs_of, refused_entry, shown, text_of, whole_of
from wakeful.integrations.imports.entries import (
    Context,
    Entry,
    Off,
    SourceFile,
    masked,
    refuse,
)
from wakeful.integrations.imports.places import existing, json_of, read_files

KIND: Final = "glm-tray"
APP: Final = "com.kiwina.glm-tray"
QUOTA_PATH: Final = "/api/monitor/usage/quota/limit"
WAKE_PATH: Final = "/api/coding/paas/v4/chat/completions"
DEFAULT_HOST: Final = "https://api.z.ai"
QUOTA_URL: Final = f"{DEFAULT_HOST}{QUOTA_PATH}"
WAKE_URL: Final = f"{DEFAULT_HOST}{WAKE_PATH}"
_KEYS: Final = ("api_key", "apiKey")
_TIME: Final = re.compile(r"([01]\d|2[0-3]):[0-5]\d", re.ASCII)
_TIMES_MAX: Final = 5
_MINUTES_MAX: Final = 24 * 60
_MODES: Final = (("interval", "interval_minutes", "interval"), ("after_reset", "after_reset_minutes", "afterReset"))
_LIMITS: Final = (
    ("retryWindow", "wake_quota_retry_window_minutes", _MINUTES_MAX),
    ("backoffCap", "quota_poll_backoff_cap_minutes", _MINUTES_MAX),
)
_ERRORS: Final = ("max_consecutive_errors", 1_000)
_KNOWN: Final = frozenset({
    "slot", "id", "name", "enabled", "api_key", "quota_url", "request_url", "base_url", "poll_interval_minutes",
    "timezone", "wake_enabled", "wake_mode",
    *(f"{era}_{field}" for era in ("schedule", "wake") for field in (
        "interval_enabled", "interval_minutes", "times_enabled", "times", "after_reset_enabled", "after_reset_minutes",
    )),
})  # fmt: skip


def open_glm_tray(path: Path) -> list[SourceFile]:
    """Its settings, or their folder."""
    return read_files(existing(path / "settings.json", path / "config.json")[:1] if path.is_dir() else [path])


def find_glm_tray(context: Context) -> list[SourceFile]:
    """The user's settings, where the program keeps them on Linux and on macOS, and where older versions did."""
    home = context.user_home
    config = Path(context.environ.get("XDG_CONFIG_HOME") or home / ".config")
    folders = [config / APP, home / "Library" / "Application Support" / APP]
    folders += [home / name for name in (".config/glm-tray", ".local/share/glm-tray", ".glm-tray")]
    return [file for folder in folders if folder.is_dir() for file in open_glm_tray(folder)]


def read_glm_tray(files: Sequence[SourceFile], context: Context) -> list[Entry]:
    """Its slots."""
    entries: list[Entry] = []
    for file in files:
        data = json_of(file)
        settings = data if isinstance(data, Mapping) and "slots" in data else {}
        for number, job in enumerate(jobs_of(data, file, "slots"), 1):
            ref = str(job.get("id") or job.get("slot") or f"#{number}")
            hidden = {**job, **{name: "***" for name in _KEYS if name in job}}
            entries.append(entry_or_refusal(file, ref, hidden, partial(_slot, file, ref, job, hidden, settings)))
    return entries


def _slot(
    file: SourceFile, ref: str, written: Mapping[str, Any], hidden: Mapping[str, Any], settings: Mapping[str, Any]
) -> Entry:
    job = {_snake(name): value for name, value in written.items()}
    key = text_of(job, "api_key")
    if key is None:
        return refused_entry(file, ref, hidden, "it has no key", is_skipped=True)
    name = slug_of(text_of(job, "name") or f"glm-{ref}")[:32].strip("-._")
    address = _address(job, settings)
    modes, dropped = _modes(job)
    poll = _minutes(job, "poll_interval_minutes")
    slot: dict[str, Any] = {
        "provider": "glm",
        **({} if address == DEFAULT_HOST else {"baseUrl": address}),
        **modes,
        **({} if poll is None else {"poll": poll}),
        **_limits(settings),
    }
    if text_of(job, "timezone"):
        slot["timezone"] = job["timezone"]
    return Entry(
        file.place,
        ref,
        shown(hidden),
        name,
        action=slot,
        not_carried=(*dropped, *sorted(field for field in job.keys() - _KNOWN if job[field] not in (None, "", False))),
        key=key.strip(),
        is_paused=job.get("enabled") is False,
        off=None if file.path is None else _off(file, ref),
        by_hand="switch the slot off in GLM-Tray",
        becomes="slot",
    )


def _off(file: SourceFile, ref: str) -> Off:
    return Off(KIND, {"path": file.place, "list": "slots", "id": ref, "set": {"enabled": False}})


def _snake(name: str) -> str:
    """Older files spell their fields in two ways."""
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()


def _modes(job: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The wake modes that are switched on, and what is not carried over of them."""
    era = "schedule" if any(name.startswith("schedule_") for name in job) else "wake"
    modes: dict[str, Any] = {}
    dropped: list[str] = []
    for mode, field, ours in _MODES:
        length = _minutes(job, f"{era}_{field}")
        if length is not None and _is_on(job, era, mode):
            modes[ours] = length
    written = job.get(f"{era}_times")
    if isinstance(written, list) and _is_on(job, era, "times"):
        texts = [text for time in written[:_TIMES_MAX] if (text := str(time).strip())]
        times = list(dict.fromkeys(text for text in texts if _TIME.fullmatch(text)))
        modes |= {"times": times} if times else {}
        ignored = ", ".join(text[:20] for text in texts if text not in times)
        dropped += [f"{era}_times (GLM-Tray ignores {ignored} too: not a time)"] if ignored else []
    return modes, dropped


def _is_on(job: Mapping[str, Any], era: str, mode: str) -> bool:
    """Whether a wake mode is on. Version 1 has one mode at a time; version 2 may leave its switches out."""
    if era == "wake" and job.get("wake_enabled") is False:
        return False
    if era == "wake" and "wake_mode" in job and f"wake_{mode}_enabled" not in job:
        return bool(job["wake_mode"] == mode)
    return job.get(f"{era}_{mode}_enabled", era == "wake") is True


def _address(job: Mapping[str, Any], settings: Mapping[str, Any]) -> str:
    """The base of both URLs. A slot of Wakeful has one, so that two different ones cannot be carried over."""
    base = text_of(job, "base_url")
    if base is not None and "quota_url" not in job and "request_url" not in job:
        return base.strip().rstrip("/")
    if settings.get("debug") is True and text_of(settings, "mock_url"):
        refuse("GLM-Tray is in debug mode and sends to its mock_url; switch debug mode off there first")
    quota = _url(job, "quota_url", settings, "global_quota_url", QUOTA_URL)
    wake = _url(job, "request_url", settings, "global_request_url", WAKE_URL)
    host = quota.removesuffix(QUOTA_PATH)
    if host == quota or host + WAKE_PATH != wake:
        refuse(
            f"its key is sent to {masked(quota)[:200]} and {masked(wake)[:200]}, which are not the two addresses "
            f"of one GLM provider ({QUOTA_PATH} and {WAKE_PATH}); write the slot by hand, with provider http"
        )
    return host


def _url(job: Mapping[str, Any], name: str, settings: Mapping[str, Any], fallback: str, usual: str) -> str:
    """A URL as GLM-Tray reads it: what is not one is replaced by the global one."""
    for url in (text_of(job, name), text_of(settings, fallback)):
        if url is not None and url.strip().startswith(("https://", "http://")):
            return url.strip()
    return usual


def _limits(settings: Mapping[str, Any]) -> dict[str, Any]:
    limits: dict[str, Any] = {}
    for ours, name, most in _LIMITS:
        minutes = whole_of(settings, name)
        if minutes is not None:
            limits[ours] = format_duration(min(max(minutes, 1), most) * MINUTE)
    errors = whole_of(settings, _ERRORS[0])
    return limits if errors is None else {**limits, "errorsMax": min(max(errors, 1), _ERRORS[1])}


def _minutes(job: Mapping[str, Any], name: str) -> str | None:
    minutes = whole_of(job, name)
    return None if minutes is None else format_duration(min(max(minutes, 1), _MINUTES_MAX) * MINUTE)
