"""The two files of a schedule as texts: what its owner wrote, and how it went last."""

import json
from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from wakeful.core.schedule.definition import RESERVED_SLUGS
from wakeful.core.schedule.definition_json import READ_BACK
from wakeful.features.schedules.views import ScheduleView
from wakeful.ports.store import Schedule
from wakeful.server.mirror.known import KnownText, digest_of

DEFINITION: Final = "definition.json"
LAST_RUN: Final = "last-run.json"
FILES: Final = (DEFINITION, LAST_RUN)
LAST_RUN_FIELDS: Final = ("lastRun", "lastResult", "lastError", "sessionId", "nextRun")

Which: TypeAlias = Literal["agent", "all", "off"]


class Text(NamedTuple):
    """What a file should hold."""

    content: bytes
    written: KnownText


def render(view: ScheduleView) -> dict[str, Text]:
    """Both files of a schedule as it stands, by name; equal schedules give equal bytes."""
    shown = view.to_json()
    definition = {name: value for name, value in shown.items() if name not in READ_BACK}
    last_run = {name: shown[name] for name in LAST_RUN_FIELDS}
    return {
        DEFINITION: _text(definition, {"enabled": shown["enabled"]}),
        LAST_RUN: _text(last_run, {"nextRun": shown["nextRun"], "sessionId": shown["sessionId"]}),
    }


def is_mirrored(schedule: Schedule, which: Which) -> bool:
    """Whether this schedule has files: agent schedules do, unless all do. What is reserved is nobody's to edit."""
    if schedule.slug in RESERVED_SLUGS:
        return False
    if which == "all":
        return True
    # The cheap look first: most schedules of a big store are not an agent's.
    return which == "agent" and '"prompt":' in schedule.definition and "prompt" in json.loads(schedule.definition)


def error_name(name: str) -> str:
    """The file beside a file of ours that says why an edit of it was not taken over."""
    return f"{name.removesuffix('.json')}.error.txt"


def error_text(name: str, message: str) -> bytes:
    """What is wrong, and the ways out."""
    lines = "\n".join(f"  {line}" for line in message.splitlines())
    return (
        f"{name} was not taken over; what is stored stays in force.\n\n{lines}\n\n"
        f"Correct {name} and save it, or remove it: then it is written again as it is stored.\n"
    ).encode(errors="replace")


def _text(shown: Mapping[str, Any], said: Mapping[str, Any]) -> Text:
    # A lone surrogate in an error message becomes the escape that JSON has for it.
    content = (json.dumps(shown, indent=2, ensure_ascii=False) + "\n").encode(errors="backslashreplace")
    return Text(content, KnownText(digest_of(content), said))
