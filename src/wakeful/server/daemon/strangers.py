"""What strangers tried: a finding of the server, which concerns no schedule."""

from typing import Final

from wakeful.features.schedules.health import Finding
from wakeful.server.http.connections import Connections

CONNECTIONS: Final = "connections"


def finding_of(connections: Connections) -> Finding:
    """Whether connections or requests without a token were refused within the last hour."""
    refused, limits = connections.turned_away(), connections.limits
    if refused is None:
        return Finding(CONNECTIONS, "ok", "no connection without a token was closed within the last hour")
    sentence = (
        f"{refused.number} connections or requests without a token were refused within the last hour, most of them "
        f"from {refused.peer}; {limits.total} connections may be open, {limits.per_peer} per address without a token. "
        "Schedules are not affected"
    )
    return Finding(CONNECTIONS, "warn", sentence, "find out what connects; a firewall can keep it away from this port")
