"""Run tokens: a running program presents one to prove which run it belongs to.

A token is bound to the run and the fence of its attempt, so it is invalid while the run waits and after it ended.
Nothing is stored: it is signed with the store's secret, so every node that shares the store can verify it.
"""

import base64
import hashlib
import hmac
import re
from typing import Final

from wakeful.ports.action import RunAccess

RUN_TOKEN: Final = re.compile(r"wr_([0-9]{1,18})_([0-9]{1,18})_[A-Za-z0-9_-]{43}", re.ASCII)
"""The pattern of a token, for masking it in output."""


class RunTokens:
    """Signs and reads run tokens."""

    def __init__(self, secret: bytes, url: str | None, home: str | None) -> None:
        self._secret = secret
        self._url = url
        self._home = home

    def access(self, run_id: int, fence: int) -> RunAccess | None:
        """The access data for the run's program; None if this process does not listen."""
        return None if self._url is None else RunAccess(self._url, self.token(run_id, fence), self._home)

    def token(self, run_id: int, fence: int) -> str:
        digest = hmac.new(self._secret, b"run:%d:%d" % (run_id, fence), hashlib.sha256).digest()
        return f"wr_{run_id}_{fence}_{base64.urlsafe_b64encode(digest).rstrip(b'=').decode()}"

    def read(self, token: str) -> tuple[int, int] | None:
        """The run id and fence of a genuine token."""
        match = RUN_TOKEN.fullmatch(token)
        if match is None:
            return None
        run_id, fence = int(match[1]), int(match[2])
        return (run_id, fence) if hmac.compare_digest(self.token(run_id, fence), token) else None
