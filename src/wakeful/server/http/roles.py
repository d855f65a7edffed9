"""What each role may do.

`read` may read all except the logins, `admin` may do everything. `operate` may also act on what exists (run, pause,
resume, cancel, retry, acknowledge, test), but not define or remove anything. A run's token and an agent's token may
report and wake, and reach the agent's own schedules: an operation that they may ask for looks a name up among these.

The minimum roles are those of the two tables: of operations, and of plain routes. What is in neither needs `admin`.
"""

import re
from typing import Final

from wakeful.api.nouns import NOUNS
from wakeful.api.operation import operations_of
from wakeful.api.planned import CALENDAR
from wakeful.server.http.access import Caller
from wakeful.server.http.plain import Least
from wakeful.server.http.plain_routes import PLAIN

_READING: Final = frozenset({"GET", "HEAD", "OPTIONS"})

ALL: Final = [one for noun in NOUNS.values() for one in operations_of(noun)]


def _of(route: str) -> str:
    return re.sub(r"\{\w+\}", "[^/]+", route)


WRITING: Final[dict[str, Least]] = {
    **{one.route: one.least for one in PLAIN if not one.route.startswith("GET")},
    **{one.route: one.least for one in ALL if one.method not in _READING and one.least != "read"},
}

AGENTS: Final = re.compile(
    "|".join(
        [
            *(_of(one.route) for one in PLAIN if one.least == "agent"),
            *(_of(one.route) for one in ALL if one.is_for_agents),
        ]
    )
)
"""Other routes that an agent may use, for its own schedules."""

OPEN: Final = frozenset(one.route.partition(" ")[2] for one in PLAIN if one.least == "open")
"""Paths that need no token; the page's files are known by their prefix."""

ONLY_ADMIN: Final = frozenset(one.path for one in ALL if one.method in _READING and one.least == "admin")
"""Reading these would give more rights than `read` has."""


def _pattern(least: frozenset[Least]) -> re.Pattern[str]:
    routes = (route for route, needs in WRITING.items() if needs in least)
    return re.compile("|".join(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(route)) for route in routes))


_OPERATING: Final = _pattern(frozenset({"agent", "operate"}))
_WAKING: Final = _pattern(frozenset({"agent"}))


def refusal(caller: Caller, method: str, path: str) -> str | None:
    """Why the caller may not send this request; None if it may."""
    request = f"{method} {path}"
    if WRITING.get(request) in ("own", "open"):
        return None
    match caller.role:
        case "admin":
            return None
        case "operate" if _reads(method, path) or _OPERATING.fullmatch(request):
            return None
        case "read" if _reads(method, path):
            return None
        case "agent" | "run" if _WAKING.fullmatch(request) or AGENTS.fullmatch(request):
            return None
        case "calendar" if method in _READING and path == CALENDAR:  # the key of the feed permits nothing else
            return None
        case "run":
            return (
                "a run's token may report its run, wake the heartbeat, and use its agent's own schedules, nothing "
                "else; a person has to do this"
            )
        case "operate" if caller.is_process:
            return (
                f"this process belongs to {caller.name}, so it may read everything and operate what exists (run, "
                f"pause, resume, cancel, retry, acknowledge, test); {method} {path[:200]} needs a person, or a token "
                "that permits it"
            )
        case role:
            return f"the token '{caller.name}' has the role '{role}', which does not permit {method} {path[:200]}"


def _reads(method: str, path: str) -> bool:
    return method in _READING and path not in ONLY_ADMIN
