"""What each role may do.

`read` may read all except the logins, `admin` may do everything. `operate` may also act on what exists (run, pause,
resume, cancel, retry, acknowledge, test), but not define or remove anything. A run's token and an agent's token may
report and wake, and reach the agent's own schedules: their requests to `/api/schedule` go to separate routes.

Every route that changes something is listed with its minimum role; one that is not listed needs `admin`.
"""

import re
from typing import Final, Literal, TypeAlias

from wakeful.server.http.access import Caller

Least: TypeAlias = Literal["agent", "operate", "admin", "own"]
"""The minimum role of a route. `own`: it has its own authentication, such as the token of a run or a hook."""

_READING: Final = frozenset({"GET", "HEAD", "OPTIONS"})

WRITING: Final[dict[str, Least]] = {
    "POST /api/wake": "agent",
    "POST /api/tools/{name}": "agent",
    "POST /mcp": "agent",
    "DELETE /mcp": "agent",
    "POST /api/approvals/{id}": "admin",
    "POST /api/agents/{name}/test": "operate",
    "POST /api/alerts/{id}/acknowledge": "operate",
    "POST /api/budget/{agent}/release": "operate",
    "POST /api/channels/{name}/test": "operate",
    "POST /api/deliveries/{id}/retry": "operate",
    "POST /api/heartbeat/pause": "operate",
    "POST /api/heartbeat/resume": "operate",
    "POST /api/inbox/read": "operate",
    "POST /api/inbox/{id}/read": "operate",
    "POST /api/pause": "operate",
    "POST /api/resume": "operate",
    "POST /api/runs/{id}/cancel": "operate",
    "POST /api/runs/{id}/replay": "operate",
    "POST /api/replay": "operate",
    "POST /api/schedule/{slug}/acknowledge": "operate",
    "POST /api/schedule/{slug}/backfill": "operate",
    "DELETE /api/schedule/{slug}/backfill": "operate",
    "POST /api/schedule/{slug}/pause": "operate",
    "POST /api/schedule/{slug}/resume": "operate",
    "POST /api/schedule/{slug}/run": "operate",
    "POST /api/simulate": "operate",
    "POST /api/slots/{name}/poll": "operate",
    "POST /api/slots/{name}/resume": "operate",
    "POST /api/slots/{name}/wake": "operate",
    "POST /api/workflows/{id}/pause": "operate",
    "POST /api/workflows/{id}/resume": "operate",
    "POST /api/workflows/{id}/run": "operate",
    "POST /api/workflows/{id}/runs/{run}/resolve": "operate",
    "POST /api/workflows/{id}/topics/{topic}/replay": "operate",
    "POST /api/workflows/{id}/topics/{topic}/skip": "operate",
    "POST /api/apply": "admin",
    "POST /api/channels/{name}/messages": "admin",
    "POST /api/channels/{name}/touch": "admin",
    "PUT /api/budget": "admin",
    "POST /api/deliveries": "admin",
    "DELETE /api/deliveries/{id}": "admin",
    "DELETE /api/inbox/{id}": "admin",
    "POST /api/import": "admin",
    "POST /api/calendar/key": "admin",
    "POST /api/login-codes": "admin",
    "DELETE /api/logins": "admin",
    "PUT /api/schedule/{slug}": "admin",
    "PATCH /api/schedule/{slug}": "admin",
    "DELETE /api/schedule/{slug}": "admin",
    "PUT /api/slots/{name}": "admin",
    "PATCH /api/slots/{name}": "admin",
    "DELETE /api/slots/{name}": "admin",
    "PUT /api/workflows/{id}": "admin",
    "PATCH /api/workflows/{id}": "admin",
    "DELETE /api/workflows/{id}": "admin",
    "POST /api/workflows/{id}/topics/{topic}/messages": "admin",
    "POST /api/hooks/{name}": "own",
    "POST /api/runs/{id}/receipt": "own",
    "POST /login": "own",
    "POST /logout": "own",
}

OWN: Final = "/api/own"
"""Where agents' requests to `/api/schedule` go."""

OWN_ROUTES: Final = re.compile(
    r"GET /mcp|GET /api/schedule|(GET|PUT|DELETE) /api/schedule/[^/]+"
    r"|POST /api/schedule/[^/]+/(pause|resume)|GET /api/schedule/[^/]+/(why|next|runs)"
)
"""Other routes that an agent may use, for its own schedules."""

CALENDAR: Final = "/api/calendar.ics"
"""The feed; its key permits nothing else."""

ONLY_ADMIN: Final = frozenset({"/api/login-codes", "/api/logins", "/api/calendar/key"})
"""Reading these would give more rights than `read` has."""


def _pattern(least: frozenset[Least]) -> re.Pattern[str]:
    routes = (route for route, needs in WRITING.items() if needs in least)
    return re.compile("|".join(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(route)) for route in routes))


_OPERATING: Final = _pattern(frozenset({"agent", "operate"}))
_WAKING: Final = _pattern(frozenset({"agent"}))


def refusal(caller: Caller, method: str, path: str) -> str | None:
    """Why the caller may not send this request; None if it may."""
    request = f"{method} {path}"
    if WRITING.get(request) == "own":
        return None
    match caller.role:
        case "admin":
            return None
        case "operate" if _reads(method, path) or _OPERATING.fullmatch(request):
            return None
        case "read" if _reads(method, path):
            return None
        case "agent" | "run" if _WAKING.fullmatch(request) or OWN_ROUTES.fullmatch(request):
            return None
        case "calendar" if method in _READING and path == CALENDAR:
            return None
        case "run":
            return (
                "a run's token may report its run, wake the heartbeat, and use its agent's own schedules, nothing "
                "else; a person has to do this"
            )
        case role:
            return f"the token '{caller.name}' has the role '{role}', which does not permit {method} {path[:200]}"


def path_for(caller: Caller, path: str) -> str:
    """The route of a request: an agent's own schedules have separate routes."""
    is_own = caller.role in ("agent", "run") and (path == "/api/schedule" or path.startswith("/api/schedule/"))
    return f"{OWN}{path.removeprefix('/api')}" if is_own else path


def _reads(method: str, path: str) -> bool:
    return method in _READING and path not in ONLY_ADMIN
