"""The parts of an HTTP application, and what the daemon passes to it besides the app."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from wakeful.api.python import Wakeful
from wakeful.observe.metrics import Gauges
from wakeful.server.http.access import Access
from wakeful.server.http.authentication import Authentication
from wakeful.server.http.connections import Connections
from wakeful.server.http.logins import Logins
from wakeful.server.http.watchers import Watchers

if TYPE_CHECKING:
    from wakeful.server.http.mcp_endpoint import McpEndpoint

BODY_MAX: Final = 1_048_576


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """Who may ask, and what is accepted at present. It may change, so it is read for each request."""

    access: Callable[[], Access] = Access
    body_max: Callable[[], int] = lambda: BODY_MAX
    is_open: Callable[[], bool] | None = None  # default: while the app is started
    watchers: Watchers | None = None  # of the live stream
    figures: Callable[[Gauges], bytes] | None = None  # the metrics as text
    connections: Connections | None = None  # the open ones


@dataclass(frozen=True, slots=True)
class Api:
    """The parts of one HTTP application."""

    app: Wakeful
    serving: Serving
    logins: Logins
    authentication: Authentication
    mcp: "McpEndpoint"
    paths: Callable[[], list[str]]  # of all routes
    document: Callable[[], str]  # OpenAPI's

    def is_open(self) -> bool:
        """Whether requests are accepted."""
        return self.app._is_started if self.serving.is_open is None else self.serving.is_open()
