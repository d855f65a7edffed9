"""What the demo creates over the API once the daemon responds. Creating it again at the next start changes nothing."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

PAUSED: Final = "newsletter"
UNHEARD: Final = "fire-drill"
"""A schedule whose reply goes to a channel where nothing listens."""
AT_ONCE: Final = ("import", "import", "haiku", "crunch", "kettle")
"""Schedules that also run when the demo starts, so that there is something to see before they are due. The second
import fails."""
PROPOSER: Final = "coder"
PROPOSER_WORK: Final = "changelog"
"""A schedule of that agent."""
PROPOSAL: Final = {
    "slug": "dependencies",
    "when": "every monday at 9:00",
    "prompt": "List the dependencies with a newer version, and say which of them fix a security hole.",
    "note": "Two of them are a year old. I would look once a week; it takes one turn.",
}
"""What an agent wants to schedule, with the tool `put_schedule`: it waits for a person."""


class DemoItem(NamedTuple):
    """A resource to PUT."""

    path: str
    body: Mapping[str, Any]


def things(home: Path, address: str) -> list[DemoItem]:
    """All resources, in the order of creation."""
    schedules = {**with_history(home), **_frequent(home, address)}
    found = [DemoItem(f"/api/schedule/{slug}", body) for slug, body in schedules.items()]
    return [*found, DemoItem("/api/workflows/letters", _letters(home))]


def with_history(home: Path) -> dict[str, Mapping[str, Any]]:
    """Schedules that also ran in the days before the demo."""
    return {
        "stand-up": _prompt(_cron("0 9 * * 1-5", "Europe/Berlin"), "Summarise yesterday's commits."),
        "evening-note": _prompt(_times("18:30", "22:00"), "What is still open today?"),
        "tokyo-open": _prompt(_cron("55 8 * * 1-5", "Asia/Tokyo"), "What moved overnight?"),
        PAUSED: _prompt(_cron("0 8 * * 6", "Europe/Berlin"), "Draft the newsletter."),
        PROPOSER_WORK: {
            **_prompt(_cron("0 */3 * * *", "UTC"), "Bring the changelog up to date."),
            "agent": PROPOSER,
            "budget": {"perDay": 0.5},
        },
        "review": {
            "schedule": _cron("5 */2 * * *", "UTC"),
            "prompt": "Review the open pull requests.",
            "agent": "reviewer",
            "retry": {"times": 0},
            "maxConsecutiveErrors": 0,
        },
        "nightly-backup": _runs(_cron("15 2 * * *", "Europe/Berlin"), _errand(home, "tidy")),
        "hourly-report": _runs(_cron("0 * * * *", "UTC"), _errand(home, "tidy")),
    }


def _letters(home: Path) -> Mapping[str, Any]:
    """Fetch and sort letters, and answer the urgent ones."""
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


def _frequent(home: Path, address: str) -> dict[str, Mapping[str, Any]]:
    """Schedules that fire often enough to watch, and a week of which is simulated within seconds."""
    return {
        "haiku": _prompt(_every("2m"), "Write a haiku about alarm clocks."),
        # commands that succeed, and some that fail
        "tidy": _runs(_every("1m"), _errand(home, "tidy")),
        "import": {**_runs(_every("5m"), _errand(home, "import")), "deliver": {"channel": "inbox"}},
        "crunch": {**_runs(_every("2m"), _errand(home, "crunch")), "timeout": "1m"},
        # HTTP requests, events, and manual schedules
        "is-it-up": {"schedule": _every("2m"), "http": {"method": "GET", "url": f"{address}/healthz"}},
        "kettle": {"schedule": _every("1h"), "event": {"text": "The kettle has boiled. Time for tea."}},
        UNHEARD: {**_prompt({"type": "manual"}, "Is anyone there?"), "deliver": {"channel": "pager"}},
        "release": _runs({"type": "manual"}, _errand(home, "crunch")),
    }


def _prompt(schedule: Mapping[str, Any], prompt: str) -> Mapping[str, Any]:
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
