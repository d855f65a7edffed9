"""Who may use the API: tokens and their roles, and the hosts and proxies that belong to this daemon.

The Unix socket in the home folder needs no token: its file permissions are the guard. Every request over TCP needs
one, on loopback too, because other users of the machine can connect to it. `auth = "none"` turns that off on loopback.
"""

import hashlib
import hmac
import ipaddress
import socket
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, Literal, TypeAlias
from urllib.parse import urlsplit

from starlette.types import Scope

from wakeful.integrations.net.guard import is_loopback

Role: TypeAlias = Literal["read", "operate", "admin", "agent", "run", "calendar"]
Auth: TypeAlias = Literal["token", "none"]

BEARER: Final = "bearer"
HOSTS_KEPT: Final = 256


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sent a request. `agent` names the agent of an agent's token; `run_id` the run of a run's token. `calendar`
    is the role of the feed's key."""

    role: Role
    name: str
    agent: str | None = None
    run_id: int | None = None
    is_process: bool = False  # recognised by what it descends from, without a token


SOCKET_CALLER: Final = Caller("admin", "socket")
UNKNOWN_CALLER: Final = Caller("read", "a process that cannot be identified", is_process=True)
LOCAL_CALLER: Final = Caller("admin", "loopback")
CALENDAR_CALLER: Final = Caller("calendar", "calendar key")


@dataclass(frozen=True, slots=True)
class NamedToken:
    """A token and the role it gives."""

    name: str
    token: str = field(repr=False)
    role: Role = "admin"
    agent: str | None = None


@dataclass(frozen=True, slots=True)
class Access:
    """The access settings in effect."""

    host: str = "127.0.0.1"
    auth: Auth = "token"
    tokens: Sequence[NamedToken] = ()
    allowed_hosts: frozenset[str] = frozenset()
    public_url: str | None = None
    trusted_proxies: Sequence[str] = ()
    own_tokens: frozenset[str] = field(
        default=frozenset(), repr=False
    )  # the random tokens of this home, a subset of `tokens`

    @property
    def is_open(self) -> bool:
        """Whether TCP requests need no token."""
        return self.auth == "none" and is_loopback(self.host)

    @property
    def public_origin(self) -> tuple[str, str, int] | None:
        """Scheme, host and port of `public_url`."""
        return None if self.public_url is None else origin_of(self.public_url)

    def knows_host(self, name: str) -> bool:
        """Whether a request for this host can be meant for this daemon.

        Any IP address is safe; a name is not, because someone else can make it point to this machine."""
        public = self.public_origin
        if name in ("localhost", plain_host(self.host)) or name in self.allowed_hosts:
            return True
        if public is not None and name == public[1]:
            return True
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            own = socket.gethostname().lower()
            return not is_loopback(self.host) and name in (own, own.partition(".")[0], f"{own.partition('.')[0]}.local")
        return address.is_loopback or not is_loopback(self.host)

    def caller_of(self, authorization: str) -> Caller | None:
        """The caller who has this bearer token. All tokens are compared, in constant time."""
        scheme, _, given = authorization.partition(" ")
        digest = _digest(given.strip().encode("latin-1", "replace"))
        caller: Caller | None = None
        for known in self.tokens:
            if hmac.compare_digest(digest, _digest(known.token.encode())):
                caller = Caller(known.role, known.name, known.agent)
        return caller if scheme.lower() == BEARER else None

    def trusts(self, address: str) -> bool:
        """Whether forwarded headers from this address are trusted."""
        if not self.trusted_proxies:
            return False
        try:
            client = ipaddress.ip_address(address.partition("%")[0])
        except ValueError:
            return False
        networks = (ipaddress.ip_network(proxy, strict=False) for proxy in self.trusted_proxies)
        return any(client.version == network.version and client in network for network in networks)


def caller_of(scope: Scope) -> Caller | None:
    """The caller of a request that has passed the middleware."""
    caller: Caller | None = scope.get("state", {}).get("caller")
    return caller


def origin_of(url: str) -> tuple[str, str, int] | None:
    """Scheme, host and port of a URL or an `Origin`; None if it has none."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
        return None
    return parts.scheme, plain_host(parts.hostname), port or (443 if parts.scheme == "https" else 80)


@lru_cache(maxsize=HOSTS_KEPT)
def host_and_port(netloc: str) -> tuple[str, int | None] | None:
    """Host and port of `name:port`; None if it is invalid."""
    try:
        parts = urlsplit(f"//{netloc}")
        if not parts.hostname or parts.username is not None or parts.path or parts.query or parts.fragment:
            return None
        return plain_host(parts.hostname), parts.port
    except ValueError:
        return None


def plain_host(host: str) -> str:
    return host.strip("[]").rstrip(".").lower()


def _digest(token: bytes) -> bytes:
    """A digest of equal length for every token, so that the comparison leaks nothing."""
    return hashlib.sha256(token).digest()
