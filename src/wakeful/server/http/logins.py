"""Logging in to the page: a one-time code or a token is exchanged for a session cookie.

Codes and sessions are random and are kept in the store as digests, so that every node accepts them and a copy of the
database reveals none of them. A session that came from a token ends with that token.
"""

import hashlib
import secrets
from collections.abc import Callable
from typing import Final

from wakeful.app import Wakeful
from wakeful.core.time.instants import DAY, MINUTE, Duration, Instant
from wakeful.ports.logins import Login
from wakeful.ports.store import Tx
from wakeful.server.http.access import Access, Caller, Role

COOKIE: Final = "wakeful_session"
CODE_FOR: Final[Duration] = 15 * MINUTE
SESSION_FOR: Final[Duration] = 30 * DAY
LOGINS_MAX: Final = 1_000
"""Maximum number of codes and sessions; the oldest are dropped first."""


class Logins:
    """Codes and sessions in the store of one app."""

    def __init__(self, app: Wakeful, access: Callable[[], Access]) -> None:
        self._app = app
        self._access = access

    async def make_code(self) -> tuple[str, Instant]:
        """A code that logs in once, and when it expires."""
        code, now = secrets.token_urlsafe(16), self._now()
        login = Login(_digest(code), "code", "admin", "link", "", now, now + CODE_FOR)
        await self._app.store.write(lambda tx: _add(tx, login, now))
        return code, login.expires_at

    async def with_code(self, code: str) -> str | None:
        """A session for a code, which is used up; None if the code is not valid."""
        session, now = secrets.token_urlsafe(32), self._now()
        login = Login(_digest(session), "session", "admin", "link", "", now, now + SESSION_FOR)

        def exchange(tx: Tx) -> bool:
            if tx.logins.take(_digest(code), kind="code", now=now) is None:
                return False
            _add(tx, login, now)
            return True

        return session if await self._app.store.write(exchange) else None

    async def with_token(self, token: str) -> str | None:
        """A session with the role of a token; None if the token is not valid or is not a person's."""
        caller = self._access().caller_of(f"Bearer {token}")
        if caller is None or caller.role == "agent" or caller.role == "run" or caller.role == "calendar":
            return None
        session, now = secrets.token_urlsafe(32), self._now()
        login = Login(
            _digest(session), "session", caller.role, caller.name, self._token_digest(token), now, now + SESSION_FOR
        )
        await self._app.store.write(lambda tx: _add(tx, login, now))
        return session

    async def caller(self, session: str) -> Caller | None:
        """The caller of a session that has not expired and whose token still exists."""
        now, digest = self._now(), _digest(session)
        login = await self._app.store.read(lambda tx: tx.logins.get(digest))
        if login is None or login.kind != "session" or login.expires_at <= now:
            return None
        if login.token_digest and login.token_digest not in self._token_digests():
            return None
        role: Role = login.role
        return Caller(role, login.name)

    async def end(self, session: str) -> None:
        digest, now = _digest(session), self._now()
        await self._app.store.write(lambda tx: tx.logins.take(digest, kind="session", now=now))

    async def end_all(self) -> int:
        """End every session and void every code; returns how many there were."""
        return await self._app.store.write(lambda tx: tx.logins.clear())

    def _token_digest(self, token: str) -> str:
        """Empty for the home's own random token: every node has its own, and all accept the session."""
        return "" if token in self._access().own_tokens else _digest(token)

    def _token_digests(self) -> frozenset[str]:
        return frozenset(_digest(known.token) for known in self._access().tokens)

    def _now(self) -> Instant:
        return self._app.moment().now


def _add(tx: Tx, login: Login, now: Instant) -> None:
    tx.logins.add(login)
    tx.logins.prune(now=now, most=LOGINS_MAX)


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()
