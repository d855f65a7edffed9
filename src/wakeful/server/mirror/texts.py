"""A schedule's two files as text: its definition and its last run."""

import json
from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from wakeful.core.schedule.definition import RESERVED_SLUGS
from wakeful.core.schedule.definition_json import READ_BACK
from wakeful.features.schedules.views import ScheduleView
from wakeful.server.mirror.known import KnownText, digest_of

DEFINITION: Final = "definition.json"
LAST_RUN: Final = "last-run.json"
FILES: Final = (DEFINITION, LAST_RUN)
LAST_RUN_FIELDS: Final = ("lastRun", "lastResult", "lastError", "sessionId", "nextRun")

Which: TypeAlias = Literal["agent", "all", "off"]


class Text(NamedTuple):
    """The intended content of a file."""

    content: bytes
    written: KnownText


def render(view: ScheduleView) -> dict[str, Text]:
    """Both files of a schedule, by name; equal schedules give equal bytes."""
    shown = view.to_json()
    definition = {name: value for name, value in shown.items() if name not in READ_BACK}
    last_run = {name: shown[name] for name in LAST_RUN_FIELDS}
    return {
        DEFINITION: _text(definition, {"enabled": shown["enabled"]}),
        LAST_RUN: _text(last_run, {"nextRun": shown["nextRun"], "sessionId": shown["sessionId"]}),
    }


def is_mirrored(slug: str, definition: str, which: Which) -> bool:
    """Whether this schedule has files: agent schedules do, unless all do. Reserved schedules are not editable."""
    if slug in RESERVED_SLUGS:
        return False
    if which == "all":
        return True
    # The cheap check first: in a large store most are not agent schedules.
    return which == "agent" and '"prompt":' in definition and "prompt" in json.loads(definition)


def error_name(name: str) -> str:
    """The error file that says why an edit was not applied."""
    return f"{name.removesuffix('.json')}.error.txt"


def error_text(name: str, message: str) -> bytes:
    """The errors, and what to do."""
    lines = "\n".join(f"  {line}" for line in message.splitlines())
    return (
        f"{name} was not applied; the stored version stays in effect.\n\n{lines}\n\n"
        f"Correct {name} and save it, or remove it to have it written again from the store.\n"
    ).encode(errors="replace")


def _text(shown: Mapping[str, Any], said: Mapping[str, Any]) -> Text:
    # A lone surrogate in an error message becomes its JSON escape.
    content = (json.dumps(shown, indent=2, ensure_ascii=False) + "\n").encode(errors="backslashreplace")
    return Text(content, KnownText(digest_of(content), said))
