"""What the demo writes over the API once the daemon answers. Writing it again at the next start changes nothing."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

PAUSED: Final = "newsletter"
UNHEARD: Final = "fire-drill"
"""Its answer goes to a channel behind which nobody is."""


class DemoItem(NamedTuple):
    """Something to PUT."""

    path: str
    body: Mapping[str, Any]


def things(home: Path, address: str) -> list[DemoItem]:
    """All of it, in the order in which it is written."""
    schedules = [DemoItem(f"/api/schedule/{slug}", body) for slug, body in _schedules(home, address).items()]
    return [*schedules, DemoItem("/api/workflows/letters", _letters(home))]


def _letters(home: Path) -> Mapping[str, Any]:
    """Letters are fetched and sorted, and the urgent ones answered."""
    handler = _errand(home, "letters")
    return {
        "id": "letters",
        "status": "active",
        "producers": {"fetch": {"schedule": _every("20s"), "publishes": ["letters"], "handler": handler}},
        "consumers": {
            "sort": {"subscribe": ["letters"], "publishes": ["urgent"], "mutate": False, "handler": handler},
            "answer": {"subscribe": ["urgent"], "publishes": [], "handler": handler},
        },
    }


def _schedules(home: Path, address: str) -> dict[str, Mapping[str, Any]]:
    return {
        # an agent answers, and people hear of it
        "haiku": _asked(_every("20s"), "Write a haiku about alarm clocks."),
        "stand-up": _asked(_cron("0 9 * * 1-5", "Europe/Berlin"), "Summarise yesterday's commits."),
        "evening-note": _asked(_times("18:30", "22:00"), "What is still open today?"),
        "tokyo-open": _asked(_cron("55 8 * * 1-5", "Asia/Tokyo"), "What moved overnight?"),
        PAUSED: _asked(_cron("0 8 * * 6", "Europe/Berlin"), "Draft the newsletter."),
        # programs, in good and in bad days
        "tidy": _runs(_every("15s"), _errand(home, "tidy")),
        "import": {**_runs(_every("10s"), _errand(home, "import")), "deliver": {"channel": "inbox"}},
        "crunch": {**_runs(_every("30s"), _errand(home, "crunch")), "timeout": "1m"},
        "nightly-backup": _runs(_cron("15 2 * * *", "Europe/Berlin"), _errand(home, "tidy")),
        "hourly-report": _runs(_cron("0 * * * *", "UTC"), _errand(home, "tidy")),
        # addresses, events, and what only a person starts
        "is-it-up": {"schedule": _every("15s"), "http": {"method": "GET", "url": f"{address}/healthz"}},
        "kettle": {"schedule": _every("45s"), "event": {"text": "The kettle has boiled. Time for tea."}},
        UNHEARD: {**_asked({"type": "manual"}, "Is anybody there?"), "deliver": {"channel": "pager"}},
        "release": _runs({"type": "manual"}, _errand(home, "crunch")),
    }


def _asked(schedule: Mapping[str, Any], prompt: str) -> Mapping[str, Any]:
    return {"schedule": schedule, "prompt": prompt, "deliver": {"channel": "inbox"}}


def _runs(schedule: Mapping[str, Any], what: Mapping[str, Any]) -> dict[str, Any]:
    return {"schedule": schedule, **what}


def _errand(home: Path, name: str) -> Mapping[str, Any]:
    return {"command": {"argv": [f"bin/{name}"], "cwd": str(home)}}


def _every(distance: str) -> Mapping[str, Any]:
    return {"type": "every", "every": distance}


def _cron(expression: str, zone: str) -> Mapping[str, Any]:
    return {"type": "cron", "expression": expression, "timezone": zone}


def _times(*times: str) -> Mapping[str, Any]:
    return {"type": "times", "times": list(times), "timezone": "Europe/Berlin"}
