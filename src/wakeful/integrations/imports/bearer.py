"""Requests with a token from the daemon's environment.

Everyone who may read schedules can read a definition, so it only names the variable. The request is sent by curl, which
gets the token through a pipe when it runs.
"""

import json
import shlex
from collections.abc import Mapping
from typing import Any


def bearer_post(
    url: str, body: Mapping[str, Any], variable: str, headers: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """The action that posts JSON to an address, with the token of a variable."""
    given = {"Content-Type": "application/json", **(headers or {})}
    options = [part for name, value in given.items() for part in ("-H", f"{name}: {value}")]
    curl = shlex.join(["curl", "-fsS", "-H", "@-", *options, "-d", json.dumps(body), url])
    script = f'printf "Authorization: Bearer %s\\n" "${variable}" | {curl}'
    return {"command": {"argv": ["sh", "-c", script], "passEnv": [variable]}}
