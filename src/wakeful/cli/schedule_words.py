"""Short descriptions of a schedule: when it fires and what it does."""

import shlex
from collections.abc import Mapping
from typing import Any

from wakeful.cli import times


def when(view: Mapping[str, Any]) -> str:
    """Its timing in a sentence, with times in the user's zone."""
    return times.localised(_sentence(view))


def _sentence(view: Mapping[str, Any]) -> str:
    if view.get("description"):
        return str(view["description"])
    from wakeful.core.errors import Invalid
    from wakeful.core.time.timing_json import read_timing
    from wakeful.core.time.timing_words import describe

    schedule = view.get("schedule")
    try:
        return describe(read_timing(schedule))
    except (Invalid, ValueError, TypeError):
        return str(schedule)


def action(view: Mapping[str, Any]) -> tuple[str, str]:
    """The kind of its action, and what it does."""
    match view:
        case {"prompt": str(text)}:
            agent = view.get("agent", "default")
            return "prompt" if agent == "default" else f"prompt to {agent}", text
        case {"command": {"argv": list(argv)}}:
            return "command", shlex.join(map(str, argv))
        case {"dispatch": {"celery": {"task": task, **rest}}}:
            return "dispatch", f"{task} to Celery" + (f", queue {rest['queue']}" if rest.get("queue") else "")
        case {"http": {"url": url, **rest}}:
            return "http", f"{rest.get('method', 'POST')} {url}"
        case {"call": {"target": target}}:
            return "call", str(target)
        case {"event": {"text": text}}:
            return "event", str(text)
        case _:
            return "action", "-"
