"""The prompt of a heartbeat turn.

The prompt from the settings comes first, then HEARTBEAT.md if there is one, then the events. Events are information,
not instructions: each has a header with its source and time, and each of its lines is quoted, so that the text of an
event cannot pass for another event or for the prompt itself.
"""

import re
from collections.abc import Sequence
from typing import Final

from wakeful.core.time.instants import format_instant
from wakeful.ports.store import SystemEvent

FILE_NAME: Final = "HEARTBEAT.md"
FILE_MAX: Final = 64 * 1024


_COMMENT: Final = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)


def is_blank(notes: str) -> bool:
    """Whether the file has no content: only blank lines, Markdown headings and comments."""
    lines = (line.strip() for line in _COMMENT.sub("", notes.removeprefix("\ufeff")).splitlines())
    return all(not line or line.startswith("#") for line in lines)


def assemble(prompt: str, notes: str | None, events: Sequence[SystemEvent], reasons: Sequence[str]) -> str:
    """The whole prompt."""
    parts = [prompt.strip()]
    if notes is not None and not is_blank(notes):
        parts.append(f"# {FILE_NAME}\n\n{notes.strip()}")
    if events:
        parts.append("# System events\n\n" + "\n\n".join(_quoted(event) for event in events))
    parts.append(f"(woken by: {', '.join(reasons)})")
    return "\n\n".join(parts)


def _quoted(event: SystemEvent) -> str:
    origin = event.source if event.slug is None else f"{event.source}:{event.slug}"
    head = f"System event {event.event_id} from {_line(origin)} at {format_instant(event.raised_at)}:"
    return "\n".join([head, *(f"> {line}" for line in _printable(event.text).split("\n"))])


def _line(text: str) -> str:
    return " ".join(_printable(text).split())


def _printable(text: str) -> str:
    """The text without control characters that a terminal or model could interpret; every line break becomes a plain
    one."""
    lines = "\n".join(text.splitlines())
    return "".join(char if char in "\n\t" or char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in lines)
