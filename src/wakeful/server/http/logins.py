"""Logging in to the page: a one-time code or a token is exchanged for a session cookie.

Codes and sessions are random and are kept in the store as digests, so that every node accepts them and a copy of the
database reveals none of them. A session that came from a token ends with that token.
"""

import secrets
from collections.abc import Callable
from typing import Final

from wakeful.api.login_rows import Login, digest_of
from wakeful.api.login_rows import Logins as LoginRows
from wakeful.api.python import Wakeful
from wakeful.core.time.instants import DAY, Duration, Instant
from wakeful.ports.store import Tx
from wakeful.server.http.access import Access, Caller, Role

COOKIE: Final = "wakeful_session"
SESSION_FOR: Final[Duration] = 30 * DAY


class Logins:
    """Codes and sessions in the store of one app."""

    def __init__(self, app: Wakeful, access: Callable[[], Access]) -> None:
        self._app = app
        self._access = access

    async def with_code(self, code: str) -> str | None:
        """A session for a code, which is used up; None if the code is not valid."""
        session, now = secrets.token_urlsafe(32), self._now()
        login = Login(digest_of(session), "session", "admin", "link", "", now, now + SESSION_FOR)

        def exchange(tx: Tx) -> bool:
            if tx[LoginRows].take(digest_of(code), kind="code", now=now) is None:
                return False
            tx[LoginRows].add_and_prune(login, now=now)
            return True

        digest = digest_of(code)
        if await self._app._store.read(lambda tx: tx[LoginRows].get(digest)) is None:
            return None  # a stranger's guess writes nothing
        return session if await self._app._store.write(exchange) else None

    async def with_token(self, token: str) -> str | None:
        """A session with the role of a token; None if the token is not valid or is not a person's."""
        caller = self._access().caller_of(f"Bearer {token}")
        if caller is None or caller.role == "agent" or caller.role == "run" or caller.role == "calendar":
            return None
        session, now = secrets.token_urlsafe(32), self._now()
        login = Login(
            digest_of(session), "session", caller.role, caller.name, self._token_digest(token), now, now + SESSION_FOR
        )
        await self._app._store.write(lambda tx: tx[LoginRows].add_and_prune(login, now=now))
        return session

    async def caller(self, session: str) -> Caller | None:
        """The caller of a session that has not expired and whose token still exists."""
        now, digest = self._now(), digest_of(session)
        login = await self._app._store.read(lambda tx: tx[LoginRows].get(digest))
        if login is None or login.kind != "session" or login.expires_at <= now:
            return None
        if login.token_digest and login.token_digest not in self._token_digests():
            return None
        role: Role = login.role
        return Caller(role, login.name)

    async def end(self, session: str) -> None:
        digest, now = digest_of(session), self._now()
        await self._app._store.write(lambda tx: tx[LoginRows].take(digest, kind="session", now=now))

    def _token_digest(self, token: str) -> str:
        """Empty for the home's own random token: every node has its own, and all accept the session."""
        return "" if token in self._access().own_tokens else digest_of(token)

    def _token_digests(self) -> frozenset[str]:
        return frozenset(digest_of(known.token) for known in self._access().tokens)

    def _now(self) -> Instant:
        return self._app._moment().now
