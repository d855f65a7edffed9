"""What each role may do.

`read` may read everything, `admin` may do everything. `operate` may also act on what exists (run, pause, resume,
cancel, retry), but not define or remove anything. A run's token and an agent's token may report and wake.
"""

import re
from typing import Final

from wakeful.http.access import Caller

_READING: Final = frozenset({"GET", "HEAD", "OPTIONS"})

# What `operate` may do besides reading: actions on what exists.
_OPERATING: Final = re.compile(
    r"/api/(?:"
    r"schedule/[^/]+/(?:run|pause|resume)"
    r"|runs/[0-9]+/(?:cancel|replay)"
    r"|deliveries/[0-9a-zA-Z-]+/retry"
    r"|workflows/[^/]+/(?:run|pause|resume|runs/[0-9]+/resolve)"
    r"|slots/[^/]+/(?:wake|poll|resume)"
    r"|heartbeat/(?:pause|resume)"
    r"|inbox/[0-9]+/read|alerts/[^/]+/acknowledge|wake|pause|resume"
    r")",
    re.ASCII,
)
_WAKING: Final = frozenset({"/api/wake"})

ONLY_ADMIN: Final = frozenset({"/api/login-codes", "/api/logins"})
"""Reading these would give away more than `read` has."""


def refusal(caller: Caller, method: str, path: str) -> str | None:
    """Why the caller may not send this request; None if it may."""
    match caller.role:
        case "admin":
            return None
        case "operate" if _reads(method, path) or (method == "POST" and _OPERATING.fullmatch(path)):
            return None
        case "read" if _reads(method, path):
            return None
        case "agent" | "run" if method == "POST" and path in _WAKING:
            return None
        case "run":
            return (
                "a run's token may report its run and wake the heartbeat, nothing else; to act as the daemon's owner, "
                "unset WAKEFUL_RUN_TOKEN"
            )
        case role:
            return f"the token '{caller.name}' has the role '{role}', which does not permit {method} {path[:200]}"


def _reads(method: str, path: str) -> bool:
    return method in _READING and path not in ONLY_ADMIN
