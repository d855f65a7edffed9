"""The port to logins: one-time codes and page sessions, kept as digests."""

from typing import Literal, NamedTuple, Protocol

from wakeful.core.time.instants import Instant


class Login(NamedTuple):
    """A one-time code or a session, in the order of its columns."""

    digest: str  # SHA-256 of the code or session id; neither is stored
    kind: Literal["code", "session"]
    role: Literal["read", "operate", "admin"]
    name: str  # of the token it came from, or `link`
    token_digest: str  # of that token: the session ends with it; empty for a link
    created_at: Instant
    expires_at: Instant


class Logins(Protocol):
    """Codes and sessions."""

    def add(self, login: Login) -> None: ...

    def get(self, digest: str) -> Login | None: ...

    def take(self, digest: str, *, kind: str, now: Instant) -> Login | None:
        """Remove a login and return it, if it exists and has not expired. Of several concurrent callers, one gets
        it."""
        ...

    def clear(self) -> int:
        """Remove all logins; returns how many."""
        ...

    def prune(self, *, now: Instant, most: int) -> int:
        """Remove expired logins, and all but the newest `most`; returns how many."""
        ...
