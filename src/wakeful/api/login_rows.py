"""Logins: one-time codes and page sessions, kept as digests."""

import hashlib
from typing import Final, Literal, NamedTuple

from wakeful.core.time.instants import Instant
from wakeful.ports.table import Rows

LOGINS_MAX: Final = 1_000
"""Maximum number of codes and sessions; the oldest are dropped first."""


class Login(NamedTuple):
    """A one-time code or a session, in the order of its columns."""

    digest: str  # SHA-256 of the code or session id; neither is stored
    kind: Literal["code", "session"]
    role: Literal["read", "operate", "admin"]
    name: str  # of the token it came from, or `link`
    token_digest: str  # of that token: the session ends with it; empty for a link
    created_at: Instant
    expires_at: Instant


class Logins(Rows[Login]):
    """Codes and sessions."""

    row, table, key = Login, "logins", "digest"

    def add_and_prune(self, login: Login, *, now: Instant) -> None:
        """Insert a login, and keep the table small."""
        self.add(login)
        self.prune_to(now=now, most=LOGINS_MAX)

    def take(self, digest: str, *, kind: str, now: Instant) -> Login | None:
        """Remove a login and return it, if it exists and has not expired. Of several concurrent callers, one gets
        it."""
        taken = (
            f"DELETE FROM logins WHERE digest = :digest AND kind = :kind AND expires_at > :now RETURNING {self.columns}"
        )
        return next(iter(self._made(self._db.rows(taken, digest=digest, kind=kind, now=now))), None)

    def clear(self) -> int:
        """Remove all logins; returns how many."""
        return self._db.change("DELETE FROM logins")

    def prune_to(self, *, now: Instant, most: int) -> int:
        """Remove expired logins, and all but the newest `most`; returns how many. Rows that another node has locked are
        left to it."""
        return self._db.change(
            "DELETE FROM logins WHERE digest IN ("
            "SELECT digest FROM logins WHERE expires_at <= :now"
            " OR digest NOT IN (SELECT digest FROM logins ORDER BY created_at DESC, digest LIMIT :most)"
            " ORDER BY digest FOR UPDATE SKIP LOCKED)",
            now=now,
            most=most,
        )


def digest_of(secret: str) -> str:
    """What is stored of a code, a session or a token."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()
