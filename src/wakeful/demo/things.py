"""What the demo writes over the API once the daemon answers. Writing it again at the next start changes nothing."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from wakeful.demo.home import program

PAUSED: Final = "newsletter"


class Thing(NamedTuple):
    """Something to PUT."""

    path: str
    body: Mapping[str, Any]


def things(home: Path, address: str) -> list[Thing]:
    """All of it, in the order in which it is written."""
    return [Thing(f"/api/schedule/{slug}", body) for slug, body in _schedules(home, address).items()]


def _schedules(home: Path, address: str) -> dict[str, Mapping[str, Any]]:
    return {
        # an agent answers, and people hear of it
        "haiku": _asked(_every("20s"), "Write a haiku about alarm clocks."),
        "stand-up": _asked(_cron("0 9 * * 1-5", "Europe/Berlin"), "Summarise yesterday's commits."),
        "evening-note": _asked(_times("18:30", "22:00"), "What is still open today?"),
        "tokyo-open": _asked(_cron("55 8 * * 1-5", "Asia/Tokyo"), "What moved overnight?"),
        PAUSED: _asked(_cron("0 8 * * 6", "Europe/Berlin"), "Draft the newsletter."),
        # programs, in good and in bad days
        "tidy": _runs(_every("15s"), program("errand", "tidy", str(home))),
        "import": {**_runs(_every("10s"), program("errand", "import", str(home))), "deliver": {"channel": "inbox"}},
        "crunch": {**_runs(_every("30s"), program("errand", "crunch", str(home))), "timeout": "1m"},
        "nightly-backup": _runs(_cron("15 2 * * *", "Europe/Berlin"), program("errand", "tidy", str(home))),
        "hourly-report": _runs(_cron("0 * * * *", "UTC"), program("errand", "tidy", str(home))),
        # addresses, events, and what only a person starts
        "is-it-up": {"schedule": _every("15s"), "http": {"method": "GET", "url": f"{address}/healthz"}},
        "kettle": {"schedule": _every("45s"), "event": {"text": "The kettle has boiled. Somebody may want tea."}},
        "release": _runs({"type": "manual"}, program("errand", "crunch", str(home))),
    }


def _asked(schedule: Mapping[str, Any], prompt: str) -> Mapping[str, Any]:
    return {"schedule": schedule, "prompt": prompt, "deliver": {"channel": "inbox"}}


def _runs(schedule: Mapping[str, Any], argv: list[str]) -> Mapping[str, Any]:
    return {"schedule": schedule, "command": {"argv": argv}}


def _every(distance: str) -> Mapping[str, Any]:
    return {"type": "every", "every": distance}


def _cron(expression: str, zone: str) -> Mapping[str, Any]:
    return {"type": "cron", "expression": expression, "timezone": zone}


def _times(*times: str) -> Mapping[str, Any]:
    return {"type": "times", "times": list(times), "timezone": "Europe/Berlin"}
