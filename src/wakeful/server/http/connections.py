"""Connections over TCP, and what those that are not authenticated may use of this process.

Theory of operation
-------------------
Whoever can reach the port can open connections, and each takes a descriptor that the store and the programs of runs
need too. So connections over TCP get a share of the descriptors; the rest is kept for the Unix socket, the store and
children. Half of that share is available to one address, until its connections are authenticated: after one request
with a valid token or session, a connection counts towards the total only.

At a limit, the connection that has been unauthenticated for longest is closed, not the new one: a person who opens the
page while half-open connections take all places gets in. If all others are authenticated, the new one is closed.

A trusted proxy carries the requests of many clients. There, requests that are not authenticated are counted while they
are in progress, by the address that the proxy forwards.
"""

import resource
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from wakeful.core.time.instants import HOUR, MINUTE, Duration

if TYPE_CHECKING:
    from wakeful.server.http.server import Protocol as Connection

TOTAL_MAX: Final = 1_024
TOTAL_MIN: Final = 16
SHARE: Final = 4
"""Connections over TCP may use one in this many descriptors."""

REPORTED_FOR: Final[Duration] = HOUR
PEERS_MAX: Final = 100
OTHERS: Final = "other addresses"


class ConnectionLimits(NamedTuple):
    """How many connections may be open."""

    total: int
    per_peer: int  # from one address, before they are authenticated


class TurnedAway(NamedTuple):
    """How many connections and requests without authentication were refused within the last hour."""

    number: int
    peer: str  # the address of most of them


def limits_within(descriptors: int) -> ConnectionLimits:
    """The limits for a process that may open this many descriptors."""
    total = max(TOTAL_MIN, min(TOTAL_MAX, descriptors // SHARE))
    return ConnectionLimits(total, total // 2)


def own_limits() -> ConnectionLimits:
    """The limits for this process."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return limits_within(TOTAL_MAX * SHARE if soft == resource.RLIM_INFINITY else soft)


class Connections:
    """The open connections over TCP, and the requests of strangers behind trusted proxies."""

    def __init__(
        self,
        monotonic: Callable[[], int],
        *,
        trusts: Callable[[str], bool] = lambda _: False,
        limits: ConnectionLimits | None = None,
    ) -> None:
        self.limits = limits or own_limits()
        self._monotonic = monotonic
        self._trusts = trusts
        self._authenticated: set[Connection] = set()
        self._strangers: OrderedDict[Connection, str] = OrderedDict()  # with their peers, the oldest first
        self._of_peer: Counter[str] = Counter()
        self._requests: Counter[str] = Counter()  # in progress through proxies, by the forwarded address
        self._turned_away: deque[tuple[int, Counter[str]]] = deque()  # by the minute in which it happened

    def opened(self, connection: "Connection", peer: str) -> None:
        """Count a new connection, and close the one that has to make room for it."""
        self._strangers[connection] = peer
        self._of_peer[peer] += 1
        if self._of_peer[peer] > self.limits.per_peer and not self._trusts(peer):
            self._turn_away(next(other for other, its_peer in self._strangers.items() if its_peer == peer))
        elif len(self._authenticated) + len(self._strangers) > self.limits.total:
            self._turn_away(next(iter(self._strangers)))

    def closed(self, connection: "Connection") -> None:
        """A connection has ended."""
        self._authenticated.discard(connection)
        self._forget(connection)

    def authenticated(self, connection: "Connection") -> None:
        """A request on this connection was authenticated."""
        if self._forget(connection) is not None:
            self._authenticated.add(connection)

    def is_stranger(self, connection: "Connection") -> bool:
        """Whether it came over TCP and no request on it was authenticated."""
        return connection in self._strangers

    def begins(self, client: str) -> bool:
        """Count a request through a trusted proxy that is not authenticated yet; False: there are too many."""
        if self._requests[client] >= self.limits.per_peer:
            self._count(client)
            return False
        self._requests[client] += 1
        return True

    def ends(self, client: str) -> None:
        """The request has ended, or is authenticated."""
        self._requests[client] -= 1
        if self._requests[client] <= 0:
            del self._requests[client]

    def turned_away(self) -> TurnedAway | None:
        """What was refused within the last hour."""
        since = self._monotonic() - REPORTED_FOR
        peers: Counter[str] = Counter()
        for at, counts in self._turned_away:
            peers += counts if at > since else Counter()
        return TurnedAway(peers.total(), peers.most_common(1)[0][0]) if peers else None

    def refused(self, peer: str) -> None:
        """A request that used more than a stranger may was refused."""
        self._count(peer)

    def _turn_away(self, connection: "Connection") -> None:
        peer = self._forget(connection)
        self._count(peer or "")
        connection.turn_away()

    def _forget(self, connection: "Connection") -> str | None:
        """The peer of an unauthenticated connection, which is not counted any longer."""
        peer = self._strangers.pop(connection, None)
        if peer is not None:
            self._of_peer[peer] -= 1
            if self._of_peer[peer] <= 0:
                del self._of_peer[peer]
        return peer

    def _count(self, peer: str) -> None:
        minute = self._monotonic() // MINUTE * MINUTE
        if not self._turned_away or self._turned_away[-1][0] != minute:
            self._turned_away.append((minute, Counter()))
        while self._turned_away[0][0] <= minute - REPORTED_FOR:
            self._turned_away.popleft()
        counts = self._turned_away[-1][1]
        counts[peer if peer in counts or len(counts) < PEERS_MAX else OTHERS] += 1
