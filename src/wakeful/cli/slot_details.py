"""One quota slot: its API path, its one-line summary, and its details with window, limits and usage."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from wakeful.cli import times
from wakeful.cli.errors import Ended
from wakeful.cli.invocation import Invocation
from wakeful.cli.render import json_out, note, say

_UNITS: Final = {1: "s", 2: "min", 3: "h", 4: "d", 5: "month", 6: "week"}
_LIMITS: Final = {"TOKENS_LIMIT": "tokens", "TIME_LIMIT": "tool calls"}
_TOOLS: Final = {"networkSearch": "network search", "webRead": "web read", "zread": "zread", "search": "search"}


def slot_path(name: str, question: str = "") -> str:
    """The API path of a slot; an impossible name is refused without a request."""
    if not name.isascii() or not all(char.isalnum() or char in "._-" for char in name):
        raise Ended(f"there is no slot {name!r}")
    return f"/api/slots/{name}{question}"


def tell(invocation: Invocation, slot: Mapping[str, Any]) -> None:
    """Print the state of a slot in one line, and its problem if it has one."""
    if invocation.is_json:
        json_out(slot)
        return
    used = "" if slot["percentage"] is None else f", {slot['percentage']:g} % used"
    reset = times.parse(slot["nextResetTime"])
    ends = "" if reset is None else f", reset {times.wall(reset)} ({times.relative(reset, times.now())})"
    say(f"{slot['name']} {slot['status']}{used}{ends}")
    tell_trouble(slot)


def tell_trouble(slot: Mapping[str, Any]) -> None:
    """Print a slot's problem, and the cure."""
    if slot["statusReason"]:
        note(f"  {times.localised(slot['statusReason'])}" + (f"; {slot['cure']}" if slot["cure"] else ""))


def show(slot: Mapping[str, Any]) -> None:
    """Print the details."""
    from wakeful.cli.tables import facts

    facts([(name, text) for name, text in _lines(slot) if text])
    tell_trouble(slot)


def _lines(slot: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    since = times.now()

    def when(text: str | None) -> str:
        at = times.parse(text)
        return "" if at is None else f"{times.wall(at)} ({times.relative(at, since)})"

    sources = {"settings": "wakeful.toml", "agent": f"reported by agent {slot.get('agent')}"}
    yield "slot", f"{slot['name']} ({sources.get(slot['source'], 'added by command')})"
    yield "status", slot["status"]
    yield "used", "" if slot["percentage"] is None else f"{slot['percentage']:g} %"
    yield "reset", when(slot["nextResetTime"])
    yield "plan", slot.get("level") or ""
    for limit in slot.get("limits") or ():
        if isinstance(limit, Mapping):
            yield "limit", limit_words(limit, since)
    yield from _statistics(slot.get("stats"))
    yield "last wake", when(slot["lastWake"])
    yield "next wake", when(slot["nextWake"])
    yield "last poll", when(slot["lastPoll"])
    yield "next poll", when(slot["nextPoll"])
    yield "errors", _errors(slot)


def _errors(slot: Mapping[str, Any]) -> str:
    if not slot["quotaErrors"] and not slot["wakeErrors"]:
        return ""
    return f"{slot['quotaErrors']} reading, {slot['wakeErrors']} waking"


def limit_words(limit: Mapping[str, Any], since: datetime) -> str:
    """A limit as reported by the provider: `tool calls per month: 10 of 1000 used, reset in 20 d`."""
    kind = str(limit.get("type") or "limit")
    number, unit = limit.get("number"), _UNITS.get(limit.get("unit") or 0)
    per = "" if unit is None else f" per {unit}" if number in (None, 1) else f" per {number} {unit}"
    used, total = limit.get("currentValue"), limit.get("usage")
    if isinstance(used, int | float) and isinstance(total, int | float):
        amount = f"{used:,} of {total:,} used"
    else:
        percentage = limit.get("percentage")
        amount = f"{percentage:g} % used" if isinstance(percentage, int | float) else "in use"
    reset = _instant(limit.get("nextResetTime"))
    ends = "" if reset is None else f", reset {times.wall(reset)} ({times.relative(reset, since)})"
    return f"{_LIMITS.get(kind, kind)}{per}: {amount}{ends}"


def _statistics(stats: Any) -> Iterator[tuple[str, str]]:
    if not isinstance(stats, Mapping):
        return
    for name, label in (("window", "this window"), ("day", "last 24 h")):
        numbers = stats.get(name)
        if isinstance(numbers, Mapping):
            counts = ((numbers.get("calls"), "calls"), (numbers.get("tokens"), "tokens"))
            yield label, ", ".join(f"{count:,} {what}" for count, what in counts if isinstance(count, int | float))
    tools = stats.get("tools")
    if isinstance(tools, Mapping):
        used = [(label, tools.get(name)) for name, label in _TOOLS.items()]
        yield "tools, 24 h", ", ".join(f"{label} {count:,}" for label, count in used if isinstance(count, int | float))


def _instant(milliseconds: Any) -> datetime | None:
    """A provider's timestamp: milliseconds since 1970."""
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (TypeError, ValueError, OverflowError, OSError):
        return None
