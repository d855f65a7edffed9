"""Routes with tokens of their own: a run's receipt and the hooks.

They are checked before routing, like every other token: nothing of a request with a wrong one is read or stored.
"""

import hmac
import re
from collections.abc import Callable
from typing import Final
from urllib.parse import parse_qs

from starlette.datastructures import Headers
from starlette.types import Scope

# Match the whole path: a schedule may be called `receipt`.
RECEIPT: Final = re.compile(r"/api/runs/([0-9]{1,18})/receipt", re.ASCII)
HOOK: Final = re.compile(r"/api/hooks/([^/]+)")

NO_RECEIPT: Final = "the token does not belong to this run"
NO_HOOK: Final = "there is no such hook, or the token is wrong; see [hooks] in wakeful.toml"


def is_receipt(scope: Scope) -> bool:
    return scope["method"] == "POST" and RECEIPT.fullmatch(scope["path"]) is not None


class OwnTokens:
    """The tokens of receipts and hooks in effect."""

    def __init__(self, knows_receipt: Callable[[int, str], bool], hook_token: Callable[[str], str | None]) -> None:
        self._knows_receipt = knows_receipt
        self._hook_token = hook_token

    def wrong(self, scope: Scope, headers: Headers) -> str | None:
        """Why the request's token is wrong; None if it is right."""
        receipt, hook = RECEIPT.fullmatch(scope["path"]), HOOK.fullmatch(scope["path"])
        if receipt is not None:
            given = _in_query(scope) or _bearer(headers)[1]
            return None if self._knows_receipt(int(receipt[1]), given) else NO_RECEIPT
        scheme, given = _bearer(headers)
        expected = None if hook is None else self._hook_token(hook[1])
        # In constant time, even if the hook does not exist.
        is_same = hmac.compare_digest(given.encode("latin-1", "replace"), (expected or "").encode())
        return None if is_same and expected is not None and scheme == "bearer" else NO_HOOK


def has_own_token(scope: Scope) -> bool:
    """Whether this route is used with a token of its own."""
    return is_receipt(scope) or (scope["method"] == "POST" and HOOK.fullmatch(scope["path"]) is not None)


def _bearer(headers: Headers) -> tuple[str, str]:
    scheme, _, token = (headers.get("authorization") or "").partition(" ")
    return scheme.lower(), token.strip()


def _in_query(scope: Scope) -> str:
    query: bytes = scope["query_string"]
    return parse_qs(query.decode("latin-1")).get("token", [""])[0]
